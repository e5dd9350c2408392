package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

var update = flag.Bool("update", false, "write what the scenarios show into their files")

// TestScenarios runs the scenarios of testdata/scenarios, whose README says
// how to read and write one.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.Fields(ar.Comment)) < 10 {
				t.Error("a scenario begins with a paragraph that says what it shows")
			}
			s := &scenario{t: t, sections: map[string]string{}, log: furl.NewLog()}
			for _, f := range ar.Files {
				s.sections[f.Name] = string(f.Data)
			}
			got := s.run()
			for i, f := range ar.Files {
				want, checked := got[f.Name]
				if !checked {
					continue
				}
				if *update {
					ar.Files[i].Data = []byte(want)
				} else if string(f.Data) != want {
					t.Errorf("section %s is\n%s\nwant\n%s", f.Name, want, f.Data)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// scenario is one file at work.
type scenario struct {
	t        testing.TB
	sections map[string]string
	log      *furl.Log
	policy   furl.Policy
	budget   furl.Budget
	at       time.Time
	model    *scripted
	prepared *furl.Reduction

	reductions []furl.Seq // r1, r2, …
	view       strings.Builder
	plans      strings.Builder
	events     strings.Builder
	result     any
}

// run does what the file says and gives the sections that can be compared.
func (s *scenario) run() map[string]string {
	s.at = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	if s.sections["no times"] != "" {
		s.at = time.Time{}
	}
	var err error
	s.model = newScripted(s)
	if s.policy, s.budget, err = parsePolicy(s.sections["policy"], s.model.settings()); err != nil {
		s.t.Fatal(err)
	}
	s.append("transcript")
	do := s.sections["do"]
	if do == "" {
		do = "plan"
	}
	for l := range strings.Lines(do) {
		l = strings.TrimSpace(l)
		if l == "" || l[0] == '#' {
			continue
		}
		if err := s.do(strings.Fields(l)); err != nil {
			s.t.Fatalf("%s: %v", l, err)
		}
	}
	s.writeView(&s.view)
	got := map[string]string{
		"view": s.view.String(), "plan": s.plans.String(), "events": s.events.String(),
		"asked": s.model.asked.String(), "list": s.list(),
	}
	if s.result != nil {
		text, err := json.MarshalIndent(s.result, "", "  ")
		if err != nil {
			s.t.Fatal(err)
		}
		got["result"] = string(text) + "\n"
	}
	return got
}

// append adds the messages of a section.
func (s *scenario) append(section string) {
	messages, err := parseTranscript(s.sections[section])
	if err != nil {
		s.t.Fatalf("%s: %v", section, err)
	}
	if len(messages) == 0 {
		s.t.Fatalf("section %s holds no messages", section)
	}
	for _, m := range messages {
		m.Measure(words{})
		m.Seal()
		s.record(furl.Client, m)
		if !s.at.IsZero() {
			s.at = s.at.Add(time.Minute)
		}
	}
}

// record appends one record and notes its events.
func (s *scenario) record(by furl.Actor, body furl.Body) {
	before, err := furl.Fold(s.log, s.log.Head())
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := s.log.Append(s.log.Head(), s.at, by, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, ok := body.(*furl.Reduction); ok {
		s.reductions = append(s.reductions, r.Seq)
	}
	s.note(before, r)
}

func (s *scenario) note(before *furl.State, r furl.Record) {
	for _, e := range event.Of(before, r, s.budget.Window) {
		data, err := json.Marshal(e)
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&s.events, "%s %s\n", e.Name(), data)
	}
}

func (s *scenario) do(words []string) error {
	switch cmd := words[0]; cmd {
	case "plan":
		return s.plan(words[1:], true)
	case "preview":
		return s.plan(words[1:], false)
	case "append":
		s.append(words[1])
	case "show":
		s.writeView(&s.view)
		s.view.WriteByte('\n')
	case "rewind": // to N or rN
		to, err := s.seq(words[len(words)-1])
		if err != nil {
			return err
		}
		r, err := s.log.Rewind(to, s.at, furl.Person)
		if err != nil {
			return err
		}
		s.note(s.log.State(), r)
	case "lift":
		of, err := s.seq(words[1])
		if err != nil {
			return err
		}
		s.record(furl.Person, &furl.Restoration{Of: of})
	case "prepare":
		return s.prepare()
	case "commit":
		return s.commit()
	case "edit":
		return s.edit(words[1], words[2])
	case "open", "keep", "pin", "release":
		return s.restore(cmd, words[1])
	default:
		return fmt.Errorf("no command %q", cmd)
	}
	return nil
}

// plan plans by the scenario's policy, or by the one in the named section,
// appends what was planned if it is to be applied, and checks that every
// provider takes the view.
func (s *scenario) plan(words []string, apply bool) error {
	p, b := s.policy, s.budget
	for _, w := range words {
		if w == "force" {
			b.Force = true
			continue
		}
		var err error
		if p, b, err = parsePolicy(s.sections[w], s.model.settings()); err != nil {
			return err
		}
	}
	s.budget.Fixed = b.Fixed
	b.Size, b.Now = s.size(), s.at
	before, err := furl.Fold(s.log, s.log.Head())
	if err != nil {
		return err
	}
	plan, err := p.Plan(context.Background(), s.log.State(), b)
	if err != nil {
		return err
	}
	s.writePlan(p, plan)
	switch p.Name() {
	case "graduated":
		if s.result, err = GraduatedResult(before, plan); err != nil {
			return err
		}
	case "rolling":
		if e, ok := EvictionResult(before, plan); ok {
			s.result = e
		}
	}
	if !apply {
		return nil
	}
	for _, red := range plan.Reductions {
		s.record(furl.Furl, red)
	}
	if after := s.size(); after != plan.After {
		return fmt.Errorf("the plan leaves %d tokens, the view has %d", plan.After, after)
	}
	return s.validate()
}

func (s *scenario) writePlan(p furl.Policy, plan *furl.Plan) {
	out := &s.plans
	fmt.Fprintf(out, "%s: %d → %d tokens\n", p.Name(), plan.Before, plan.After)
	for _, step := range plan.Steps {
		switch {
		case step.Failed:
			fmt.Fprintf(out, "  %s failed: %s\n", step.Stage, step.Skipped)
		case step.Skipped != "":
			fmt.Fprintf(out, "  %s skipped: %s\n", step.Stage, step.Skipped)
		default:
			fmt.Fprintf(out, "  %s hid %d: %d → %d\n", step.Stage, step.Hidden, step.Before, step.After)
		}
	}
	for _, red := range plan.Reductions {
		fmt.Fprintf(out, "  reason of %s: %s\n", red.Stage, red.Reason)
	}
	for _, w := range plan.Warnings {
		fmt.Fprintf(out, "  warning %s: %s\n", w.Code, w.Text)
	}
	if plan.Backstops > 0 {
		fmt.Fprintf(out, "  backstops: %d\n", plan.Backstops)
	}
	if plan.Impossible {
		fmt.Fprintf(out, "  impossible\n")
	}
	if plan.Reason != "" {
		fmt.Fprintf(out, "  because %s\n", plan.Reason)
	}
}

// size is the size of the request as the policy is told it.
func (s *scenario) size() int { return s.log.State().View(s.budget.Model).Tokens + s.budget.Fixed }

// seq is the record of message N or of reduction rN.
func (s *scenario) seq(name string) (furl.Seq, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "r"))
	switch {
	case err != nil || n < 0:
		return 0, fmt.Errorf("no message or reduction %q", name)
	case n == 0:
		return 0, nil
	case name[0] == 'r' && n <= len(s.reductions):
		return s.reductions[n-1], nil
	case name[0] != 'r' && n <= s.log.State().Len():
		seq, _ := s.log.State().Message(n - 1)
		return seq, nil
	}
	return 0, fmt.Errorf("no message or reduction %q", name)
}

