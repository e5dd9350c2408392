package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
)

// fakeModel writes summaries in tests.
type fakeModel struct {
	window int
	sum    Summary
	err    error
	asked  []SummaryRequest
}

func (m *fakeModel) SummaryWindow() int { return m.window }

func (m *fakeModel) Summarize(_ context.Context, r SummaryRequest) (Summary, error) {
	m.asked = append(m.asked, r)
	return m.sum, m.err
}

func short(text string) *fakeModel {
	return &fakeModel{sum: Summary{Text: text, Model: "m", Usage: furl.Usage{Input: 900, Output: 10}}}
}

// long is a session of so many steps after the first message.
func long(t testing.TB, steps int) *session {
	s := newSession(t)
	s.say(furl.RoleUser, "the task "+text(10))
	for range steps {
		s.step("read", text(60))
	}
	return s
}

func TestSummaryText(t *testing.T) {
	t.Run("C3 texts are joined by an empty line, calls do not count", func(t *testing.T) {
		got, err := SummaryText(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{
			{Kind: furl.KindThinking, Text: "hm"},
			{Kind: furl.KindText, Text: "one\n"},
			{Kind: furl.KindText, Text: "  "},
			{Kind: furl.KindCall, ID: "a", Name: "rm", Args: []byte(`{"all":true}`)},
			{Kind: furl.KindText, Text: "two"},
		}})
		if want := "one\n\ntwo"; got != want || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	})
	t.Run("C3 no text is an error", func(t *testing.T) {
		_, err := SummaryText(&furl.Message{Blocks: []furl.Block{{Kind: furl.KindCall, Name: "x", Args: []byte(`{}`)}}})
		if !errors.Is(err, ErrNoSummary) {
			t.Errorf("got %v, want ErrNoSummary", err)
		}
	})
}

func TestSizeAtTheThreshold(t *testing.T) {
	t.Run("C2 cache reads and writes count, and what came after", func(t *testing.T) {
		s := newSession(t)
		s.say(furl.RoleUser, text(30))
		s.add(&furl.Exchange{Model: "m", Usage: furl.Usage{Input: 100, CacheRead: 500, CacheWrite: 190}})
		s.step("read", text(50)) // 4+1+1 for the call, 54 for the result
		const want = 790 + 60
		if got := s.log.State().Size(); got != want {
			t.Fatalf("the size is %d, want %d", got, want)
		}
		for window, due := range map[int]bool{1000: true, 1001: true, 1002: false} {
			p := must(t, "compaction", Settings{Summarizer: short("done")}).(*Pipeline)
			b := furl.Budget{Counter: words{}, Window: window, Size: want}
			if got := p.trigger()(s.view(), b); got != due {
				t.Errorf("%d of %d reaches the threshold: %v, want %v", want, window, got, due)
			}
		}
	})
	t.Run("C1 a smaller model is a smaller limit at once", func(t *testing.T) {
		s := long(t, 10)
		p := must(t, "compaction", Settings{Summarizer: short("done")})
		if plan := s.plan(p, s.budget(2000)); len(plan.Reductions) != 0 {
			t.Errorf("reduced at %d of 2000 tokens", plan.Before)
		}
		if plan := s.plan(p, s.budget(500)); len(plan.Reductions) != 1 {
			t.Errorf("not reduced at %d of 500 tokens: %+v", plan.Before, plan.Steps)
		}
	})
	t.Run("C1 a share of one's own", func(t *testing.T) {
		s := long(t, 10)
		for share, want := range map[float64]int{0.5: 1, 0.9: 0} {
			p := must(t, "compaction", Settings{Summarizer: short("done")}, Compaction{Threshold: share})
			b := s.budget(0)
			b.Window = b.Size * 10 / 7
			plan, err := p.Plan(t.Context(), s.log.State(), b)
			if err != nil || len(plan.Reductions) != want {
				t.Errorf("at a threshold of %v there are %d reductions, %v; want %d", share, len(plan.Reductions), err, want)
			}
		}
	})
}

