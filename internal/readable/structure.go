package readable

import (
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
)

// A structure has the roles, kinds, sizes and relative times of a session, and nothing that
// somebody wrote: no text, title, path, name or date. It can be shared when the content
// cannot.

// roleOf returns a role as recorded, or "other" if it is none of the usual ones.
func roleOf(r furl.Role) string {
	if name := string(r); roleClass(name) == name {
		return name
	}
	return "other"
}

// structureBlock describes a block without its content.
func (b *builder) structureBlock(blk *furl.Block) block {
	out := block{Kind: blk.Kind.String(), Failed: blk.Error, Bare: true}
	out.Label = out.Kind
	switch blk.Kind {
	case furl.KindCall:
		name := knownTool(blk.Name)
		b.names[blk.ID] = name
		out.Label = "call of " + name
	case furl.KindResult:
		name := b.names[blk.ID]
		if name == "" {
			name = "tool"
		}
		out.Label = "result of " + name
	case furl.KindOpaque:
		out.Label = "other"
	}
	if blk.Observation {
		out.Label = "observation"
	}
	if blk.Error {
		out.Label += ", failed"
	}
	if blk.Tokens > 0 {
		out.Label += ", " + numbers.Count(blk.Tokens, "token")
	}
	for i := range blk.Media {
		out.Label += fmt.Sprintf(", %s", blk.Media[i].Kind)
	}
	return out
}

// structureMarker describes a reduction without its texts and names.
func (b *builder) structureMarker(m *marker, red *furl.Reduction) {
	messages, blocks := b.covered(red)
	m.Reason, m.Texts, m.Caption = "", nil, ""
	if sum := red.Summary; sum != nil {
		if sum.Messages > 0 {
			messages = sum.Messages
		}
		m.Title = summaryTitle(red, messages)
	} else {
		m.Title = "Reduced: " + numbers.Count(blocks, "block") + " hidden"
	}
	if freed := red.Before - red.After; freed > 0 && red.After > 0 {
		m.Title += ", ~" + numbers.Count(freed, "token") + " freed"
	}
}

// since writes the time from the first record of the path.
func (b *builder) since(t time.Time) string {
	if t.IsZero() || b.start.IsZero() {
		return ""
	}
	return "+" + lasted(t.Sub(b.start))
}

// lasted writes a duration in its two largest units.
func lasted(d time.Duration) string {
	switch d = max(0, d).Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days %d h", int(d.Hours())/24, int(d.Hours())%24)
}