// restore opens or holds message N, or block B of it as N.B, counted from 0.
func (s *scenario) restore(cmd, what string) error {
	number, block, one := strings.Cut(what, ".")
	seq, err := s.seq(number)
	if err != nil {
		return err
	}
	i, _ := s.log.State().Find(seq)
	_, m := s.log.State().Message(i)
	sp := furl.Span{First: furl.Pos{Msg: seq}, Last: furl.Pos{Msg: seq, Block: len(m.Blocks) - 1}}
	if one {
		n, err := strconv.Atoi(block)
		if err != nil {
			return err
		}
		sp.First.Block, sp.Last.Block = n, n
	}
	holds := map[string]furl.Hold{"open": 0, "keep": furl.Keep, "pin": furl.Pin, "release": furl.Release}
	s.record(furl.Person, &furl.Restoration{Open: cmd == "open", Spans: []furl.Span{sp}, Hold: holds[cmd]})
	return nil
}

// codecs are the wire formats every view must be a valid request in, with what
// a request holds besides its messages.
var codecs = []struct {
	codec protocol.Codec
	body  string
}{
	{anthropic.Codec, `{"model":"m","max_tokens":100,"messages":%s}`},
	{openai.Chat, `{"model":"m","messages":%s}`},
	{openai.Responses, `{"model":"m","input":%s}`},
}

// validate checks that every provider takes the view (X1).
func (s *scenario) validate() error {
	if len(s.log.State().OpenCalls()) > 0 {
		return nil // not a request yet
	}
	for _, c := range codecs {
		if err := accepted(c.codec, c.body, s.log.State().View(furl.Model{})); err != nil {
			return fmt.Errorf("%s refuses the view: %w", c.codec.Format(), err)
		}
	}
	return nil
}

// accepted writes a view in a wire format and asks the provider's rules.
func accepted(c protocol.Codec, body string, v *furl.View) error {
	var list []json.RawMessage
	for i := range v.Messages {
		raws, err := c.EncodeMessage(v.Messages[i])
		if err != nil {
			return err
		}
		list = append(list, raws...)
	}
	messages, err := json.Marshal(list)
	if err != nil {
		return err
	}
	req, err := c.DecodeRequest(fmt.Appendf(nil, body, messages))
	if err != nil {
		return err
	}
	return c.Validate(req, furl.Model{SystemInside: true})
}
