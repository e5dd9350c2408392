package replay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// kept formats the measures of what stayed visible.
func kept(r *Result) string {
	return fmt.Sprintf("refs %d/%d+%d own %d/%d+%d lines %d/%d refetches %d",
		r.ReferencesKept, r.References, r.ReferencesRecallable,
		r.OwnReferencesKept, r.OwnReferences, r.OwnRecallable,
		r.QuotedLinesKept, r.QuotedLines, r.Refetches)
}

const header = "func parseHeader(line string) (Header, error) {"

// hunt is a session in which the agent reuses identifiers and lines:
//
//	reply 1  reads pkg/parse.go, which the user named: one reference, first-hand
//	reply 2  mentions parseHeader, which only the result has: one reference,
//	         first-hand; edits pkg/parse.go, which it named itself before: one
//	         own; and quotes a line of the result
//	reply 3  reads pkg/parse.go again: one own, and a repeated call
func hunt(t testing.TB) *tape {
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.user("Fix the parser in pkg/parse.go please.")
	b.asks("0s")
	b.calls("c1", "read", `{"file_path":"pkg/parse.go"}`)
	b.result("c1", header+"\n\treturn Header{}, nil\n}")
	b.asks("10s")
	b.message(furl.RoleAssistant,
		furl.Block{Kind: furl.KindText, Text: "parseHeader needs a check."},
		furl.Block{Kind: furl.KindCall, ID: "c2", Name: "edit", Args: []byte(`{"file_path":"pkg/parse.go","old":"` + header + `"}`)})
	b.result("c2", "done")
	b.asks("20s")
	b.calls("c3", "read", `{"file_path":"pkg/parse.go"}`)
	b.result("c3", "all of it")
	b.asks("30s")
	b.says("Done.")
	return b
}

func TestRunKept(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script script
		want   string
	}{
		{"none", nil, "refs 2/2+0 own 2/2+0 lines 1/1 refetches 0"},
		// Request 2 no longer has parseHeader; a search finds the block. The
		// name of the file is still in the call.
		{"the result is hidden at once", script{2: hide(2, "[gone]", 5)}, "refs 1/2+1 own 2/2+0 lines 0/1 refetches 1"},
		// Before request 3 everything has been used, but the file is read again.
		{"the result is hidden later", script{3: hide(2, "[gone]", 5)}, "refs 2/2+0 own 2/2+0 lines 1/1 refetches 1"},
		// A placeholder that lists an identifier keeps the reference, and one
		// with the line keeps the line; the call is repeated with both.
		{"with its names", script{2: hide(2, "[gone, it had parseHeader]", 5)}, "refs 2/2+0 own 2/2+0 lines 0/1 refetches 1"},
		{"with the line", script{2: hide(2, "[gone but for]\n"+header, 5)}, "refs 2/2+0 own 2/2+0 lines 1/1 refetches 1"},
		// The user message is hidden before the first reply uses the file that
		// it names; a search finds it. Later the call has it.
		{"words are hidden", script{1: hide(0, "[gone]", 5)}, "refs 1/2+1 own 2/2+0 lines 1/1 refetches 0"},
	} {
		rep := play(t, Options{Candidates: []Candidate{tt.script.candidate("p")}}, hunt(t).recording())
		if got := kept(&rep.Totals[0]); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if n := rep.Totals[0].InvalidRequests; n != 0 {
			t.Errorf("%s: %d invalid requests, first: %s", tt.name, n, rep.Totals[0].FirstRefusal)
		}
	}
}

