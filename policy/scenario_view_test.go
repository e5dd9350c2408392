package policy

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl"
)

// writeView writes what the model sees, a line a block: the number of the
// message or the reduction that shows a mark, who speaks, and the words.
func (s *scenario) writeView(out *strings.Builder) {
	v := s.log.State().View(s.budget.Model)
	for i := range v.Messages {
		sh := &v.Messages[i]
		number := fmt.Sprint(sh.Index + 1)
		if sh.Index < 0 {
			number = s.name(sh.By)
		}
		for j := range sh.Blocks {
			fmt.Fprintf(out, "%3s %s\n", number, s.block(sh, &sh.Blocks[j]))
		}
		if sh.Index < 0 {
			s.writeBehind(out, v, i)
		}
	}
	fmt.Fprintf(out, "%d tokens\n", s.size())
}

func (s *scenario) block(sh *furl.Shown, sb *furl.ShownBlock) string {
	words := sb.Words()
	if sh.Index >= 0 {
		words = brief(words)
	}
	words = strings.ReplaceAll(words, "\n", "\n               ")
	var line string
	switch b := sb.Block; b.Kind {
	case furl.KindCall:
		line = fmt.Sprintf("%-9s  %s %s %s", "call", b.ID, b.Name, words)
	case furl.KindResult:
		line = fmt.Sprintf("%-9s  %s %s", "result", b.ID, words)
		if b.Error {
			line = fmt.Sprintf("%-9s  %s error: %s", "result", b.ID, words)
		}
	default:
		line = fmt.Sprintf("%-9s  %s", sh.Msg.Role, words)
	}
	if sb.By == 0 {
		for _, m := range sb.Block.Media {
			line += " <" + mediaName(m) + ">"
		}
	}
	if sb.By != 0 {
		line += "  ← " + s.name(sb.By)
	}
	if sb.Hold > furl.Release {
		line += "  (" + [...]string{"", "", "kept", "pinned"}[sb.Hold] + ")"
	}
	return strings.TrimRight(line, " ")
}

// writeBehind tells what the mark that message i begins represents.
func (s *scenario) writeBehind(out *strings.Builder, v *furl.View, i int) {
	for j := range v.Units {
		u := &v.Units[j]
		if u.Kind != furl.UnitMark || u.Last != i {
			continue
		}
		red, _ := v.State.Reduction(u.By)
		var line strings.Builder
		line.WriteString("stands for " + s.spans(v.Spans(*u)))
		for _, item := range red.Items {
			if m, ok := item.Show.(furl.Mark); ok && !m.At.IsZero() {
				line.WriteString(", dated " + m.At.Format("15:04:05.000"))
			}
		}
		fmt.Fprintf(out, "    (%s)\n", line.String())
	}
}

// name is the scenario's name of a reduction: r1 for the first.
func (s *scenario) name(seq furl.Seq) string {
	for i, r := range s.reductions {
		if r == seq {
			return fmt.Sprintf("r%d", i+1)
		}
	}
	return "r?"
}

// brief is a text short enough to read, its filling counted.
func brief(text string) string {
	text = unpad(text)
	if len([]rune(text)) > 300 {
		return cut(text, 300)
	}
	return text
}
