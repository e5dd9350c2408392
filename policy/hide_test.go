package policy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// picked hides blocks, and returns the reduction or why nothing was hidden.
func picked(s *session, h *Hide) (*furl.Plan, string) {
	plan := s.plan(&Pipeline{Label: "hide", Stages: []Stage{h}, NoBackstop: true}, s.budget(0))
	if len(plan.Reductions) == 0 {
		return plan, plan.Steps[0].Skipped
	}
	return plan, ""
}

func block(msg furl.Seq, n int) []furl.Span {
	p := furl.Pos{Msg: msg, Block: n}
	return []furl.Span{{First: p, Last: p}}
}

func TestHide(t *testing.T) {
	build := func() *session {
		s := newSession(t)
		s.say(furl.RoleUser, text(40)) // 1
		s.step("read", text(80))       // 2 and 3
		s.step("read", text(90), "ok") // 4 and 5
		s.step("bash", text(70))       // 6 and 7
		s.say(furl.RoleUser, "go on")  // 8
		return s
	}
	for _, tt := range []struct {
		name   string
		hide   Hide
		why    string // nothing is hidden
		hidden []furl.Pos
		shows  string // a text in the view
	}{
		{"a result", Hide{Spans: block(3, 0)}, "", []furl.Pos{{Msg: 3}}, "original kept as furl:3.0"},
		{"a message with a small result", Hide{Spans: []furl.Span{{First: furl.Pos{Msg: 5}, Last: furl.Pos{Msg: 5, Block: 1}}}}, "", []furl.Pos{{Msg: 5}}, "furl:5.0"},
		{"a small result", Hide{Spans: block(5, 1)}, string(skipLarger), nil, ""},
		{"the newest step", Hide{Spans: block(7, 0)}, string(skipNewest), nil, ""},
		{"the newest step, whole", Hide{Spans: block(7, 0), Steps: true}, string(skipNewest), nil, ""},
		{"a text inside", Hide{Spans: block(1, 0)}, string(skipInside), nil, ""},
		{"the newest text of the user", Hide{Spans: block(8, 0), Steps: true}, string(skipNewest), nil, ""},
		{"an old text of the user", Hide{Spans: block(1, 0), Steps: true}, "", []furl.Pos{{Msg: 1}}, "[hidden: 1 message; originals kept as furl:1.0]"},
		{"a step", Hide{Spans: block(3, 0), Steps: true}, "", []furl.Pos{{Msg: 2}, {Msg: 3}}, "[hidden: 2 messages; originals kept as furl:2.0 to furl:3.0]"},
		{"nothing", Hide{}, string(skipHidden), nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := build()
			_, why := picked(s, &tt.hide)
			if why != tt.why {
				t.Fatalf("refused with %q, want %q", why, tt.why)
			}
			var got []furl.Pos
			st := s.log.State()
			for i := range st.Len() {
				seq, m := st.Message(i)
				for j := range m.Blocks {
					if p := (furl.Pos{Msg: seq, Block: j}); st.ShownBy(p) != 0 {
						got = append(got, p)
					}
				}
			}
			if len(got) != len(tt.hidden) {
				t.Fatalf("hid %v, want %v", got, tt.hidden)
			}
			for i := range got {
				if got[i] != tt.hidden[i] {
					t.Errorf("hid %v, want %v", got, tt.hidden)
				}
			}
			if !strings.Contains(shownText(s.view()), tt.shows) {
				t.Errorf("the view has no %q:\n%s", tt.shows, shownText(s.view()))
			}
			if tt.why == "" {
				if _, why := picked(s, &tt.hide); why == "" {
					t.Error("hidden twice")
				}
			}
		})
	}
}

func shownText(v *furl.View) string {
	var out strings.Builder
	for i := range v.Units {
		for j := range v.Units[i].Blocks {
			out.WriteString(v.Units[i].Blocks[j].Words() + "\n")
		}
	}
	return out.String()
}

// Pins hold against a person too, and what was undone can be hidden again.
func TestHideAgain(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, text(40))
	s.step("read", text(80))
	s.step("read", text(80))
	s.step("read", "ok")
	plan, _ := picked(s, &Hide{Spans: block(3, 0)})
	of := s.log.Head()
	before := shownText(s.view())
	if _, why := picked(s, &Hide{Again: of}); !strings.Contains(why, "was not undone") {
		t.Errorf("hidden again while it is hidden: %q", why)
	}
	s.add(&furl.Restoration{Of: of})
	if shownText(s.view()) == before {
		t.Fatal("the undo shows nothing")
	}
	again, why := picked(s, &Hide{Again: of})
	if why != "" || shownText(s.view()) != before {
		t.Errorf("%s: hidden again, the view is\n%s\nwant\n%s", why, shownText(s.view()), before)
	}
	if got, want := again.Reductions[0].Items, plan.Reductions[0].Items; len(got) != len(want) {
		t.Errorf("%d items, want %d", len(got), len(want))
	}
	s.add(&furl.Restoration{Of: s.log.Head()})
	s.add(&furl.Restoration{Spans: block(3, 0), Hold: furl.Pin})
	for _, h := range []*Hide{{Again: of}, {Spans: block(3, 0)}, {Spans: block(2, 0), Steps: true}} {
		if _, why := picked(s, h); why != string(skipPinned) {
			t.Errorf("%+v of a pinned result: %q", h, why)
		}
	}
	_, err := (&Hide{Again: 999}).Reduce(t.Context(), s.view(), s.budget(0))
	if !errors.Is(err, furl.ErrNotOnPath) {
		t.Errorf("a reduction that does not exist: %v", err)
	}
}

// An undone summary can be shown again, without being paid for again.
func TestHideSummaryAgain(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, text(40))
	for range 6 {
		s.step("read", text(80))
	}
	compact := &Pipeline{Label: "c", NoBackstop: true, Stages: []Stage{&Compact{Summarizer: fixedSummary{}}}}
	if plan := s.plan(compact, s.budget(0)); len(plan.Reductions) != 1 {
		t.Fatalf("%+v", plan)
	}
	of, before := s.log.Head(), shownText(s.view())
	s.add(&furl.Restoration{Of: of})
	again, why := picked(s, &Hide{Again: of})
	if why != "" || shownText(s.view()) != before {
		t.Fatalf("%s: the view is\n%s\nwant\n%s", why, shownText(s.view()), before)
	}
	if sum := again.Reductions[0].Summary; sum == nil || sum.Usage != (furl.Usage{}) || sum.Number != 1 {
		t.Errorf("summary %+v", sum)
	}
}

type fixedSummary struct{}

func (fixedSummary) Summarize(context.Context, SummaryRequest) (Summary, error) {
	return Summary{Text: "They read files.", Usage: furl.Usage{Input: 100, Output: 4}}, nil
}