// A block that is not among the first five results is not recallable.
func TestRunRecallableAmongFive(t *testing.T) {
	for _, others := range []int{4, 5} {
		b := newTape(t, "toy", furl.FormatAnthropic)
		b.user("Begin.")
		b.asks("0s")
		b.calls("c0", "read", `{}`)
		b.result("c0", "parseHeader "+strings.Repeat("and much else that is not it ", 200))
		hideAll := script{}
		for i := range others {
			b.asks("1s")
			b.calls(fmt.Sprint("c", i+1), "read", `{}`)
			b.result(fmt.Sprint("c", i+1), fmt.Sprint("parse header ", i)) // parts of the name
		}
		b.asks("2s")
		b.says("parseHeader it is.")
		hideAll[others+2] = func(s *furl.State, bud furl.Budget) *furl.Reduction {
			red := &furl.Reduction{Stage: "mask"}
			for i := 2; i < s.Len(); i += 2 {
				red.Items = append(red.Items, hide(i, "[gone]", 5)(s, bud).Items...)
			}
			return red
		}
		r := play(t, Options{Candidates: []Candidate{hideAll.candidate("p")}}, b.recording()).Totals[0]
		if r.References != 1 || r.ReferencesKept != 0 || r.ReferencesRecallable != 1 {
			t.Errorf("%d others: %s, want the block that holds the whole name found first", others, kept(&r))
		}
	}
}

// A rewind removes the messages and reductions after it.
func TestRunRewinds(t *testing.T) {
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.user(words(96))
	b.asks("0s") // 100
	b.calls("c1", "read", `{"path":"src"}`)
	r1 := b.result("c1", words(161))
	b.asks("10s") // 345
	b.says(words(46))
	b.user(words(96))
	b.asks("20s") // 495; the policy masks r1: 350
	b.says(words(46))
	b.rewind(r1)
	b.user(words(196))
	b.asks("30s") // 545, with r1 as it was
	b.says("done")
	mask := script{3: hide(2, "[gone]", 20)}
	r := play(t, Options{Candidates: []Candidate{mask.candidate("p")}}, b.recording()).Recordings[0].Results[0]
	var sizes, read []int
	for _, p := range r.Series[0].Points {
		sizes, read = append(sizes, p.Tokens), append(read, p.Read)
	}
	if got, want := fmt.Sprint(sizes), "[100 345 350 545]"; got != want {
		t.Errorf("requests of %s tokens, want %s", got, want)
	}
	// Request 4 differs from request 3 after a1, where no entry ends; but
	// request 2 ended within the lookback of request 4's end.
	if got, want := fmt.Sprint(read), "[0 100 100 345]"; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
	if r.CacheBreaks != 2 || r.Reductions != 1 {
		t.Errorf("%d breaks and %d reductions, want 2 and 1", r.CacheBreaks, r.Reductions)
	}
}

// A branch that took over reductions is sent without what they hide.
func TestRunTakeover(t *testing.T) {
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.user(words(96))
	b.asks("0s") // 100
	b.calls("c1", "read", `{"path":"src"}`)
	r1 := b.result("c1", words(161))
	b.asks("10s") // 345
	b.says(words(46))
	b.user(words(96))
	b.add(&furl.Reduction{Stage: "mask", Items: []furl.Item{{Spans: []furl.Span{{First: furl.Pos{Msg: r1}, Last: furl.Pos{Msg: r1}}}, Show: furl.In{Text: "[gone]", Tokens: 20}}}})
	b.asks("20s") // 495, 350 without r1
	left := b.says(words(46))
	b.rewind(r1)
	b.user(words(196))
	take, err := b.s.Log.Takeover(left, nil)
	if err != nil || take == nil {
		t.Fatal(take, err)
	}
	b.add(take)
	b.asks("30s") // 545, 400 without r1
	b.says("done")
	r := play(t, Options{Candidates: []Candidate{script{}.candidate("p")}}, b.recording()).Recordings[0].Results[0]
	var sizes []int
	for _, p := range r.Series[0].Points {
		sizes = append(sizes, p.Tokens)
	}
	if got, want := fmt.Sprint(sizes), "[100 345 350 400]"; got != want {
		t.Errorf("requests of %s tokens, want %s", got, want)
	}
}

// A retried request finds the reductions of the first attempt.
func TestRunRetry(t *testing.T) {
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.user(words(96))
	b.asks("0s")
	b.calls("c1", "read", `{"path":"src"}`)
	r1 := b.result("c1", words(161))
	b.asks("10s")
	b.rewind(r1)
	b.asks("20s")
	b.says("done")
	mask := script{2: hide(2, "[gone]", 20)}
	r := play(t, Options{Candidates: []Candidate{mask.candidate("p")}}, b.recording()).Recordings[0].Results[0]
	for i, p := range r.Series[0].Points[1:] {
		if p.Tokens != 200 {
			t.Errorf("request %d has %d tokens, want 200", i+2, p.Tokens)
		}
	}
}

