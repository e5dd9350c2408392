package policy

import (
	"cmp"
	"context"
	"fmt"
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
// pinned: the provider would refuse this request and all later ones. The limit is lower if
// there are many images.
type hideMedia struct{}

// Name is "media".
func (hideMedia) Name() string { return "media" }

// Reduce hides as many as needed.
func (h hideMedia) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	left := limits{v.Bytes, v.Images}
	side := b.Model.Sides.Of(v.Images)
	if !left.over(b.MaxBytes, b.MaxImages) && largeImages(v, &b) == 0 {
		return nil, Nothing
	}
	crowded := left.over(b.MaxBytes, b.MaxImages)
	red := &furl.Reduction{Stage: h.Name(), Reason: "a limit of the provider: " + over(v, b)}
	for i := range v.Units {
		u := &v.Units[i]
		// A pin on one block does not protect the others of its unit.
		if u.Kind == furl.UnitMark {
			continue
		}
		protected := u.Preamble || u.Newest || u.Open
		for j := range u.Blocks {
			sb := &u.Blocks[j]
			switch {
			case sb.By != 0 || len(sb.Block.Media) == 0 || sb.Hold >= furl.Pin:
				continue
			case largeIn(sb, side) > 0:
			case protected || sb.Hold >= furl.Keep || !crowded || !left.over(b.MaxBytes-b.MaxBytes/4, b.MaxImages-b.MaxImages/4):
				continue
			}
			left.take(sb.Block.Media)
			in := furl.InPlace(sb.Block, strings.TrimPrefix(sb.Block.Text+mediaPlaceholder(u, sb, b.Recall), "\n"), b.Counter)
			in.Note = fmt.Sprintf("%d images or documents", len(sb.Block.Media))
			red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: sb.Pos, Last: sb.Pos}}, Show: in})
		}
	}
	if len(red.Items) == 0 {
		return nil, Nothing
	}
	return red, nil
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
