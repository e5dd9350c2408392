package policy

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
)

func TestPresetNames(t *testing.T) {
	for _, name := range NewSet().Names() {
		p := must(t, name)
		if p.Name() != name {
			t.Errorf("Preset(%q).Name() = %q", name, p.Name())
		}
	}
	_, err := made("rollin")
	if err == nil || !strings.Contains(err.Error(), "rolling-mask-10") || !strings.Contains(err.Error(), "rollin") {
		t.Errorf("an unknown name gives %v, which lists no names", err)
	}
	t.Run("R6 default is compaction", func(t *testing.T) {
		if p, ok := must(t, "default").(*Pipeline); !ok || p.Threshold != must(t, "compaction").(*Pipeline).Threshold {
			t.Errorf("default is %+v", p)
		}
	})
	if p := must(t, "safeguard"); p.Name() != "safeguard" {
		t.Errorf("safeguard is called %q", p.Name())
	}
}

func TestRollingMask(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	for range 8 {
		s.step("read", text(50))
	}
	plan := s.plan(must(t, "rolling-mask-5"), s.budget(0))
	if len(plan.Reductions) != 1 || plan.Steps[0].Hidden != 3 {
		t.Fatalf("masked %+v, want 3 blocks", plan.Steps)
	}
	for i := range s.view().Units {
		u := &s.view().Units[i]
		if u.Kind != furl.UnitStep {
			continue
		}
		masked := u.Blocks[1].By != 0
		if want := u.Step <= 3; masked != want {
			t.Errorf("step %d masked: %v, want %v", u.Step, masked, want)
		}
	}
	if plan := s.plan(must(t, "rolling-mask-5"), s.budget(0)); len(plan.Reductions)+len(plan.Steps) != 0 {
		t.Errorf("masked again: %+v", plan.Steps)
	}
}

// TestEveryPreset lets a long session run under each preset, planning before
// every request.
func TestEveryPreset(t *testing.T) {
	steps := 250
	if RaceDetector {
		steps = 60
	}
	for _, name := range NewSet().Names() {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			s.say(furl.RoleSystem, "be brief")
			s.say(furl.RoleUser, text(30))
			p := must(t, name, Clear100k{Trigger: 500})
			reductions := 0
			t.Run("X1 every view is accepted and fits", func(t *testing.T) {
				for i := range steps {
					s.step("read", text(20+i%7*10), "ok")
					if i%11 == 0 {
						s.say(furl.RoleUser, text(12))
					}
					before := s.budget(1000)
					plan := s.plan(p, before)
					reductions += len(plan.Reductions)
					after := s.view().Tokens
					if plan.After != after {
						t.Fatalf("the plan says %d tokens after, the view has %d", plan.After, after)
					}
					if m := s.view().Messages[0]; m.Msg.Role != furl.RoleSystem || !m.AsRecorded() {
						t.Fatalf("request %d: the leading instructions are hidden", i)
					}
					if name != "none" && (after > 1000 || plan.Impossible) {
						t.Fatalf("request %d has %d tokens, impossible %v: %+v", i, after, plan.Impossible, plan.Steps)
					}
					for _, c := range codecs {
						if err := accepted(c.codec, c.body, s.view()); err != nil {
							t.Fatalf("request %d: %s refuses: %v", i, c.codec.Format(), err)
						}
					}
				}
			})
			t.Run("X4 every reduction says why and what", func(t *testing.T) {
				for red := range s.log.State().Reductions() {
					if red.Reason == "" || red.Stage == "" || red.Before <= red.After || red.After <= 0 {
						t.Errorf("%s: reason %q, %d to %d tokens", red.Stage, red.Reason, red.Before, red.After)
					}
				}
			})
			t.Run("X2 all of it comes back", func(t *testing.T) {
				var seqs []furl.Seq
				for red := range s.log.State().Reductions() {
					seqs = append(seqs, red.Seq)
				}
				for _, seq := range seqs {
					s.add(&furl.Restoration{Of: seq})
				}
				v := s.view()
				if len(v.Messages) != s.log.State().Len() {
					t.Fatalf("%d of %d messages are shown", len(v.Messages), s.log.State().Len())
				}
				for i := range v.Messages {
					if !v.Messages[i].AsRecorded() {
						t.Errorf("message %d is not as recorded", i)
					}
				}
			})
			if name != "none" && reductions == 0 {
				t.Error("nothing was ever reduced")
			}
		})
	}
}