// The recorded agent's own compactions apply under each policy, and what they hid
// does not count as lost.
func TestRunRecordedCompaction(t *testing.T) {
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.user("Look at pkg/parse.go and cmd/main.go.")
	b.asks("0s", furl.Usage{Input: 1000})
	b.says("I will.")
	b.user("Go on.")
	summary := furl.TextMessage(furl.RoleUser, "The user wants pkg/parse.go.")
	first, _ := b.s.Log.State().Message(0)
	second, _ := b.s.Log.State().Message(1)
	b.add(&furl.Reduction{
		Stage:   "compact",
		Items:   []furl.Item{{Spans: []furl.Span{{First: furl.Pos{Msg: first}, Last: furl.Pos{Msg: second}}}, Show: furl.Mark{Messages: []*furl.Message{summary}}}},
		Summary: &furl.Summary{Number: 1, Text: words(300)},
	})
	b.asks("10s", furl.Usage{Input: 300, CacheRead: 600})
	b.says("pkg/parse.go and cmd/main.go are read.") // one that the summary has, one that it has not
	rep := play(t, Options{}, b.recording())
	for i := range rep.Totals {
		r := &rep.Totals[i]
		if got := kept(r); got != "refs 1/1+0 own 0/0+0 lines 0/0 refetches 0" {
			t.Errorf("%s: %s", r.Policy, got)
		}
		if r.TokensSent != 1900 || r.CacheBreaks != 1 {
			t.Errorf("%s: %d tokens, %d breaks", r.Policy, r.TokensSent, r.CacheBreaks)
		}
	}
	s, err := prepare(t.Context(), b.s, must(t, Options{Catalog: toyCatalog(t)}))
	if err != nil {
		t.Fatal(err)
	}
	if s.summary != 300 {
		t.Errorf("summaries of %d tokens, want those of the recording, 300", s.summary)
	}
}

