package policy

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
)

// anySession is a random conversation: words, steps of several calls, results
// of all lengths, images, marks of earlier plans.
func anySession(t *rapid.T, tb testing.TB) *session {
	s := newSession(tb)
	if rapid.Bool().Draw(t, "system") {
		s.say(furl.RoleSystem, "be brief")
	}
	s.say(furl.RoleUser, text(rapid.IntRange(1, 40).Draw(t, "first")))
	for range rapid.IntRange(1, 25).Draw(t, "messages") {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			s.say(furl.RoleUser, text(rapid.IntRange(1, 40).Draw(t, "words")))
		case 1:
			s.say(furl.RoleAssistant, text(rapid.IntRange(1, 40).Draw(t, "words")))
		default:
			var results []string
			for range rapid.IntRange(1, 3).Draw(t, "calls") {
				results = append(results, text(rapid.IntRange(1, 60).Draw(t, "size")))
			}
			s.step("read", results...)
		}
	}
	s.say(furl.RoleUser, "go on")
	return s
}

func anyOptions(t *rapid.T) Graduated {
	return Graduated{
		MaxInputTokens:      rapid.IntRange(20, 900).Draw(t, "budget"),
		KeepSteps:           rapid.IntRange(1, 6).Draw(t, "keep"),
		MaxObservationChars: rapid.IntRange(1, 200).Draw(t, "longer"),
		ExtractChars:        rapid.IntRange(100, 800).Draw(t, "extract"),
	}
}

func TestGraduatedProperties(t *testing.T) {
	t.Run("M7 masking off equals extract then truncate", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			s, o := anySession(rt, t), anyOptions(rt)
			o.ObservationMasking = new(false)
			keep, budget := o.KeepSteps, inputBudget{o.MaxInputChars, o.MaxInputTokens}
			alone := &Pipeline{
				Label:   "alone",
				Trigger: func(v *furl.View, b furl.Budget) bool { return !budget.fits(v, b) },
				Fits:    budget.fits,
				Stages: []Stage{
					&Extract{KeepSteps: keep, MaxChars: o.ExtractChars},
					&Truncate{KeepSteps: keep, Fits: budget.holds},
				},
			}
			b := s.budget(0)
			got, err1 := must(t, "graduated", o).Plan(context.Background(), s.log.State(), b)
			want, err2 := alone.Plan(context.Background(), s.log.State(), b)
			if err1 != nil || err2 != nil {
				rt.Fatal(err1, err2)
			}
			if got.View.Prefix() != want.View.Prefix() || got.After != want.After {
				rt.Fatalf("with masking off %+v, the two stages alone %+v", got.Steps, want.Steps)
			}
		})
	})
	t.Run("M8 ids, roles and calls stay", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			s, o := anySession(rt, t), anyOptions(rt)
			before := s.view()
			type place struct {
				role furl.Role
				kind furl.Kind
				id   string
			}
			places := make(map[furl.Pos]place)
			for _, sh := range before.Messages {
				for _, sb := range sh.Blocks {
					places[sb.Pos] = place{sh.Msg.Role, sb.Block.Kind, sb.Block.ID}
				}
			}
			s.plan(must(t, "graduated", o), s.budget(0))
			for _, sh := range s.view().Messages {
				for _, sb := range sh.Blocks {
					if sh.Index < 0 {
						continue
					}
					if got := (place{sh.Msg.Role, sb.Block.Kind, sb.Block.ID}); got != places[sb.Pos] {
						rt.Fatalf("block %v is %v, was %v", sb.Pos, got, places[sb.Pos])
					}
				}
			}
		})
	})
	t.Run("M1 it fits, or the plan says why not", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			s, o := anySession(rt, t), anyOptions(rt)
			b := s.budget(0)
			plan := s.plan(must(t, "graduated", o), b)
			switch {
			case b.Size <= o.MaxInputTokens && len(plan.Reductions) > 0:
				rt.Fatalf("%d tokens fit %d, and still %+v", b.Size, o.MaxInputTokens, plan.Steps)
			case plan.After > o.MaxInputTokens && plan.Reason == "":
				rt.Fatalf("%d tokens are left of %d and nothing says why: %+v", plan.After, o.MaxInputTokens, plan.Steps)
			}
			v := s.view()
			if unpaired(v) != 0 {
				rt.Fatalf("%d calls or results without a partner", unpaired(v))
			}
			for _, u := range v.Units {
				if u.Step > v.Steps-o.KeepSteps {
					for _, sb := range u.Blocks {
						if sb.By != 0 {
							rt.Fatalf("a result of step %d is masked", u.Step)
						}
					}
				}
			}
		})
	})
}

