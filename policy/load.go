package policy

import (
	"fmt"

	"github.com/furlhq/furl"
)

// load is the size of a request in the units that a budget limits.
type load struct {
	tokens, bytes, images, messages int
}

func loadOf(v *furl.View, b furl.Budget) load {
	return load{b.Size, v.Bytes, v.Images, len(v.Messages)}
}

// over describes which limit the view exceeds: the window, or a limit of the
// provider on bytes, images or messages. It is "" if the view fits.
func over(v *furl.View, b furl.Budget) string { return loadOf(v, b).over(b) }

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
