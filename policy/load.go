package policy

import (
	"fmt"

	"github.com/furlhq/furl"
)

// load is the size of a request in the units that a budget limits.
type load struct {
	tokens, bytes, images, messages int
	large                           int // images with a side above the provider's limit
}

func loadOf(v *furl.View, b furl.Budget) load {
	return load{b.Size, v.Bytes, v.Images, len(v.Messages), largeImages(v, &b)}
}

// largeImages counts the shown images with a side above the provider's limit, which
// depends on how many images are shown.
func largeImages(v *furl.View, b *furl.Budget) (n int) {
	limit := b.Model.Sides.Of(v.Images)
	if limit == 0 || v.Images == 0 {
		return 0
	}
	for i := range v.Units {
		for j := range v.Units[i].Blocks {
			n += largeIn(&v.Units[i].Blocks[j], limit)
		}
	}
	return n
}

// largeIn counts the images of a shown block with a side above a limit, in pixels.
func largeIn(sb *furl.ShownBlock, limit int) (n int) {
	if sb.By != 0 {
		return 0
	}
	for i := range sb.Block.Media {
		if sb.Block.Media[i].TooLarge(limit) {
			n++
		}
	}
	return n
}

// LargeImages says which images of a view the provider refuses for their size, "" if
// there are none.
func LargeImages(v *furl.View, b furl.Budget) string {
	n := largeImages(v, &b)
	if n == 0 {
		return ""
	}
	return load{images: v.Images, large: n}.largeText(&b)
}

// LargeImagesIn is LargeImages for messages that are sent as they are.
func LargeImagesIn(messages []furl.Message, m furl.Model) string {
	l := load{}
	each := func(f func(*furl.Media)) {
		for i := range messages {
			for j := range messages[i].Blocks {
				for k := range messages[i].Blocks[j].Media {
					f(&messages[i].Blocks[j].Media[k])
				}
			}
		}
	}
	each(func(media *furl.Media) {
		if media.Kind == furl.KindImage {
			l.images++
		}
	})
	limit := m.Sides.Of(l.images)
	each(func(media *furl.Media) {
		if media.TooLarge(limit) {
			l.large++
		}
	})
	if l.large == 0 {
		return ""
	}
	return l.largeText(&furl.Budget{Model: m})
}

func (l load) largeText(b *furl.Budget) string {
	images := "1 image is"
	if l.large > 1 {
		images = fmt.Sprintf("%d images are", l.large)
	}
	limit := b.Model.Sides.Of(l.images)
	if limit == b.Model.Sides.Max {
		return fmt.Sprintf("%s wider or higher than %d pixels", images, limit)
	}
	return fmt.Sprintf("%s wider or higher than %d pixels, the limit with more than %d images", images, limit, b.Model.Sides.Above)
}

// Over describes which limit the view exceeds: the window, or a limit of the
// provider on bytes, images or messages. It is "" if the view fits.
func Over(v *furl.View, b furl.Budget) string { return loadOf(v, b).over(b) }

func (l load) over(b furl.Budget) string {
	switch {
	case b.Window > 0 && l.tokens > b.Room():
		return fmt.Sprintf("%d tokens, room for %d", l.tokens, b.Room())
	case b.MaxBytes > 0 && l.bytes > b.MaxBytes:
		return fmt.Sprintf("%d bytes, limit %d", l.bytes, b.MaxBytes)
	case b.MaxImages > 0 && l.images > b.MaxImages:
		return fmt.Sprintf("%d images, limit %d", l.images, b.MaxImages)
	case b.MaxMessages > 0 && l.messages > b.MaxMessages:
		return fmt.Sprintf("%d messages, limit %d", l.messages, b.MaxMessages)
	case l.large > 0:
		return l.largeText(&b)
	}
	return ""
}

// without is a load after one marker replaced some units. Units are added one by
// one, so that the search for a run takes linear time.
type without struct {
	load
	b      furl.Budget
	taken  int // units added
	hidden int // their counted tokens
	items  int // their tool calls and results
}

// widest is the longest text of a truncation's marker.
var widest = truncationText(9_999_999)

// markTokens is the size of such a marker, in counted tokens.
func markTokens(b furl.Budget) int { return furl.InPlace(&furl.Block{}, widest, b.Counter).Tokens }

func newWithout(v *furl.View, b furl.Budget) *without {
	l := loadOf(v, b)
	l.large = 0 // hideMedia hides all that may be hidden; hiding steps would not help
	l.bytes += len(widest) + 64
	l.messages++
	return &without{load: l, b: b, hidden: -markTokens(b)}
}

// add adds the units that were not added before and returns the load.
func (w *without) add(units []furl.Unit) load {
	for ; w.taken < len(units); w.taken++ {
		u := &units[w.taken]
		w.hidden += u.Tokens
		w.items += u.Items
		w.bytes -= unitBytes(u)
		w.images -= unitImages(u)
		if u.Kind == furl.UnitMark {
			w.messages -= u.Last - u.First + 1
		} else {
			w.messages -= u.Messages
		}
	}
	l := w.load
	l.tokens -= w.b.Of(w.hidden, w.items)
	return l
}

func unitBytes(u *furl.Unit) int {
	n := 0
	for i := range u.Blocks {
		n += len(u.Blocks[i].Words())
	}
	return n
}

func unitImages(u *furl.Unit) int {
	n := 0
	for i := range u.Blocks {
		if u.Blocks[i].By != 0 {
			continue
		}
		for _, m := range u.Blocks[i].Block.Media {
			if m.Kind == furl.KindImage {
				n++
			}
		}
	}
	return n
}
