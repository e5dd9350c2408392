package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// hideMedia replaces the oldest images and documents by texts that name them if
// there are more than the budget's limits on images and bytes allow (X6): what
// they were, their size, and where they came from. The text of a result stays. It
// hides until the view is a quarter below the limit: hiding one image for each
// new image would invalidate the prompt cache on each request.
//
// An image whose sides exceed the provider's limit is hidden wherever it is, unless it is
// pinned: the provider would refuse this request and all later ones. A lower limit applies
// if there are many images. Then there are two ways out: no image above it, or fewer
// images. hideMedia hides the oldest images above it until one of the two is reached.
type hideMedia struct{}

// Name is "media".
func (hideMedia) Name() string { return "media" }

// Reduce hides as many as needed.
func (h hideMedia) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	m := newMediaShown(v, &b)
	sides := b.Model.Sides
	for i := range m.blocks {
		if largeIn(m.blocks[i].ShownBlock, sides.Max) > 0 {
			m.hide(i)
		}
	}
	if m.left.over(b.MaxBytes, b.MaxImages) {
		m.hideOldest(func(i int) bool { return !m.blocks[i].protected }, func() bool {
			return !m.left.over(b.MaxBytes-b.MaxBytes/4, b.MaxImages-b.MaxImages/4)
		})
	}
	if m.left.images > sides.Above && m.large > 0 {
		m.hideForSides(sides)
	}
	red := &furl.Reduction{Stage: h.Name(), Reason: "a limit of the provider: " + Over(v, b)}
	for i := range m.blocks {
		sb := &m.blocks[i]
		if !sb.hidden {
			continue
		}
		in := furl.InPlace(sb.Block, strings.TrimPrefix(sb.Block.Text+mediaPlaceholder(sb.unit, sb.ShownBlock, b.Recall), "\n"), b.Counter)
		in.Note = fmt.Sprintf("%d images or documents", len(sb.Block.Media))
		red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: sb.Pos, Last: sb.Pos}}, Show: in})
	}
	if len(red.Items) == 0 {
		return nil, Nothing
	}
	return red, nil
}

// mediaShown is the media of a view that may be hidden.
type mediaShown struct {
	blocks []mediaBlock // that are not pinned, the oldest first
	many   int          // ImageSides.Many
	left   limits       // of the whole view
	large  int          // images of the whole view with a side above many
	newest int          // index of the block with the newest image; -1: it is pinned, or there is none
}

type mediaBlock struct {
	*furl.ShownBlock
	unit      *furl.Unit
	protected bool
	hidden    bool
}

func newMediaShown(v *furl.View, b *furl.Budget) *mediaShown {
	m := &mediaShown{many: b.Model.Sides.Many, left: limits{v.Bytes, v.Images}, newest: -1}
	for i := range v.Units {
		u := &v.Units[i]
		// A pin on one block does not protect the others of its unit.
		if u.Kind == furl.UnitMark {
			continue
		}
		protected := u.Preamble || u.Newest || u.Open
		for j := range u.Blocks {
			sb := &u.Blocks[j]
			if sb.By != 0 || len(sb.Block.Media) == 0 {
				continue
			}
			m.large += largeIn(sb, m.many)
			hidable := sb.Hold < furl.Pin
			if hidable {
				m.blocks = append(m.blocks, mediaBlock{ShownBlock: sb, unit: u, protected: protected || sb.Hold >= furl.Keep})
			}
			if imagesIn(sb) > 0 {
				m.newest = -1
				if hidable {
					m.newest = len(m.blocks) - 1
				}
			}
		}
	}
	return m
}

func (m *mediaShown) hide(i int) {
	sb := &m.blocks[i]
	if sb.hidden {
		return
	}
	sb.hidden = true
	m.large -= largeIn(sb.ShownBlock, m.many)
	m.left.take(sb.Block.Media)
}

