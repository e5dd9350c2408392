package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
)

// scripted is the model of a scenario: it answers requests for a summary with
// the paragraphs of the section "summaries", one after the other.
type scripted struct {
	s     *scenario
	left  []string
	asked strings.Builder
}

func newScripted(s *scenario) *scripted {
	return &scripted{s: s, left: paragraphs(s.sections["summaries"])}
}

func paragraphs(text string) []string {
	var list []string
	for p := range strings.SplitSeq(text, "\n\n") {
		if p = strings.TrimSpace(p); p != "" {
			list = append(list, p)
		}
	}
	return list
}

// settings are what the sections of the file set.
func (m *scripted) settings() Settings {
	var o Settings
	if _, ok := m.s.sections["summaries"]; ok {
		o.Summarizer = m
	}
	if memory, ok := m.s.sections["memory"]; ok {
		o.WorkingMemory = func() []string { return paragraphs(memory) }
	}
	switch strings.TrimSpace(m.s.sections["answer"]) {
	case "no":
		o.Ask = func(context.Context, int, int) bool { return false }
	case "yes":
		o.Ask = func(context.Context, int, int) bool { return true }
	}
	_, o.Off = m.s.sections["playback"]
	return o
}

// SummaryWindow is large, unless the scenario is about that: the request for
// a summary alone is longer than most conversations here.
func (m *scripted) SummaryWindow() int {
	if n, err := strconv.Atoi(strings.TrimSpace(m.s.sections["summary window"])); err == nil {
		return n
	}
	return 2000
}

func (m *scripted) Summarize(_ context.Context, r SummaryRequest) (Summary, error) {
	fmt.Fprintf(&m.asked, "for %s, in at most %d tokens; shown %d\n", m.s.spans(r.View.Spans(r.Hide...)), r.MaxTokens, r.Budget.Size)
	switch {
	case r.Prompt == DefaultSummaryRequest:
	case strings.HasSuffix(r.Prompt, mergeRequest):
		fmt.Fprintf(&m.asked, "  and to merge the summary before\n")
	default:
		fmt.Fprintf(&m.asked, "  %s\n", r.Prompt)
	}
	if len(m.left) == 0 {
		return Summary{}, errors.New("no answer")
	}
	answer := m.left[0]
	m.left = m.left[1:]
	sum := Summary{Model: "double", Usage: furl.Usage{Input: r.Budget.Size, Output: len(strings.Fields(answer))}}
	if text, ok := strings.CutPrefix(answer, "fails: "); ok {
		return sum, errors.New(text)
	}
	answer, sum.CutOff = strings.CutSuffix(answer, " (cut off)")
	if answer != "(empty)" {
		sum.Text = pad(answer)
	}
	return sum, nil
}

// spans tells which messages lie in spans of the path.
func (s *scenario) spans(spans []furl.Span) string {
	var parts []string
	for _, sp := range spans {
		lo, _ := s.log.State().Find(sp.First.Msg)
		hi, _ := s.log.State().Find(sp.Last.Msg)
		if lo == hi {
			parts = append(parts, fmt.Sprint(lo+1))
		} else {
			parts = append(parts, fmt.Sprintf("%d to %d", lo+1, hi+1))
		}
	}
	return strings.Join(parts, ", ")
}

// list is what the accessor tells of the path.
func (s *scenario) list() string {
	var out strings.Builder
	for _, r := range Reductions(s.log.State()) {
		data, err := json.Marshal(r)
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s\n", data)
	}
	return out.String()
}

func (s *scenario) now() furl.Budget {
	b := s.budget
	b.Size, b.Now = s.size(), s.at
	return b
}

// prepare makes a compaction without recording it.
func (s *scenario) prepare() error {
	b := s.now()
	compact, _ := SummaryStage(s.policy, &b)
	if compact == nil {
		return fmt.Errorf("%s shows no summaries", s.policy.Name())
	}
	if set := s.model.settings(); set.Summarizer != nil {
		compact.Summarizer = set.Summarizer
	}
	red, err := compact.Prepare(context.Background(), s.log.State(), b)
	if err != nil {
		fmt.Fprintf(&s.plans, "prepared nothing: %v\n", err)
		return nil
	}
	fmt.Fprintf(&s.plans, "prepared: %d → %d tokens\n", red.Before, red.After)
	s.prepared = red
	return nil
}

// commit records what was prepared, if that is still possible.
func (s *scenario) commit() error {
	red, err := Commit(s.log.State(), s.now(), s.prepared)
	if err != nil {
		fmt.Fprintf(&s.plans, "committed nothing: %v\n", err)
		return nil
	}
	fmt.Fprintf(&s.plans, "committed: %d → %d tokens\n", red.Before, red.After)
	s.record(furl.Furl, red)
	return s.validate()
}

// edit puts the text of a section in the place of a summary.
func (s *scenario) edit(name, section string) error {
	seq, err := s.seq(name)
	if err != nil {
		return err
	}
	red, err := Edit(s.log.State(), s.now(), seq, s.sections[section])
	if err != nil {
		return err
	}
	s.record(furl.Person, red)
	return s.validate()
}