func TestCompaction(t *testing.T) {
	s := long(t, 10)
	model := short("it is done")
	b := s.budget(800)
	b.Now = s.at
	b.Model.Prices = furl.Prices{Input: 1, Output: 10}
	plan := s.plan(must(t, "compaction", Settings{Summarizer: model}), b)
	if len(plan.Reductions) != 1 {
		t.Fatalf("%+v", plan.Steps)
	}
	red := plan.Reductions[0]
	t.Run("C3 request and reply are recorded", func(t *testing.T) {
		if red.Summary.Request != DefaultSummaryRequest || red.Summary.Text != "it is done" || red.Summary.Model != "m" {
			t.Errorf("recorded %+v", red.Summary)
		}
	})
	t.Run("C3 the request asks for what is needed", func(t *testing.T) {
		for _, word := range []string{"task", "files were created, changed or read", "problems", "structure", "dependencies", "conventions", "very next action", "plain text", "Do not call any tools"} {
			if !strings.Contains(DefaultSummaryRequest, word) {
				t.Errorf("it does not say %q", word)
			}
		}
	})
	t.Run("C4 the numbers of the record", func(t *testing.T) {
		list := Compactions(s.log.State())
		if len(list) != 1 {
			t.Fatalf("%d compactions are listed", len(list))
		}
		c := list[0]
		if c.Number != 1 || c.Archived != 18 || c.Before != b.Size || c.Freed() != b.Size-plan.After || c.Position != 21 || !c.Time.Equal(s.at) || !c.Shown {
			t.Errorf("listed %+v", c)
		}
	})
	t.Run("X4 what it cost", func(t *testing.T) {
		if want := 900*1e-6 + 10*10e-6; red.Cost.Own != want || plan.Own != red.Summary.Usage {
			t.Errorf("cost %v, own %+v; want %v", red.Cost.Own, plan.Own, want)
		}
	})
	t.Run("C5 a reloaded session has the same view", func(t *testing.T) {
		again := new(furl.State)
		for _, r := range s.log.Path(s.log.Head()) {
			if err := again.Apply(r); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := again.View(furl.Model{}).Prefix(), s.view().Prefix(); got != want {
			t.Error("the views differ")
		}
		if got := Compactions(again); len(got) != 1 || got[0] != Compactions(s.log.State())[0] {
			t.Errorf("the lists differ: %+v", got)
		}
	})
}

func TestSummaryUnused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		model *fakeModel
	}{
		{"C10 fails", &fakeModel{err: errors.New("no credit"), sum: Summary{Usage: furl.Usage{Input: 5}}}},
		{"C10 was cut off", &fakeModel{sum: Summary{Text: "it is", CutOff: true, Usage: furl.Usage{Input: 5}}}},
		{"C10 is no smaller", &fakeModel{sum: Summary{Text: text(3000), Usage: furl.Usage{Input: 5}}}},
		{"C3 is empty", &fakeModel{sum: Summary{Text: " \n", Usage: furl.Usage{Input: 5}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := long(t, 10)
			c := &Compact{Summarizer: tt.model}
			p := &Pipeline{Label: "p", Stages: []Stage{c}, NoBackstop: true}
			plan := s.plan(p, s.budget(700))
			if len(plan.Reductions) != 0 || len(plan.Steps) != 1 || plan.Steps[0].Skipped == "" {
				t.Errorf("%+v", plan.Steps)
			}
			if plan.Own.Input != 5 {
				t.Errorf("what it cost is forgotten: %+v", plan.Own)
			}
			if red, err := c.Prepare(t.Context(), s.log.State(), s.budget(700)); err == nil {
				t.Errorf("prepared %+v", red)
			}
		})
	}
}

// TestSummaryInput: whatever there is to summarize, what the summarizer is
// handed fits its window with the request and the summary, and covers just
// what is hidden.
func TestSummaryInput(t *testing.T) {
	t.Run("C10 never overflows", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			s := newSession(t)
			for range rapid.IntRange(1, 12).Draw(rt, "rounds") {
				s.say(furl.RoleUser, text(rapid.IntRange(1, 400).Draw(rt, "user")))
				for range rapid.IntRange(0, 5).Draw(rt, "steps") {
					s.step("read", text(rapid.IntRange(1, 1500).Draw(rt, "result")))
				}
				s.say(furl.RoleAssistant, text(rapid.IntRange(1, 200).Draw(rt, "answer")))
			}
			before := s.view().Prefix()
			b := s.budget(0)
			b.Window = b.Size
			model := short("done")
			model.window = rapid.IntRange(300, max(300, 3*b.Size)).Draw(rt, "window")
			c := &Compact{Summarizer: model, TailTokens: rapid.IntRange(0, 300).Draw(rt, "tail")}
			red, err := c.Reduce(t.Context(), s.view(), b)
			if s.view().Prefix() != before {
				rt.Fatal("the view has changed")
			}
			if len(model.asked) == 0 {
				return
			}
			if err != nil {
				rt.Fatal(err)
			}
			r := model.asked[0]
			prompt := words{}.Count(r.Prompt)
			if n := r.View.Tokens + prompt + r.MaxTokens; n > model.window {
				rt.Fatalf("view %d, request %d and summary %d make %d, window %d", r.View.Tokens, prompt, r.MaxTokens, n, model.window)
			}
			if r.Budget.Size != r.View.Tokens {
				rt.Fatalf("the view has %d tokens, the budget says %d", r.View.Tokens, r.Budget.Size)
			}
			if got, want := fmt.Sprint(r.View.Spans(r.Hide...)), fmt.Sprint(red.Items[0].Spans); got != want {
				rt.Fatalf("asked for %s, hidden %s", got, want)
			}
		})
	})
}

