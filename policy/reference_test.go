package policy

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
)

// The tests here put the presets beside short models of what they promise,
// written over plain lists of messages, with neither units nor layers.

// plainMessage is a message of the model: which step it belongs to, and
// whether the model may hide it.
type plainMessage struct {
	seq    furl.Seq
	step   int // 0: words
	result bool
	chars  int
	hidden bool
}

// grow adds random words and steps to a session, and a step and words of the
// user at the end, so that what is newest follows all that may go.
func grow(rt *rapid.T, s *session, list []plainMessage) []plainMessage {
	words := func(role furl.Role) {
		r := s.say(role, text(rapid.IntRange(1, 30).Draw(rt, "words")))
		list = append(list, plainMessage{seq: r.Seq})
	}
	step := func() {
		n := 1
		for _, m := range list {
			n = max(n, m.step+1)
		}
		call := &furl.Message{Role: furl.RoleAssistant}
		results := rapid.IntRange(1, 3).Draw(rt, "results")
		for i := range results {
			call.Blocks = append(call.Blocks, furl.Block{Kind: furl.KindCall, ID: fmt.Sprintf("%d.%d", n, i), Name: "read", Args: []byte("{}")})
		}
		list = append(list, plainMessage{seq: s.add(call).Seq, step: n})
		for i := range results {
			words := text(rapid.IntRange(1, 60).Draw(rt, "size"))
			m := &furl.Message{Role: furl.RoleTool, Blocks: []furl.Block{{Kind: furl.KindResult, ID: fmt.Sprintf("%d.%d", n, i), Text: words}}}
			list = append(list, plainMessage{seq: s.add(m).Seq, step: n, result: true, chars: utf8.RuneCountInString(words)})
		}
	}
	if len(list) == 0 {
		words(furl.RoleUser)
	}
	for range rapid.IntRange(0, 12).Draw(rt, "parts") {
		if rapid.IntRange(0, 2).Draw(rt, "kind") == 0 {
			words(furl.RoleUser)
		} else {
			step()
		}
	}
	step()
	words(furl.RoleUser)
	return list
}

// slide is the sliding window over a list: half of what is visible after the
// first, an even number, moved earlier so as to split no step.
func slide(list []plainMessage, fraction float64) (hidden int) {
	var visible []int
	for i := range list {
		if !list[i].hidden {
			visible = append(visible, i)
		}
	}
	n := int(float64(len(visible)-1)*fraction + 1e-9)
	n -= n % 2
	for n > 0 && n+1 < len(visible) && list[visible[n]].step > 0 && list[visible[n]].step == list[visible[n+1]].step {
		n--
	}
	for _, i := range visible[1 : n+1] {
		list[i].hidden = true
	}
	return n
}

func TestSlidingWindowAgainstAList(t *testing.T) {
	t.Run("T1 T5 hides what a plain list hides", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			s := newSession(t)
			fraction := rapid.SampledFrom([]float64{0.5, 0.25, 0.1, 0.4}).Draw(rt, "fraction")
			var list []plainMessage
			total := 0
			for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
				list = grow(rt, s, list)
				b := s.budget(0)
				b.Window = b.Size
				p := &Pipeline{Label: "slide", Stages: []Stage{&Truncate{Fraction: fraction}}, NoBackstop: true}
				plan := s.plan(p, b)
				before := slices.Clone(list)
				n := slide(list, fraction)
				if len(plan.Reductions) == 0 {
					if n > 0 && !tooSmall(plan) {
						rt.Fatalf("nothing hidden (%+v), a list hides %d", plan.Steps, n)
					}
					list = before
					continue
				}
				total += n
				for i, m := range list {
					if visible := s.log.State().ShownBy(furl.Pos{Msg: m.seq}) == 0; visible == m.hidden {
						rt.Fatalf("message %d of %d: visible is %v; a list hides %d more, %d in all", i+1, len(list), visible, n, total)
					}
				}
				mark := s.view().Messages[1].Msg.Blocks[0].Text
				if want := truncationText(total); mark != want {
					rt.Fatalf("the mark says %q, want %q", mark, want)
				}
			}
		})
	})
}

