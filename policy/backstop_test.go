package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// shown gives the messages of the path that a session's view shows, from 1.
func (s *session) shown() string {
	var shown []string
	v := s.view()
	for i := range v.Messages {
		if v.Messages[i].Index < 0 {
			shown = append(shown, "mark")
		} else {
			shown = append(shown, fmt.Sprint(v.Messages[i].Index+1))
		}
	}
	return strings.Join(shown, " ")
}

func (s *session) hold(h furl.Hold, message int) {
	seq, _ := s.log.State().Message(message - 1)
	s.add(&furl.Restoration{Spans: []furl.Span{{First: furl.Pos{Msg: seq}, Last: furl.Pos{Msg: seq}}}, Hold: h})
}

// The masks have no window of their own, so what happens there is the
// backstop's doing.
func TestBackstop(t *testing.T) {
	p := must(t, "rolling-mask-10")
	chat := func(keep, pin int) *session {
		s := newSession(t)
		for i := range 5 {
			s.say(furl.RoleUser, fmt.Sprintf("question %d %s", i, text(20)))
			s.say(furl.RoleAssistant, fmt.Sprintf("answer %d %s", i, text(20)))
		}
		s.say(furl.RoleUser, "last")
		s.hold(furl.Keep, keep)
		s.hold(furl.Pin, pin)
		return s
	}
	for _, tt := range []struct {
		window     int
		want       string
		impossible bool
	}{
		{300, "1 2 3 4 5 6 7 8 9 10 11", false},
		{255, "1 mark 3 4 5 6 7 8 9 10 11", false}, // 2 goes, the oldest step
		{205, "1 mark 3 4 5 7 9 10 11", false},     // 4 is kept, 6 and 8 go
		{120, "mark 4 5 10 11", false},             // then words, 5 is pinned, 10 the newest step
		{90, "mark 5 10 11", false},                // then what is kept
		{50, "mark 5 10 11", true},
	} {
		s := chat(4, 5)
		plan := s.plan(p, s.budget(tt.window))
		if got := s.shown(); got != tt.want || plan.Impossible != tt.impossible {
			t.Errorf("window %d: shown %s, impossible %v; want %s, %v (%d tokens)", tt.window, got, plan.Impossible, tt.want, tt.impossible, plan.After)
		}
		if want := min(1, len(plan.Reductions)); plan.Backstops != want {
			t.Errorf("window %d: %d backstops for %d reductions", tt.window, plan.Backstops, len(plan.Reductions))
		}
		if plan.Impossible && !strings.Contains(plan.Reason, "too large") {
			t.Errorf("window %d: reason %q", tt.window, plan.Reason)
		}
	}
}

func TestBackstopTakesSummariesLast(t *testing.T) {
	s := newSession(t)
	for i := range 8 {
		s.say(furl.RoleUser, fmt.Sprintf("question %d. %s", i, text(20)))
		s.say(furl.RoleAssistant, text(20))
	}
	extract := must(t, "compaction", Compaction{ExtractChars: 300})
	s.plan(extract, s.budget(400))
	for range 6 {
		s.say(furl.RoleUser, text(30))
		s.say(furl.RoleAssistant, text(30))
	}
	s.say(furl.RoleUser, "last")
	mask := must(t, "rolling-mask-10")
	s.plan(mask, s.budget(250))
	if v := s.view(); !isSummary(v, &v.Units[0]) {
		t.Errorf("the extract went before what else there was: %s", s.shown())
	}
	s.plan(mask, s.budget(80))
	if v := s.view(); isSummary(v, &v.Units[0]) || v.Tokens > 80 {
		t.Errorf("%d tokens are left with %s", v.Tokens, s.shown())
	}
}