func TestPrepared(t *testing.T) {
	prepare := func(t *testing.T) (*session, *furl.Reduction) {
		s := long(t, 10)
		red, err := (&Compact{Summarizer: short("done")}).Prepare(t.Context(), s.log.State(), s.budget(800))
		if err != nil {
			t.Fatal(err)
		}
		return s, red
	}
	t.Run("C10 numbers and sizes are those of the commit", func(t *testing.T) {
		s, red := prepare(t)
		old := *red
		other := s.plan(must(t, "compaction", Settings{Summarizer: short(text(100))}, Compaction{SummaryOptions: SummaryOptions{TailTokens: 300}}), s.budget(700))
		if len(other.Reductions) != 1 {
			t.Fatalf("%+v", other.Steps)
		}
		for range 4 {
			s.step("read", text(60))
		}
		b := s.budget(800)
		late, err := Commit(s.log.State(), b, red)
		if err != nil {
			t.Fatal(err)
		}
		if late.Summary.Number != 2 || late.Before != b.Size || red.Summary.Number != 1 || red.Before != old.Before {
			t.Errorf("committed %+v, prepared %+v", late.Summary, red.Summary)
		}
		s.add(late)
		if got := s.view().Tokens; got != late.After {
			t.Errorf("the view has %d tokens, the record says %d", got, late.After)
		}
	})
	t.Run("C10 not when its base is gone", func(t *testing.T) {
		s, red := prepare(t)
		if _, err := s.log.Rewind(3, time.Time{}, furl.Person); err != nil {
			t.Fatal(err)
		}
		if _, err := Commit(s.log.State(), s.budget(800), red); !errors.Is(err, furl.ErrNotOnPath) {
			t.Errorf("got %v, want ErrNotOnPath", err)
		}
	})
	t.Run("C10 not when it frees nothing any more", func(t *testing.T) {
		s, red := prepare(t)
		s.add(red)
		skip := Skip("")
		if _, err := Commit(s.log.State(), s.budget(800), red); !errors.As(err, &skip) {
			t.Errorf("got %v, want a Skip", err)
		}
	})
	t.Run("C10 no summary", func(t *testing.T) {
		s, _ := prepare(t)
		m := &Mask{}
		red, err := m.Reduce(t.Context(), s.view(), s.budget(800))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Commit(s.log.State(), s.budget(800), red); err == nil {
			t.Error("a mask is committed as a summary")
		}
	})
}

func TestEdit(t *testing.T) {
	s := long(t, 10)
	plan := s.plan(must(t, "compaction"), s.budget(700))
	seq := s.log.Head()
	if _, err := Edit(s.log.State(), s.budget(700), seq-1, "x"); !errors.Is(err, furl.ErrNotOnPath) {
		t.Errorf("editing a message gives %v", err)
	}
	if _, err := Edit(s.log.State(), s.budget(700), seq, " "); !errors.Is(err, ErrNoSummary) {
		t.Errorf("an empty text gives %v", err)
	}
	red, err := Edit(s.log.State(), s.budget(700), seq, "in my words")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("C4 an edited summary keeps its freed tokens", func(t *testing.T) {
		was := plan.Reductions[0]
		if longer := red.After - was.After; red.Before-red.After != was.Before-was.After-longer || red.Before-red.After < 100 {
			t.Errorf("%d → %d tokens; the first text was %d → %d", red.Before, red.After, was.Before, was.After)
		}
	})
	s.add(red)
	t.Run("C10 an edited extract stays", func(t *testing.T) {
		for range 6 {
			s.step("read", text(60))
		}
		s.plan(must(t, "compaction"), s.budget(400))
		list := Compactions(s.log.State())
		if len(list) != 3 || list[1].Summary != "in my words" || !list[1].Shown || list[0].Shown {
			t.Errorf("listed %+v", list)
		}
	})
	t.Run("C10 the history is kept", func(t *testing.T) {
		if got := Compactions(s.log.State())[0]; got.Summary != plan.Reductions[0].Summary.Text || got.Number != 1 {
			t.Errorf("the first is %+v", got)
		}
	})
	if _, err := Edit(s.log.State(), s.budget(700), seq, "x"); !errors.Is(err, furl.ErrNotOnPath) {
		t.Errorf("editing what is no longer shown gives %v", err)
	}
}