// broken is a stage that hides a result without its call.
type broken struct{}

func (broken) Name() string { return "broken" }

func (broken) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	for i := range v.Units {
		u := &v.Units[i]
		if u.Kind != furl.UnitStep || len(u.Blocks) < 2 {
			continue
		}
		at := u.Blocks[1].Pos
		item := Marker(v, b, v.Units[i:i+1], "gone")
		item.Spans = []furl.Span{{First: at, Last: at}}
		return &furl.Reduction{Stage: "broken", Items: []furl.Item{item}}, nil
	}
	return nil, Nothing
}

func TestPairsBroken(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	for range 4 {
		s.step("read", text(40))
	}
	fits := func(_ *furl.View, b furl.Budget) bool { return b.Size <= 120 }
	pipeline := func(check func(before, after *furl.View) error, first Stage) *Pipeline {
		return &Pipeline{
			Label:   "graduated",
			Trigger: func(v *furl.View, b furl.Budget) bool { return !fits(v, b) },
			Fits:    fits,
			Check:   check,
			Stages:  []Stage{first, &Truncate{}},
		}
	}
	for name, p := range map[string]*Pipeline{
		"M6 a stage that parts a pair is passed over":    pipeline(checkPairs, broken{}),
		"M6 a stage that the check refuses, passed over": pipeline(refuse(1), &Mask{}),
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := p.Plan(context.Background(), s.log.State(), s.budget(0))
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.Steps) != 2 || !plan.Steps[0].Failed || plan.Steps[1].Skipped != "" {
				t.Fatalf("steps %+v, want a failure and a truncation", plan.Steps)
			}
			g, err := GraduatedResult(s.log.State(), plan)
			if err != nil {
				t.Fatal(err)
			}
			if g.InvariantStatus != "fallback" || g.ReductionStage != "fallback" || g.DroppedCount != 4 {
				t.Errorf("result %+v", g)
			}
			if unpaired(plan.View) != 0 {
				t.Error("the view has calls or results without a partner")
			}
		})
	}
}

// refuse is a check that fails the first n times.
func refuse(n int) func(_, _ *furl.View) error {
	return func(_, _ *furl.View) error {
		if n--; n >= 0 {
			return errPairs
		}
		return nil
	}
}

func TestUnpaired(t *testing.T) {
	log := furl.NewLog()
	for i, m := range []*furl.Message{
		{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: "a"}, {Kind: furl.KindCall, ID: "b"}}},
		{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindResult, ID: "a"}, {Kind: furl.KindResult, ID: "x"}}},
	} {
		if _, err := log.Append(furl.Seq(i), newSession(t).at, furl.Client, m); err != nil {
			t.Fatal(err)
		}
	}
	if got := unpaired(log.State().View(furl.Model{})); got != 2 {
		t.Errorf("unpaired = %d, want call b and result x", got)
	}
}

