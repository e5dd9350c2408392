package policy

import (
	"context"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
)

// HideMedia shows texts that name them in place of the oldest images and
// documents, as far as the budget's limits on images and bytes demand
// (X6). What else a result says stays.
type HideMedia struct{}

// Name is "media".
func (HideMedia) Name() string { return "media" }

// Reduce hides as many as it must.
func (h HideMedia) Reduce(_ context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	bytes, images := v.Bytes, v.Images
	red := &furl.Reduction{Stage: h.Name(), Reason: "a limit of the provider: " + over(v, b)}
	for i := range v.Units {
		u := &v.Units[i]
		if u.Kind == furl.UnitMark || u.Protected() && u.Hold != furl.Pin {
			continue
		}
		for j := range u.Blocks {
			if (b.MaxImages == 0 || images <= b.MaxImages) && (b.MaxBytes == 0 || bytes <= b.MaxBytes) {
				break
			}
			sb := &u.Blocks[j]
			if sb.By != 0 || len(sb.Block.Media) == 0 || sb.Hold >= furl.Keep {
				continue
			}
			for _, m := range sb.Block.Media {
				bytes -= m.Bytes
				if m.Kind == furl.KindImage {
					images--
				}
			}
			in := furl.InPlace(sb.Block, strings.TrimPrefix(sb.Block.Text+mediaNote(sb.Block.Media), "\n"), b.Counter)
			in.Note = fmt.Sprintf("%d images or documents", len(sb.Block.Media))
			red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: sb.Pos, Last: sb.Pos}}, Show: in})
		}
	}
	if len(red.Items) == 0 {
		return nil, Nothing
	}
	return red, nil
}

// mediaNote names the images and documents that a text stands in for.
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