// TestDeterminism plans twice for the same state.
func TestDeterminism(t *testing.T) {
	for _, name := range NewSet().Names() {
		s := newSession(t)
		s.say(furl.RoleUser, text(30))
		for range 20 {
			s.step("read", text(60), text(9))
		}
		p := must(t, name, Clear100k{Trigger: 500})
		var plans [2][]byte
		for i := range plans {
			plan, err := p.Plan(t.Context(), s.log.State(), s.budget(900))
			if err != nil {
				t.Fatal(err)
			}
			if plans[i], err = json.Marshal(plan.Reductions); err != nil {
				t.Fatal(err)
			}
		}
		if string(plans[0]) != string(plans[1]) {
			t.Errorf("%s plans\n%s\nand then\n%s", name, plans[0], plans[1])
		}
	}
}

// An invalid option is an error that names it.
func TestInvalidOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		with any
		want string
	}{
		{"rolling", Rolling{}, ""},
		{"rolling", Rolling{Threshold: 0.9, Target: 0.5, KeepMessages: 3}, ""},
		{"rolling", &Rolling{Threshold: 1.1}, "invalid context_threshold 1.1: expected at most 1"},
		{"rolling", Rolling{Target: math.NaN()}, "invalid target_utilization NaN: expected 0 or more"},
		{"rolling", Rolling{Threshold: 0.5, Target: 0.6}, "expected at most the context_threshold, 0.5"},
		{"rolling", ToolAge{MaxAge: -1}, ""}, // of a policy that does not run
		{"sliding-window", SlidingWindow{Fraction: -0.5}, "invalid fraction -0.5"},
		{"auto:frugal:results", Auto{SummaryOptions: SummaryOptions{TailTokens: -1}}, "invalid tail_tokens -1"},
		{"compaction", Compaction{SummaryOptions: SummaryOptions{SummaryLevels: -1}}, "invalid summary_levels -1"},
		{"clear-100k", Clear100k{KeepResults: -1}, "invalid keep_results -1"},
		{"rolling-mask-5", RollingMask{KeepResults: -1}, "invalid keep_results -1"},
		{"graduated", Graduated{KeepSteps: -1}, "invalid preserve_recent_raw_turns -1"},
		{"tool-age", ToolAge{MinTokens: -1}, "policy tool-age: invalid min_tokens -1"},
		{"none", Settings{Threshold: 2}, "invalid context_threshold 2"},
	} {
		_, err := made(tt.name, tt.with)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %+v gives error %v, want %q", tt.name, tt.with, err, tt.want)
		}
	}
	if _, err := made("none", ToolAge{MaxAge: -1}, Settings{RollingContext: new(true)}); err == nil || !strings.Contains(err.Error(), "policy tool-age: invalid max_age -1") {
		t.Errorf("tool-age in front with an invalid option gives %v", err)
	}
}

func TestDisabled(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, text(30))
	s.step("read", text(500))
	s.step("read", text(500))
	for _, name := range NewSet().Names() {
		plan := s.plan(must(t, name, Settings{Off: true}), s.budget(100))
		if len(plan.Reductions)+len(plan.Steps) != 0 || plan.Impossible {
			t.Errorf("%s does something though management is off: %+v", name, plan.Steps)
		}
	}
}

func TestNoWindow(t *testing.T) {
	t.Run("C1 no window known, no management", func(t *testing.T) {
		s := newSession(t)
		s.say(furl.RoleUser, text(30))
		for range 20 {
			s.step("read", text(5000))
		}
		for _, name := range []string{"sliding-window", "compaction", "rolling", "graduated"} {
			if plan := s.plan(must(t, name), s.budget(0)); len(plan.Reductions) != 0 {
				t.Errorf("%s reduces without a window: %+v", name, plan.Steps)
			}
		}
	})
}