func must(t *testing.T, o Options) *Options {
	t.Helper()
	c, err := o.complete()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// With a model that binds thinking, policy none shows all of it, before and after
// a recorded compaction, and sizes are those that were reported.
func TestRunBoundThinking(t *testing.T) {
	b := newTape(t, "toy-binds", furl.FormatAnthropic)
	think := func(text string) furl.Block { return furl.Block{Kind: furl.KindThinking, Text: text, Signature: 8} }
	b.user(words(96))
	b.asks("0s", furl.Usage{Input: 1100})
	b.message(furl.RoleAssistant, think(words(46)), furl.Block{Kind: furl.KindCall, ID: "c1", Name: "read", Args: []byte(`{}`)})
	b.result("c1", "The file has parseHeader.")
	b.asks("10s", furl.Usage{Input: 1400})
	b.message(furl.RoleAssistant, think("parseHeader it is, in pkg/parse.go."), furl.Block{Kind: furl.KindText, Text: "Found."})
	b.user("And now?")
	seq := func(i int) furl.Pos { s, _ := b.s.Log.State().Message(i); return furl.Pos{Msg: s} }
	b.add(&furl.Reduction{Stage: "compact", Items: []furl.Item{{
		Spans: []furl.Span{{First: seq(0), Last: seq(0)}},
		Show:  furl.Mark{Messages: []*furl.Message{furl.TextMessage(furl.RoleUser, "The user said something.")}},
	}}})
	b.asks("20s", furl.Usage{Input: 1300})
	b.says("pkg/parse.go, parseHeader.")
	r := play(t, Options{Candidates: presets(t, "none")}, b.recording()).Totals[0]
	if r.TokensSent != 3800 || r.InvalidRequests != 0 {
		t.Errorf("sent %d tokens, want 3800; %d invalid: %s", r.TokensSent, r.InvalidRequests, r.FirstRefusal)
	}
	if r.ReferencesKept != r.References || r.References == 0 || r.OwnReferencesKept != r.OwnReferences {
		t.Errorf("policy none lost something: %s", kept(&r))
	}
}

// Sub-agents have separate caches and count towards their session.
func TestRunSubAgents(t *testing.T) {
	sub := ledger(t, "toy")
	sub.s.ID = "sub"
	rep := play(t, Options{Candidates: presets(t, "none")}, ledger(t, "toy").recording(sub))
	want{
		requests: 8, sent: 2 * 2175, peak: 840,
		write: 2 * 1530, read: 2 * 645, out: 2 * 190, ratio: "1.000000",
	}.check(t, &rep.Totals[0])
	r := rep.Recordings[0]
	if r.Requests != 8 || r.Messages != 16 || len(r.Results[0].Series) != 2 || r.Results[0].Series[1].Session != "sub" {
		t.Errorf("recording: %d requests, %d messages, %d series", r.Requests, r.Messages, len(r.Results[0].Series))
	}
}

// Requests that the provider would refuse are counted. The first has its error.
func TestRunInvalidRequests(t *testing.T) {
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.says("I begin.") // no request may begin so
	b.asks("0s")
	b.says("And go on.")
	b.user("Stop.")
	b.asks("1s")
	b.says("Yes.")
	r := play(t, Options{Candidates: presets(t, "none")}, b.recording()).Totals[0]
	if r.InvalidRequests != 2 || r.FirstRefusal == "" {
		t.Errorf("%d invalid requests, want 2; first: %q", r.InvalidRequests, r.FirstRefusal)
	}
}

// A result that the recorded agent shortens itself stays hidden if a policy has
// hidden its step before.
func TestRunRecordedMaskInHiddenStep(t *testing.T) {
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.user("Begin.")
	b.asks("0s")
	b.calls("c1", "read", `{}`)
	r1 := b.result("c1", words(500))
	b.asks("10s")
	b.calls("c2", "read", `{}`)
	r2 := b.result("c2", words(100))
	b.asks("20s")
	b.says("And?")
	clear := func(at furl.Seq) furl.Item {
		return furl.Item{Spans: []furl.Span{{First: furl.Pos{Msg: at}, Last: furl.Pos{Msg: at}}}, Show: furl.In{Text: "[cleared]", Tokens: 7}}
	}
	mine := b.add(&furl.Reduction{Stage: "mask", Items: []furl.Item{clear(r1)}})
	b.add(&furl.Reduction{Stage: "mask", Items: []furl.Item{clear(r1), clear(r2)}})
	b.add(&furl.Restoration{Of: mine})
	b.user("Go on.")
	b.asks("30s")
	b.says("Done.")
	cut := script{3: func(s *furl.State, bud furl.Budget) *furl.Reduction {
		m := furl.TextMessage(furl.RoleUser, "[cut]")
		m.Measure(bud.Counter)
		v := s.View(bud.Model)
		return &furl.Reduction{Stage: "truncate", Items: []furl.Item{{Spans: v.Spans(v.Units[1:2]...), Show: furl.Mark{Messages: []*furl.Message{m}}}}}
	}}
	for _, cand := range []Candidate{presets(t, "none")[0], cut.candidate("cut")} {
		in, err := Inspect(t.Context(), b.s, cand, 0, 0, Options{Catalog: toyCatalog(t)})
		if err != nil {
			t.Fatal(err)
		}
		var results []string
		for i := range in.View.Messages {
			if sb := in.View.Messages[i].Blocks[0]; sb.Block.Kind == furl.KindResult {
				results = append(results, sb.Words())
			}
		}
		want := "[[cleared] [cleared]]"
		if cand.Name == "cut" {
			want = "[[cleared]]"
		}
		if got := fmt.Sprint(results); got != want {
			t.Errorf("%s shows results %s, want %s", cand.Name, got, want)
		}
	}
	rep := play(t, Options{Candidates: []Candidate{cut.candidate("cut")}}, b.recording())
	if r := rep.Totals[0]; r.InvalidRequests != 0 {
		t.Errorf("%d invalid requests: %s", r.InvalidRequests, r.FirstRefusal)
	}
}
