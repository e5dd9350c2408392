package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/racetest"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/transcript"
	"github.com/furlhq/furl/wire"
)

// quoted is the line that the last reply of the small session quotes.
const quoted = "return store.Append(ctx, records, options)"

// smallSession reads a.go, which nothing uses later, then b.go, which the last reply
// quotes, and makes six more calls in between.
func smallSession(t *testing.T) *transcript.Recording {
	t.Helper()
	log := furl.NewLog()
	at := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	add := func(body furl.Body) {
		t.Helper()
		at = at.Add(5 * time.Second)
		if _, err := log.Append(log.Head(), at, furl.Import, body); err != nil {
			t.Fatal(err)
		}
	}
	message := func(role furl.Role, b furl.Block) {
		t.Helper()
		m, err := wire.For(furl.FormatAnthropic).NewMessage(role, []furl.Block{b})
		if err != nil {
			t.Fatal(err)
		}
		add(m)
	}
	const model = "claude-opus-4-5-20251101"
	step := func(id, tool, args, result string) {
		add(&furl.Exchange{Model: model})
		message(furl.RoleAssistant, furl.Block{Kind: furl.KindCall, ID: id, Name: tool, Args: json.RawMessage(args)})
		message(furl.RoleUser, furl.Block{Kind: furl.KindResult, ID: id, Text: result})
	}
	message(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Make it work."})
	step("c1", "Read", `{"file_path":"a.go"}`, strings.Repeat("nothing here ", 4000))
	step("c2", "Read", `{"file_path":"b.go"}`, strings.Repeat("something ", 1500)+"\n\t"+quoted+"\n")
	for i := range 6 {
		step(fmt.Sprint("d", i), "Bash", `{"command":"make"}`, "ok")
	}
	add(&furl.Exchange{Model: model})
	message(furl.RoleAssistant, furl.Block{Kind: furl.KindText, Text: "It is:\n" + quoted})
	return &transcript.Recording{File: "small.jsonl", Format: "test", Agent: "Tester",
		Sessions: []*transcript.Session{{
			ID: "s", Model: model, Wire: furl.FormatAnthropic, Log: log,
			Preamble: []furl.Block{{Kind: furl.KindText, Text: strings.Repeat("instruction ", 6000)}},
		}}}
}

func only(rec *transcript.Recording) iter.Seq2[*transcript.Recording, error] {
	return func(yield func(*transcript.Recording, error) bool) { yield(rec, nil) }
}

// byHand hides a.go before the third request: the first one that need not have it,
// and nothing that was sent before follows it. That is the best time.
type byHand struct{ requests int }

func (*byHand) Name() string { return "by-hand" }

func (p *byHand) Plan(_ context.Context, s *furl.State, b furl.Budget) (*furl.Plan, error) {
	plan := &furl.Plan{View: s.View(b.Model)}
	if p.requests++; p.requests != 3 {
		return plan, nil
	}
	seq, m := s.Message(2)
	pos := furl.Pos{Msg: seq}
	plan.Reductions = []*furl.Reduction{{Stage: "by-hand", Items: []furl.Item{{
		Spans: []furl.Span{{First: pos, Last: pos}},
		Show:  furl.InPlace(&m.Blocks[0], "[hidden]", b.Counter),
	}}}}
	after, err := s.With(plan.Reductions[0])
	if err != nil {
		return nil, err
	}
	plan.View = after.View(b.Model)
	return plan, nil
}

func TestOracleFindsTheOptimum(t *testing.T) {
	o := options{read: 0.1, write: 1.25, policy: "auto"}
	lines, err := measure(t.Context(), &o, only(smallSession(t)))
	if err != nil {
		t.Fatal(err)
	}
	report, err := replay.Run(t.Context(), slices.Values([]*transcript.Recording{smallSession(t)}), replay.Options{
		CacheRead: &o.read, CacheWrite: &o.write,
		Candidates: []replay.Candidate{{Name: "by-hand", New: func(policy.Summarizer) (furl.Policy, error) { return &byHand{}, nil }}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, hand := lines[0], *report.Totals[0].CostRatio
	if l.OracleKept.Lines != 1 || report.Totals[0].QuotedLinesKept != 1 {
		t.Errorf("the oracle shows %.2f of the lines", l.OracleKept.Lines)
	}
	if l.Oracle > hand+1e-9 || l.Oracle < hand-0.02 {
		t.Errorf("the oracle costs %.4f, the best plan by hand %.4f", l.Oracle, hand)
	}
	if l.Oracle >= l.Policy || l.Floor > l.Oracle {
		t.Errorf("auto costs %.4f, the oracle %.4f, the floor is %.4f", l.Policy, l.Oracle, l.Floor)
	}
	for k, cost := range map[string]float64{"as recorded": 1, "auto": l.Policy, "oracle": l.Oracle} {
		sum := 0.0
		for _, p := range l.Parts {
			sum += map[string]float64{"as recorded": p.AsRecorded, "auto": p.Policy, "oracle": p.Oracle}[k]
		}
		if sum < cost-1e-4 || sum > cost+1e-4 {
			t.Errorf("the parts of %s are %.6f together, the cost %.6f", k, sum, cost)
		}
	}
	if last := lines[len(lines)-1]; last.File != "all" || last.Oracle != l.Oracle {
		t.Errorf("the last line is %+v", last)
	}
}

// TestOracleIsNoDearerThanAuto compares both on real sessions.
func TestOracleIsNoDearerThanAuto(t *testing.T) {
	names := []string{"6d-*.gz", "37-*.gz", "98-*.gz", "aa-*.gz", "b6-*.gz", "c1-*.gz", "e9-*.gz"}
	if racetest.Enabled {
		names = names[:2]
	}
	for i, name := range names {
		names[i] = filepath.Join("entire-cli", name)
	}
	if !racetest.Enabled {
		names = append(names, "agentv/33-*.gz", "nimbus/*.gz")
	}
	files := recordings.Files(t, names...)
	lines, err := measure(t.Context(), &options{read: 0.1, write: 1.25, policy: "auto"}, transcript.Walk(files...))
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != len(files)+1 {
		t.Fatalf("%d lines for %d recordings", len(lines), len(files))
	}
	for _, l := range lines {
		if l.Oracle > l.Policy || l.Oracle < l.Floor {
			t.Errorf("%s: auto costs %.3f, the oracle %.3f, the floor is %.3f", l.File, l.Policy, l.Oracle, l.Floor)
		}
		if l.OracleKept.Lines != 1 || l.OracleKept.Blind != 0 {
			t.Errorf("%s: the oracle keeps %.3f of the lines and makes %d blind edits", l.File, l.OracleKept.Lines, l.OracleKept.Blind)
		}
		if l.Invalid > 0 {
			t.Errorf("%s: %d invalid requests", l.File, l.Invalid)
		}
	}
}

// The output has a table and, with -json, the same numbers.
func TestOutput(t *testing.T) {
	o := options{read: 0.1, write: 1.25, policy: "auto"}
	lines, err := measure(t.Context(), &o, only(smallSession(t)))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := printLines(&out, &o, lines); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"small.jsonl", "distance", fmt.Sprintf("%.3f", lines[0].Oracle), "rewriting"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, out.String())
		}
	}
	raw, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	var back []map[string]any
	if err := json.Unmarshal(raw, &back); err != nil || back[0]["oracle"] != lines[0].Oracle {
		t.Errorf("as JSON: %s, %v", raw, err)
	}
}