func TestNothingRollsUnlessChosen(t *testing.T) {
	t.Run("R6 nothing rolls unless chosen", func(t *testing.T) {
		s := newSession(t)
		s.say(furl.RoleUser, "go")
		for range 40 {
			s.step("read", text(50))
		}
		for _, name := range NewSet().Variants() {
			plan, err := must(t, name).Plan(t.Context(), s.log.State(), s.budget(1000))
			if err != nil {
				t.Fatal(err)
			}
			rolled := false
			for _, red := range plan.Reductions {
				rolled = rolled || red.Stage == event.StageEvict
			}
			if rolled != (name == "rolling") {
				t.Errorf("%s evicts: %v", name, rolled)
			}
		}
	})
}

func TestWarning(t *testing.T) {
	t.Run("R5 the warning comes with each plan", func(t *testing.T) {
		s := newSession(t)
		s.say(furl.RoleUser, "go")
		b := s.budget(1000)
		b.Recall = false
		p := must(t, "rolling")
		if plan := s.plan(p, b); len(plan.Warnings) != 1 || plan.Warnings[0].Code != warnNoRecall || p.Name() != "rolling" {
			t.Errorf("warnings %+v", plan.Warnings)
		}
		b.Recall = true
		if plan := s.plan(p, b); len(plan.Warnings) != 0 {
			t.Errorf("with recall the warnings are %+v", plan.Warnings)
		}
	})
}

// TestForce plans below every trigger, because the provider has just refused
// the prompt.
func TestForce(t *testing.T) {
	for _, name := range []string{"sliding-window", "compaction", "rolling", "clear-100k"} {
		s := newSession(t)
		s.say(furl.RoleUser, text(30))
		for range 12 {
			s.step("read", text(60))
		}
		b := s.budget(100_000)
		p := must(t, name)
		if plan, err := p.Plan(t.Context(), s.log.State(), b); err != nil || len(plan.Reductions) != 0 {
			t.Errorf("%s reduces far below its trigger, %v", name, err)
		}
		b.Force = true
		if plan := s.plan(p, b); plan.After >= plan.Before {
			t.Errorf("%s, forced, frees nothing: %+v", name, plan.Steps)
		}
	}
}

// TestTwoGroupings holds the same conversation in two shapes, results in one
// user message and each in a message of its own: policies that count steps or
// results pick the same ones.
func TestTwoGroupings(t *testing.T) {
	joined, apart := newSession(t), newSession(t)
	for _, s := range []*session{joined, apart} {
		s.say(furl.RoleUser, text(30))
	}
	for i := range 12 {
		joined.step("read", text(60+i), text(40))
		for j := range joined.log.Len() {
			if j < joined.log.Len()-2 {
				continue // the two new messages
			}
			m := joined.log.At(furl.Seq(j + 1)).Body.(*furl.Message)
			if m.Role == furl.RoleAssistant {
				apart.add(&furl.Message{Role: m.Role, Blocks: m.Blocks})
				continue
			}
			for _, b := range m.Blocks {
				apart.add(&furl.Message{Role: furl.RoleTool, Blocks: []furl.Block{b}})
			}
		}
	}
	for _, name := range []string{"rolling-mask-10", "rolling-mask-5", "clear-100k", "graduated", "compaction"} {
		t.Run("X1 the same blocks in both "+name, func(t *testing.T) {
			var shown [2][]string
			for i, s := range []*session{joined, apart} {
				plan, err := must(t, name, Clear100k{Trigger: 500}, Graduated{MaxInputTokens: 900}).Plan(t.Context(), s.log.State(), s.budget(1200))
				if err != nil || len(plan.Reductions) == 0 {
					t.Fatalf("%+v, %v", plan.Steps, err)
				}
				for _, sh := range plan.View.Messages {
					for _, b := range sh.Blocks {
						if sh.Index < 0 {
							continue // a mark counts messages
						}
						shown[i] = append(shown[i], b.Block.ID+b.Words())
					}
				}
			}
			if !reflect.DeepEqual(shown[0], shown[1]) {
				t.Errorf("one shows\n%s\nthe other\n%s", strings.Join(shown[0], "\n"), strings.Join(shown[1], "\n"))
			}
		})
	}
}