func TestAsk(t *testing.T) {
	asked := 0
	o := Settings{Summarizer: short("done"), Ask: func(_ context.Context, size, window int) bool {
		asked++
		return size > 700
	}}
	p := must(t, "compaction", o)
	t.Run("C10 somebody is asked before it acts", func(t *testing.T) {
		s := long(t, 9)
		if size := s.budget(0).Size; size != 646 {
			t.Fatal(size)
		}
		if plan := s.plan(p, s.budget(1000)); asked != 0 || len(plan.Reductions) != 0 {
			t.Errorf("asked %d times below the threshold", asked)
		}
		if plan := s.plan(p, s.budget(700)); asked != 1 || len(plan.Reductions) != 0 || plan.Reason != "declined" {
			t.Errorf("asked %d times, %+v", asked, plan)
		}
		if plan := s.plan(p, s.budget(500)); plan.Backstops != 1 || plan.After > 500 {
			t.Errorf("the window is not kept: %+v", plan)
		}
	})
	t.Run("C10 a yes", func(t *testing.T) {
		s := long(t, 10)
		if plan := s.plan(p, s.budget(800)); len(plan.Reductions) != 1 || plan.Reductions[0].Stage != "compact" {
			t.Errorf("%+v", plan.Steps)
		}
	})
}

func TestHopeless(t *testing.T) {
	s := long(t, 10)
	for _, b := range []furl.Budget{{Window: 1000, Fixed: 950, Reserve: 50}, {Window: 1000, Reserve: 1000}} {
		b.Counter, b.Size = words{}, s.view().Tokens+b.Fixed
		for _, name := range []string{"compaction", "rolling", "rolling-mask-5", "tool-age"} {
			model := short("done")
			plan := s.plan(must(t, name, Settings{Summarizer: model, RollingContext: new(true)}), b)
			if !plan.Impossible || len(plan.Reductions)+len(model.asked) != 0 || plan.Reason == "" {
				t.Errorf("%s with %d of %d fixed and %d for the reply: %+v", name, b.Fixed, b.Window, b.Reserve, plan)
			}
		}
	}
}

// TestManyCompactions lets a session be compacted again and again.
func TestManyCompactions(t *testing.T) {
	t.Run("C6 numbers count up, one summary is shown", func(t *testing.T) {
		s := newSession(t)
		s.say(furl.RoleUser, "go")
		memory := 0
		p := must(t, "compaction", Settings{
			Summarizer:    short("all is well"),
			WorkingMemory: func() []string { memory++; return []string{fmt.Sprintf("plan %d", memory), " "} },
		})
		for range 120 {
			s.step("read", text(40))
			s.plan(p, s.budget(600))
			v := s.view()
			marks := slices.IndexFunc(v.Units, func(u furl.Unit) bool { return u.Kind == furl.UnitMark })
			if marks >= 0 && slices.ContainsFunc(v.Units[marks+1:], func(u furl.Unit) bool { return u.Kind == furl.UnitMark }) {
				t.Fatal("two summaries are shown")
			}
			for _, c := range codecs {
				if err := accepted(c.codec, c.body, v); err != nil {
					t.Fatal(err)
				}
			}
		}
		list := Compactions(s.log.State())
		if len(list) < 8 || memory != len(list) {
			t.Fatalf("%d compactions, memory told %d times", len(list), memory)
		}
		for i, c := range list {
			if c.Number != i+1 || c.Shown != (i == len(list)-1) || c.Stage != "compact" {
				t.Errorf("compaction %d is %+v", i+1, c)
			}
		}
		last, _ := s.log.State().Reduction(list[len(list)-1].Seq)
		blocks := last.Items[0].Show.(furl.Mark).Messages[0].Blocks
		if n := len(blocks); n != 3 || blocks[n-1].Text != fmt.Sprintf("plan %d", memory) {
			t.Errorf("the last mark ends with %q", blocks[n-1].Text)
		}
	})
}

func TestPlayback(t *testing.T) {
	t.Run("C9 no preset does anything", func(t *testing.T) {
		s := long(t, 10)
		model := short("done")
		for _, name := range NewSet().Names() {
			plan := s.plan(must(t, name, Settings{Summarizer: model, Off: true}), s.budget(100))
			if len(plan.Reductions)+len(model.asked)+len(plan.Steps) != 0 {
				t.Errorf("%s: %+v", name, plan.Steps)
			}
		}
	})
}
