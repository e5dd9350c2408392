package policy

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
)

// Whatever a policy does, the size it says is left is that of the view it
// leaves, weighed afresh: calls and results cost more than their words, and
// the parts of a plan must not lose that.
func TestPlannedSizeIsThatOfTheView(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := anySession(rt, t)
		b := s.budget(rapid.IntRange(100, 2000).Draw(rt, "window"))
		b.Scale = rapid.SampledFrom([]float64{0, 1, 1.25, 2}).Draw(rt, "scale")
		b.PerItem = rapid.SampledFrom([]float64{0, 12, 50}).Draw(rt, "per item")
		before := s.view()
		b.Size = b.Of(before.Tokens, before.Items)
		name := rapid.SampledFrom(NewSet().Names()).Draw(rt, "policy")
		plan, err := must(t, name, Rolling{KeepMessages: 2}).Plan(context.Background(), s.log.State(), b)
		if err != nil {
			rt.Fatal(err)
		}
		want := b.Of(plan.View.Tokens, plan.View.Items)
		if d := plan.After - want; d < -4 || d > 4 { // each reduction rounds once
			rt.Fatalf("%s: %d tokens left, the view has %d", name, plan.After, want)
		}
		if plan.After > b.Room() && b.Window > 0 && !plan.Impossible && name != "none" {
			rt.Fatalf("%s: %d tokens left in a window of %d, and that is not said", name, plan.After, b.Window)
		}
	})
}

// An eviction reaches its target, and would not with one step less, whatever
// a call and a result cost beside their words.
func TestEvictCountsItems(t *testing.T) {
	s := newSession(t)
	for range 8 {
		s.step("read", text(10))
	}
	v := s.view()
	for _, perItem := range []float64{0, 20, 100} {
		b := s.budget(0)
		b.PerItem = perItem
		b.Size = b.Of(v.Tokens, v.Items)
		b.Window = b.Size
		red, err := (&Evict{KeepMessages: 2}).Reduce(context.Background(), v, b)
		if err != nil {
			t.Fatal(err)
		}
		left, err := s.log.State().With(red)
		if err != nil {
			t.Fatal(err)
		}
		after, step := b.After(v, left.View(furl.Model{})).Size, b.Size/8
		if target := part(b.Window, 0.8); after > target || after+step <= target {
			t.Errorf("per item %v: %d of %d tokens left, the target is %d and a step has %d", perItem, after, b.Size, target, step)
		}
	}
}

// A pin keeps its own block; it neither shields the images beside it nor gives
// up those of the newest step.
func TestHideMediaBesidePins(t *testing.T) {
	s := newSession(t)
	screens := func(id string) furl.Seq {
		call := &furl.Message{Role: furl.RoleAssistant}
		seen := &furl.Message{Role: furl.RoleUser}
		for _, n := range []string{"1", "2"} {
			call.Blocks = append(call.Blocks, furl.Block{Kind: furl.KindCall, ID: id + n, Name: "see", Args: []byte("{}")})
			seen.Blocks = append(seen.Blocks, furl.Block{Kind: furl.KindResult, ID: id + n, Media: []furl.Media{{Kind: furl.KindImage, Type: "image/png", Bytes: 4000}}})
		}
		s.add(call)
		return s.add(seen).Seq
	}
	s.say(furl.RoleUser, "go")
	old, newest := screens("a"), screens("b")
	for _, seq := range []furl.Seq{old, newest} {
		p := furl.Pos{Msg: seq}
		s.add(&furl.Restoration{Spans: []furl.Span{{First: p, Last: p}}, Hold: furl.Pin})
	}
	b := s.budget(0)
	b.MaxImages = 1
	red, err := hideMedia{}.Reduce(context.Background(), s.view(), b)
	if err != nil {
		t.Fatal(err)
	}
	want := furl.Pos{Msg: old, Block: 1}
	if len(red.Items) != 1 || red.Items[0].Spans[0].First != want {
		t.Errorf("hidden %+v, want only %v", red.Items, want)
	}
}