func TestLimits(t *testing.T) {
	album := func() *session {
		s := newSession(t)
		s.say(furl.RoleUser, "look")
		for i := range 6 {
			call := &furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: fmt.Sprint(i), Name: "shot", Args: []byte(`{}`)}}}
			res := &furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{
				Kind: furl.KindResult, ID: fmt.Sprint(i), Text: "taken",
				Media: []furl.Media{{Kind: furl.KindImage, Type: "image/png", Width: 8, Height: 6, Bytes: 4000}},
			}}}
			s.add(call)
			s.add(res)
		}
		s.add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{
			{Kind: furl.KindImage, Media: []furl.Media{{Kind: furl.KindImage, Type: "image/jpeg", Bytes: 4000}}},
		}})
		s.say(furl.RoleUser, "well?")
		return s
	}
	p := must(t, "rolling-mask-10")
	t.Run("X6 too many images", func(t *testing.T) {
		s := album()
		b := s.budget(0)
		b.MaxImages = 3
		plan := s.plan(p, b)
		v := s.view()
		if v.Images != 3 || plan.Backstops != 1 || len(v.Messages) != s.log.State().Len() {
			t.Errorf("%d images are left in %s: %+v", v.Images, s.shown(), plan.Steps)
		}
		if got, want := v.Messages[2].Blocks[0].Words(), "taken\n[hidden: image/png 8×6, 4000 bytes, from shot; original kept as furl:3.0]"; got != want {
			t.Errorf("the first shows %q, want %q", got, want)
		}
	})
	t.Run("X6 an image of the user's", func(t *testing.T) {
		s := album()
		b := s.budget(0)
		b.MaxImages = 1
		s.plan(p, b)
		v := s.view()
		if got, want := v.Messages[13].Blocks[0].Words(), "[hidden: image/jpeg, 4000 bytes, from the user; original kept as furl:14.0]"; got != want || v.Images != 1 {
			t.Errorf("it shows %q, want %q; %d images are left", got, want, v.Images)
		}
		for _, c := range codecs {
			if err := accepted(c.codec, c.body, v); err != nil {
				t.Errorf("%s refuses: %v", c.codec.Format(), err)
			}
		}
	})
	image := func(width int) furl.Media {
		return furl.Media{Kind: furl.KindImage, Type: "image/png", Width: width, Height: 300, Bytes: 4000}
	}
	t.Run("X6 images above the limit of their sides", func(t *testing.T) {
		s := album()
		newest := s.add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindImage, Media: []furl.Media{image(2400)}}}})
		b := s.budget(0)
		b.Model.Sides = furl.ImageSides{Max: 8000, Many: 2000, Above: s.view().Images}
		if plan := s.plan(p, b); len(plan.Reductions) != 0 {
			t.Errorf("hidden although it is allowed: %+v", plan.Reductions)
		}
		b.Model.Sides.Above-- // 7
		if text := LargeImages(s.view(), b); !strings.Contains(text, "1 image is wider or higher than 2000 pixels") {
			t.Errorf("the note says %q", text)
		}
		plan := s.plan(p, b)
		v := s.view()
		if last := &v.Messages[len(v.Messages)-1].Blocks[0]; last.By != 0 || v.Images != 6 || v.Messages[2].Blocks[0].By == 0 || plan.Impossible || LargeImages(v, b) != "" {
			t.Errorf("%d images are left in %s, the newest shows %q, impossible: %v", v.Images, s.shown(), last.Words(), plan.Impossible)
		}
		b.Model.Sides.Max = 2399 // for any number of images
		if s.plan(p, b); !strings.HasPrefix(s.view().Messages[len(v.Messages)-1].Blocks[0].Words(), "[hidden: image/png 2400×300, 4000 bytes, from the user") {
			t.Errorf("an image that is always refused is shown: %s", s.shown())
		}
		pin := func(seq furl.Seq) {
			s.add(&furl.Restoration{Of: 0, Open: true, Spans: []furl.Span{{First: furl.Pos{Msg: seq}, Last: furl.Pos{Msg: seq}}}, Hold: furl.Pin})
		}
		pin(newest.Seq)
		if plan := s.plan(p, b); !plan.Impossible || len(plan.Reductions) != 0 || !strings.Contains(plan.Reason, "2399 pixels") {
			t.Errorf("pinned: %+v", plan)
		}
		b.Model.Sides = furl.ImageSides{Max: 8000, Many: 2000, Above: 4}
		for seq := furl.Seq(3); seq <= 14; seq++ {
			pin(seq)
		}
		if plan := s.plan(p, b); !plan.Impossible || len(plan.Reductions) != 0 || !strings.Contains(plan.Reason, "2000 pixels, the limit with more than 4 images") {
			t.Errorf("with more pinned images than the limit: %+v", plan)
		}
	})
	// An agent takes a screenshot in each step, and plans with each.
	screenshots := func(t *testing.T, widths ...int) (s *session, b furl.Budget, plans int) {
		s = newSession(t)
		s.say(furl.RoleUser, "look")
		for i, width := range widths {
			id := fmt.Sprint(i)
			s.add(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: id, Name: "shot", Args: []byte(`{}`)}}})
			s.add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindResult, ID: id, Text: "taken", Media: []furl.Media{image(width)}}}})
			b = s.budget(0)
			b.Model.Sides = furl.ImageSides{Max: 8000, Many: 2000, Above: 20}
			if plan := s.plan(must(t, "compaction", Compaction{}), b); len(plan.Reductions) > 0 {
				plans++
			}
			v := s.view()
			if newest := &v.Messages[len(v.Messages)-1].Blocks[0]; newest.By != 0 || LargeImages(v, b) != "" {
				t.Fatalf("after %d screenshots, %s; the newest shows %q", i+1, cmp.Or(LargeImages(v, b), "all are accepted"), newest.Words())
			}
		}
		return s, b, plans
	}
	t.Run("X6 the newest of many images above the limit stay", func(t *testing.T) {
		s, _, plans := screenshots(t, slices.Repeat([]int{2400}, 60)...)
		v, shown := s.view(), 0
		for i := range v.Messages {
			for _, sb := range v.Messages[i].Blocks {
				switch {
				case len(sb.Block.Media) == 0:
				case sb.By == 0:
					shown++
				case shown > 0:
					t.Fatalf("a newer image than a shown one is hidden: %s", s.shown())
				}
			}
		}
		// At the 21st, 27th, …, 57th, so that each request does not hide one.
		if plans != 7 || shown != v.Images || shown < 15 {
			t.Errorf("reduced %d times, %d images are left", plans, v.Images)
		}
	})
	t.Run("X6 one image above the limit among many", func(t *testing.T) {
		widths := slices.Repeat([]int{800}, 40)
		widths[3] = 2400
		s, _, plans := screenshots(t, widths...)
		if v := s.view(); plans != 1 || v.Images != 39 || v.Messages[8].Blocks[0].By == 0 {
			t.Errorf("reduced %d times, %d images are left in %s", plans, v.Images, s.shown())
		}
	})
	t.Run("X6 the newest image above the limit, then text", func(t *testing.T) {
		s, b, _ := screenshots(t, append(slices.Repeat([]int{800}, 22), 2400)...)
		for range 3 {
			s.say(furl.RoleAssistant, "It looks good.")
			s.say(furl.RoleUser, "Are you sure?")
			if plan := s.plan(must(t, "compaction", Compaction{}), b); len(plan.Reductions) != 0 {
				t.Errorf("reduced again: %+v", plan.Reductions)
			}
		}
		if v := s.view(); v.Images != 15 {
			t.Errorf("%d images are left", v.Images)
		}
	})
	t.Run("X6 too many bytes", func(t *testing.T) {
		s := album()
		for i := range s.log.Len() {
			if m := s.log.At(furl.Seq(i + 1)).Body.(*furl.Message); len(m.Blocks[0].Media) > 0 {
				m.Raw = make([]byte, 4100)
			}
		}
		b := s.budget(0)
		b.MaxBytes = s.view().Bytes - 5000
		plan := s.plan(p, b)
		if v := s.view(); v.Bytes > b.MaxBytes-b.MaxBytes/4 || v.Images != 4 {
			t.Errorf("%d of %d bytes, %d images are left: %+v", v.Bytes, b.MaxBytes, v.Images, plan.Steps)
		}
	})
	t.Run("X6 too many messages", func(t *testing.T) {
		s := album()
		b := s.budget(0)
		b.MaxMessages = 10
		plan := s.plan(p, b)
		if got, want := s.shown(), "1 mark 8 9 10 11 12 13 14 15"; got != want || plan.Impossible {
			t.Errorf("shown %s, want %s: %+v", got, want, plan.Steps)
		}
	})
}