// tooSmall reports whether a stage found something, but too little to be worth
// its mark.
func tooSmall(plan *furl.Plan) bool {
	return len(plan.Steps) > 0 && plan.Steps[0].Skipped != "no whole step to hide"
}

func TestMaskAgainstAList(t *testing.T) {
	t.Run("M2 M4 M5 masks what a plain list masks", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			s := newSession(t)
			list := grow(rt, s, nil)
			o := Graduated{
				MaxInputChars:       1,
				KeepSteps:           rapid.IntRange(1, 5).Draw(rt, "keep"),
				MaxObservationChars: rapid.IntRange(1, 120).Draw(rt, "most"),
			}
			p := must(t, "graduated", o).(*Pipeline)
			p.Stages, p.NoBackstop = p.Stages[:1], true
			plan, err := p.Plan(context.Background(), s.log.State(), s.budget(0))
			if err != nil {
				rt.Fatal(err)
			}
			newest := 0
			for _, m := range list {
				newest = max(newest, m.step)
			}
			count, chars := 0, 0
			for _, m := range list {
				if !m.result || m.step > newest-o.KeepSteps || m.chars <= o.MaxObservationChars {
					continue
				}
				count++
				stands := clipTo(fmt.Sprintf("[observation masked — %d chars]", m.chars), o.MaxObservationChars)
				// Words are the tokens of these tests: a placeholder of five is
				// no gain over a result of so many.
				if i, _ := s.log.State().Find(m.seq); len(plan.Reductions) > 0 {
					_, msg := s.log.State().Message(i)
					if in := furl.InPlace(&msg.Blocks[0], stands, words{}); in.Tokens >= msg.Blocks[0].Tokens {
						count--
						continue
					}
				}
				chars += m.chars - utf8.RuneCountInString(stands)
			}
			g, err := GraduatedResult(s.log.State(), plan)
			if err != nil {
				rt.Fatal(err)
			}
			if len(plan.Reductions) > 0 && (g.MaskedCount != count || g.MaskedChars != chars || g.ReductionStage != "masking" || g.InvariantStatus != "impossible") {
				rt.Fatalf("result %+v, a list masks %d of them, %d characters", g, count, chars)
			}
		})
	})
}

// The rolling window over a list takes whole steps from the front while
// the view is above its target, without the newest messages.
func TestRollingAgainstAList(t *testing.T) {
	t.Run("R1 R2 evicts what a plain list evicts", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			s := newSession(t)
			list := grow(rt, s, nil)
			b := s.budget(0)
			b.Window = b.Size * 100 / rapid.IntRange(86, 200).Draw(rt, "fill")
			keep := rapid.IntRange(1, 12).Draw(rt, "keep")
			before := s.log.State()
			plan, err := must(t, "rolling", Rolling{KeepMessages: keep}).(*recallOr).Policy.Plan(context.Background(), before, b)
			if err != nil {
				rt.Fatal(err)
			}
			if len(plan.Reductions) == 0 || plan.Backstops > 0 {
				return
			}
			e, ok := EvictionResult(before, plan)
			if !ok {
				rt.Fatal("no eviction in the plan")
			}
			n := len(e.Evicted)
			for i, seq := range e.Evicted {
				if list[i].seq != seq {
					rt.Fatalf("evicted %v, not the oldest", e.Evicted)
				}
			}
			switch {
			case len(list)-n < keep:
				rt.Fatalf("%d of %d messages kept, want %d at least", len(list)-n, len(list), keep)
			case list[n-1].step > 0 && list[n-1].step == list[n].step:
				rt.Fatalf("a step is split behind message %d", n)
			case len(e.Kept) != len(list)-n:
				rt.Fatalf("kept %v of %d messages, evicted %d", e.Kept, len(list), n)
			}
			if plan.After > part(b.Window, 0.8) {
				// All that may go has gone: the next step would reach into
				// what is kept.
				next := n
				for next < len(list) && (next == n || list[next].step > 0 && list[next].step == list[n].step) {
					next++
				}
				newest := list[len(list)-2].step // stays in every policy, as do the words after it
				if len(list)-next >= keep && list[n].step != newest {
					rt.Fatalf("%d tokens left of a target of %d, and message %d could go", plan.After, part(b.Window, 0.8), n+1)
				}
			}
		})
	})
}