func TestDispatch(t *testing.T) {
	whole := func(*Result) string { return "whole" }
	write := dispatch("<", ">", 0, whole)
	for _, tt := range []struct{ text, want string }{
		{"no delimiters", "whole"},
		{"a < without end", "whole"},
		{"an end > first", "whole"},
		{"aé<keep>b", "[dispatch output masked — 3 chars]\n<keep>"},
		{"<one>xx<two>", "[dispatch output masked — 2 chars]\n<one>\n<two>"},
		{"<one>xx<two", "[dispatch output masked — 6 chars]\n<one>"},
		{"<a<b>c>", "[dispatch output masked — 2 chars]\n<a<b>"},
	} {
		t.Run("M3 "+tt.text, func(t *testing.T) {
			got := write(&Result{Block: &furl.ShownBlock{Block: &furl.Block{Text: tt.text}}})
			if got != tt.want {
				t.Errorf("%q becomes %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

// The placeholder of a masked result may be cut, the delimited blocks never.
func TestClipTo(t *testing.T) {
	long := "[observation masked — 120 chars]"
	for _, tt := range []struct {
		most int
		want string
	}{
		{0, long}, {32, long}, {80, long}, {24, "[observation masked —..."}, {4, "[..."}, {3, "[ob"}, {1, "["},
	} {
		t.Run(fmt.Sprintf("M4 at most %d", tt.most), func(t *testing.T) {
			if got := clipTo(long, tt.most); got != tt.want {
				t.Errorf("clipped to %q, want %q", got, tt.want)
			}
			write := dispatch("<", ">", tt.most, func(*Result) string { return long })
			if got := write(&Result{Block: &furl.ShownBlock{Block: &furl.Block{Text: "nothing kept"}}}); got != tt.want {
				t.Errorf("masked by %q, want %q", got, tt.want)
			}
			got := write(&Result{Block: &furl.ShownBlock{Block: &furl.Block{Text: "before<kept whole, however long it may be>"}}})
			if want := clipTo("[dispatch output masked — 6 chars]", tt.most) + "\n<kept whole, however long it may be>"; got != want {
				t.Errorf("masked by %q, want %q", got, want)
			}
		})
	}
}

// Instructions that are inside the conversation are not observations: no
// stage of the pipeline takes them.
func TestInstructionsStay(t *testing.T) {
	for _, o := range []Graduated{
		{MaxInputTokens: 140, KeepSteps: 1, ExtractChars: 300},
		{MaxInputTokens: 40, KeepSteps: 1},
		{MaxInputTokens: 40, KeepSteps: 1, ObservationMasking: new(false)},
	} {
		t.Run(fmt.Sprintf("M2 system messages stay at %d tokens", o.MaxInputTokens), func(t *testing.T) {
			s := newSession(t)
			s.say(furl.RoleSystem, "be brief")
			s.say(furl.RoleUser, "go")
			s.step("read", text(40))
			s.say(furl.RoleDeveloper, "do not touch the tests")
			s.step("read", text(40))
			s.step("read", text(40))
			s.say(furl.RoleUser, "on")
			plan := s.plan(must(t, "graduated", o), s.budget(0))
			if len(plan.Reductions) == 0 {
				t.Fatalf("nothing was reduced: %+v", plan.Steps)
			}
			for _, at := range []int{0, 4} {
				seq, _ := s.log.State().Message(at)
				if p := (furl.Pos{Msg: seq}); s.log.State().ShownBy(p) != 0 {
					t.Errorf("message %d is hidden by %+v", at+1, plan.Steps)
				}
			}
		})
	}
}

// A clip by /rolling-context before the preset is a mask, and a result that both shorten
// counts once. A budget below the newest steps is impossible.
func TestM5ClippedAndImpossible(t *testing.T) {
	for _, tt := range []struct {
		name   string
		budget int
		want   GraduatedOutcome
	}{
		{"M5 a clip alone", 5000, GraduatedOutcome{Reduced: true, MaskedCount: 2, ReductionStage: "masking", InvariantStatus: "ok"}},
		{"M5 a mask over a clip", 3000, GraduatedOutcome{Reduced: true, MaskedCount: 2, ReductionStage: "masking", InvariantStatus: "ok"}},
		{"M5 a budget below the newest step", 500, GraduatedOutcome{Reduced: true, MaskedCount: 2, DroppedCount: 4, ReductionStage: "summarization", InvariantStatus: "impossible"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSession(t)
			s.say(furl.RoleUser, "go")
			s.step("read", text(400))
			s.step("read", text(400))
			s.step("read", text(400))
			p := must(t, graduated, Settings{RollingContext: new(true)}, ToolAge{MaxOutputTokens: 300}, Graduated{MaxInputChars: tt.budget, KeepSteps: 1})
			b := s.budget(0)
			before, err := furl.Fold(s.log, s.log.Head())
			if err != nil {
				t.Fatal(err)
			}
			plan, err := p.Plan(t.Context(), s.log.State(), b)
			if err != nil {
				t.Fatal(err)
			}
			o, err := OutcomeOf(p, before, &b, plan)
			if err != nil || o.Graduated == nil {
				t.Fatalf("outcome %+v: %v", o, err)
			}
			got := *o.Graduated
			got.MaskedChars = 0
			if got != tt.want || o.Graduated.MaskedChars < 400 {
				t.Errorf("result %+v, want %+v; view of %d characters, steps %+v", *o.Graduated, tt.want, Chars(plan.View), plan.Steps)
			}
		})
	}
}

func TestGraduatedJSON(t *testing.T) {
	g, err := GraduatedResult(new(furl.State), &furl.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", g)
	if want := "{Reduced:false DroppedCount:0 MaskedCount:0 MaskedChars:0 ReductionStage: InvariantStatus:ok}"; got != want {
		t.Errorf("the result of a plan that did nothing is %s", got)
	}
}
