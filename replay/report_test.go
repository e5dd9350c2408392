package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/transcript"
)

// keysOf lists the paths of all keys of a JSON value, in order, each once.
func keysOf(t *testing.T, text []byte) []string {
	t.Helper()
	var keys []string
	dec := json.NewDecoder(bytes.NewReader(text))
	var value func(path string)
	value = func(path string) {
		tok, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		switch tok {
		case json.Delim('['):
			for dec.More() {
				value(path + "[]")
			}
		case json.Delim('{'):
			for dec.More() {
				key, err := dec.Token()
				if err != nil {
					t.Fatal(err)
				}
				name := strings.TrimPrefix(path+"."+key.(string), ".")
				if !slices.Contains(keys, name) {
					keys = append(keys, name)
				}
				value(name)
			}
		default:
			return
		}
		if _, err := dec.Token(); err != nil {
			t.Fatal(err)
		}
	}
	value("")
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		t.Error("more than one value")
	}
	return keys
}

// Scripts that read furl replay --json rely on these names.
func TestReportJSON(t *testing.T) {
	resultKeys := []string{
		"policy", "window", "requests", "tokens_sent", "peak_tokens", "overflows", "impossible", "backstops",
		"cost", "cost_low", "cost_high", "cost_split", "cost_split.cache_write", "cost_split.cache_read", "cost_split.fresh", "cost_split.output", "cost_split.own", "cost_split.compactions",
		"cost_ratio", "cache_breaks", "reductions",
		"references", "references_kept", "references_recallable",
		"own_references", "own_references_kept", "own_references_recallable",
		"quoted_lines", "quoted_lines_kept", "refetches", "edits", "blind_edits", "penalised_cost_ratio", "invalid_requests",
	}
	want := []string{
		"recordings", "recordings[].file", "recordings[].format", "recordings[].agent", "recordings[].model",
		"recordings[].messages", "recordings[].requests", "recordings[].skipped_records", "recordings[].skipped",
		"recordings[].reported_peak_tokens", "recordings[].estimated_peak_tokens", "recordings[].billed", "recordings[].billed_subagents", "recordings[].output_recorded_tokens", "recordings[].output_estimated_tokens", "recordings[].simulated_error", "recordings[].results",
	}
	for _, k := range resultKeys {
		want = append(want, "recordings[].results[]."+k)
	}
	want = append(want, "totals")
	for _, k := range resultKeys {
		want = append(want, "totals[]."+k)
	}
	want = append(want, "limits", "limits.names", "limits.lines", "limits.blind", "recommended")
	rec := hunt(t).recording()
	rec.Skipped = []transcript.Skip{{Line: 7, Reason: "torn"}, {Reason: "no end"}}
	rep := play(t, Options{Candidates: presets(t, "none")}, rec)
	text, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	if got := keysOf(t, text); !slices.Equal(got, want) {
		t.Errorf("keys\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := rep.Recordings[0]; got.SkippedRecords != 2 || fmt.Sprint(got.Skipped) != "[small.jsonl:7: torn small.jsonl: no end]" {
		t.Errorf("skipped %d: %v", got.SkippedRecords, got.Skipped)
	}
}

// Without recordings the report is empty. Without a price the cost is null.
func TestReportJSONOfNothing(t *testing.T) {
	text, err := json.Marshal(play(t, Options{}))
	if err != nil || string(text) != `{"recordings":[],"totals":[],"limits":{"names":0.95,"lines":0.75,"blind":0.1},"recommended":""}` {
		t.Errorf("%s, %v", text, err)
	}
	b := newTape(t, "no-such-model", furl.FormatAnthropic)
	b.user("No reply.")
	text, err = json.Marshal(play(t, Options{Candidates: presets(t, "none")}, b.recording()))
	if err != nil || !bytes.Contains(text, []byte(`"cost":null`)) || !bytes.Contains(text, []byte(`"cost_ratio":null`)) {
		t.Errorf("%s, %v", text, err)
	}
}

// Results are in the order of windows and candidates. The totals are the sums of all
// recordings.
func TestReportTotals(t *testing.T) {
	o := Options{Candidates: presets(t, "none", "sliding-window"), Windows: []int{600, 0}}
	rep := play(t, o, ledger(t, "toy").recording(), ledger(t, "toy").recording(), ledger(t, "no-such-model").recording())
	var order []string
	for _, r := range rep.Totals {
		order = append(order, fmt.Sprintf("%s at %d: %d overflows", r.Policy, r.Window, r.Overflows))
	}
	// At 600 tokens each recording overflows twice. The unknown model has no
	// window and never overflows.
	want := "[none at 600: 6 overflows sliding-window at 600: 0 overflows none at 0: 0 overflows sliding-window at 0: 0 overflows]"
	if fmt.Sprint(order) != want {
		t.Errorf("%v\nwant %s", order, want)
	}
	none := rep.Totals[2]
	if none.Requests != 12 || none.TokensSent != 3*2175 || money(*none.Cost) != money(2*2.927) {
		t.Errorf("none: %d requests, %d tokens, cost %v", none.Requests, none.TokensSent, *none.Cost)
	}
	if none.Series != nil {
		t.Error("totals have a picture")
	}
}

// All policies are compared with none, even if it is not a candidate.
func TestReportComparesWithNone(t *testing.T) {
	mask := script{3: hide(2, "[gone]", 20)}
	rep := play(t, Options{Candidates: []Candidate{mask.candidate("mask")}}, ledger(t, "toy").recording())
	if len(rep.Totals) != 1 || rep.Totals[0].Policy != "mask" || money(*rep.Totals[0].CostRatio) != "0.959155" {
		t.Errorf("%+v", rep.Totals)
	}
}

// Notes qualify the numbers of the report.
func TestReportNotes(t *testing.T) {
	p := &asker{}
	rep := play(t, Options{Candidates: []Candidate{{Name: "asker", New: func(z policy.Summarizer) (furl.Policy, error) { p.z = z; return p, nil }}}}, ledger(t, "toy").recording())
	if !slices.ContainsFunc(rep.Notes, func(n string) bool { return strings.HasPrefix(n, "Summaries of ") }) {
		t.Errorf("notes %q do not explain the summary", rep.Notes)
	}
	rep = play(t, Options{}, ledger(t, "no-such-model").recording(), ledger(t, "").recording())
	if len(rep.Notes) != 1 || rep.Notes[0] != "Not in the catalogue: no-such-model, unnamed models." {
		t.Errorf("notes %q", rep.Notes)
	}
}

// Errors name the recording, the session and the record.
func TestRunErrors(t *testing.T) {
	odd := ledger(t, "toy")
	odd.s.Wire = "smoke-signals"
	broken := Candidate{Name: "broken", New: func(policy.Summarizer) (furl.Policy, error) { return nil, errors.New("no such thing") }}
	failing := Candidate{Name: "failing", New: func(policy.Summarizer) (furl.Policy, error) { return failingPolicy{}, nil }}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		o    Options
		tape *tape
		want string
	}{
		{"wire", t.Context(), Options{}, odd, `small.jsonl: session s: unknown wire format "smoke-signals"`},
		{"candidate", t.Context(), Options{Candidates: []Candidate{broken}}, ledger(t, "toy"), "small.jsonl: no such thing"},
		{"plan", t.Context(), Options{Candidates: []Candidate{failing}}, ledger(t, "toy"), "small.jsonl: session s, record 2, policy failing: out of ideas"},
		{"canceled", canceled, Options{}, ledger(t, "toy"), "small.jsonl: context canceled"},
	} {
		tt.o.Catalog = toyCatalog(t)
		rep, err := Run(tt.ctx, slices.Values([]*transcript.Recording{tt.tape.recording()}), tt.o)
		if rep != nil || err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, %v, want %s", tt.name, rep, err, tt.want)
		}
	}
	if _, err := Candidates(nil, "none", "nonesuch"); err == nil || !strings.Contains(err.Error(), "nonesuch") {
		t.Errorf("an unknown preset: %v", err)
	}
}

type failingPolicy struct{}

func (failingPolicy) Name() string { return "failing" }

func (failingPolicy) Plan(context.Context, *furl.State, furl.Budget) (*furl.Plan, error) {
	return nil, errors.New("out of ideas")
}

// Progress counts every run of a recording, including policy none.
func TestRunProgress(t *testing.T) {
	var seen []Progress
	o := Options{Candidates: presets(t, "rolling"), Windows: []int{600, 0}, Progress: func(p Progress) { seen = append(seen, p) }}
	play(t, o, ledger(t, "toy").recording(), ledger(t, "toy").recording())
	first, last := seen[0], seen[len(seen)-1]
	if len(seen) != 10 || first != (Progress{File: "small.jsonl", Total: 4}) || last != (Progress{File: "small.jsonl", Done: 4, Total: 4, Files: 1}) {
		t.Errorf("%d reports, first %+v, last %+v", len(seen), first, last)
	}
}