// hideOldest hides those blocks that may be hidden, the oldest first, until it is enough.
func (m *mediaShown) hideOldest(may func(i int) bool, enough func() bool) {
	for i := range m.blocks {
		if enough() {
			return
		}
		if !m.blocks[i].hidden && may(i) {
			m.hide(i)
		}
	}
}

// hideForSides hides images until the provider accepts the sides of the others, because
// none of them exceeds the limit or there are a quarter fewer than have it. It hides
// first those above the limit, then others, and protected ones only if that is not
// enough. If pinned images make that impossible, it hides none.
func (m *mediaShown) hideForSides(sides furl.ImageSides) {
	was := *m
	was.blocks = slices.Clone(m.blocks)
	// The agent still looks at the newest image, also if other steps followed.
	may := func(i int) bool { return !m.blocks[i].protected && i != m.newest }
	hasImage := func(i int) bool { return imagesIn(m.blocks[i].ShownBlock) > 0 }
	isLarge := func(i int) bool { return largeIn(m.blocks[i].ShownBlock, sides.Many) > 0 }
	fewer := func() bool { return m.large == 0 || m.left.images <= sides.Above-sides.Above/4 }
	few := func() bool { return m.large == 0 || m.left.images <= sides.Above }
	m.hideOldest(func(i int) bool { return may(i) && isLarge(i) }, fewer)
	m.hideOldest(func(i int) bool { return may(i) && hasImage(i) }, fewer)
	m.hideOldest(isLarge, few)
	m.hideOldest(hasImage, few)
	if !few() {
		*m = was
	}
}

// imagesIn counts the images of a block.
func imagesIn(sb *furl.ShownBlock) (n int) {
	for i := range sb.Block.Media {
		if sb.Block.Media[i].Kind == furl.KindImage {
			n++
		}
	}
	return n
}

// limits is how much of what a provider limits a view has.
type limits struct{ bytes, images int }

// over reports whether that is too much; a limit of 0 means no limit.
func (l *limits) over(bytes, images int) bool {
	return bytes > 0 && l.bytes > bytes || images > 0 && l.images > images
}

func (l *limits) take(media []furl.Media) {
	for _, m := range media {
		l.bytes -= m.Bytes
		if m.Kind == furl.KindImage {
			l.images--
		}
	}
}

// mediaPlaceholder names the images and documents of a block, where they came from
// and how to get them back.
func mediaPlaceholder(u *furl.Unit, sb *furl.ShownBlock, recall bool) string {
	from := ", from the user"
	if sb.Block.IsResult() {
		r := Result{Unit: u, Block: sb}
		from = ", from " + strings.TrimSpace(cmp.Or(r.Tool(), "a tool")+" "+r.target())
	}
	var out strings.Builder
	for _, m := range sb.Block.Media {
		fmt.Fprintf(&out, "\n[hidden: %s%s%s%s]", mediaName(m), bytesOf(m), from, keptAs(sb.Pos, recall))
	}
	return out.String()
}

// bytesOf is the size of an image or a document, "" if it is unknown.
func bytesOf(m furl.Media) string {
	switch n := m.Bytes; {
	case n <= 0:
		return ""
	case n < 10_000:
		return fmt.Sprintf(", %d bytes", n)
	case n < 10_000_000:
		return fmt.Sprintf(", %d kB", n/1000)
	default:
		return fmt.Sprintf(", %d MB", n/1_000_000)
	}
}

// mediaNote names the images and documents that a placeholder replaces.
func mediaNote(media []furl.Media) string {
	if len(media) == 0 {
		return ""
	}
	var out strings.Builder
	for _, m := range media {
		out.WriteString("\n[" + mediaName(m) + " hidden]")
	}
	return out.String()
}

func mediaName(m furl.Media) string {
	name := m.Kind.String()
	switch {
	case strings.HasPrefix(m.Type, name):
		name = m.Type // image/png says it all
	case m.Type != "":
		name += " " + m.Type
	}
	if m.Width > 0 && m.Height > 0 {
		name += fmt.Sprintf(" %d×%d", m.Width, m.Height)
	}
	return name
}
