package storecmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
)

// printer prints messages for people.
type printer struct {
	w     io.Writer
	color bool
	full  bool
	cols  int
}

// previewLines is the number of lines of a text that are printed without --full.
const previewLines = 4

// message prints one message of a view.
func (p *printer) message(in *inspection, sh *furl.Shown) {
	if sh.Index < 0 {
		note := "as the client sent it, not recorded"
		if red, ok := in.View.State.Reduction(sh.By); ok && red.Summary != nil {
			note = compacted(red.Reduction) + " (" + p.by(in, sh.By) + ")"
		} else if ok {
			note = "shown by " + p.by(in, sh.By)
		}
		p.head(0, string(sh.Msg.Role), note)
		for i := range sh.Blocks {
			p.block(sh.Blocks[i].Block, sh.Blocks[i].Block.Text, "")
		}
		return
	}
	p.head(in.record(sh.Seq), string(sh.Msg.Role), "")
	for i := range sh.Blocks {
		b := &sh.Blocks[i]
		note := ""
		if b.By != 0 {
			note = fmt.Sprintf("%s tokens hidden by %s", numbers.Thousands(b.Block.Tokens), p.by(in, b.By))
		}
		p.block(b.Block, b.Words(), note)
	}
}

func (p *printer) by(in *inspection, seq furl.Seq) string {
	red, ok := in.View.State.Reduction(seq)
	if !ok {
		return "?"
	}
	return fmt.Sprintf("%s #%d", red.Stage, seq)
}

func (p *printer) head(seq furl.Seq, role, note string) {
	n := "     "
	if seq > 0 {
		n = fmt.Sprintf("%5d", seq)
	}
	line := fmt.Sprintf("%s  %s", cmdline.Style(p.color, cmdline.Faint, n), cmdline.Style(p.color, cmdline.Bold, cmdline.Printable(role)))
	if note != "" {
		line += "  " + cmdline.Style(p.color, cmdline.Faint, note)
	}
	fmt.Fprintln(p.w, line)
}

// block prints the text of a block, shortened, and a line about it.
func (p *printer) block(b *furl.Block, words, note string) {
	about := b.Kind.String()
	switch b.Kind {
	case furl.KindText:
		about = ""
		if b.Observation {
			about = "observation"
		}
		if b.Error {
			about += ", failed"
		}
	case furl.KindCall, furl.KindOpaque:
		about += " " + b.Name
	case furl.KindResult:
		if b.Error {
			about += ", failed"
		}
	}
	if b.Kind == furl.KindCall && words == b.Text {
		words = string(b.Args)
	}
	for _, m := range b.Media {
		about += fmt.Sprintf(" [%s %s, %s bytes]", m.Kind, m.Type, numbers.Thousands(m.Bytes))
	}
	if b.Own {
		about += ", added by furl"
	}
	if note != "" {
		about = strings.TrimSpace(about + " (" + note + ")")
	}
	if about != "" {
		fmt.Fprintf(p.w, "       %s\n", cmdline.Style(p.color, cmdline.Faint, cmdline.Truncate(about, p.room())))
	}
	p.words(words)
}

// room is the number of columns of a line without the margin.
func (p *printer) room() int {
	if p.cols > 20 {
		return p.cols - 8
	}
	return 160
}

func (p *printer) words(text string) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	rest := 0
	if !p.full && len(lines) > previewLines {
		rest = len(lines) - previewLines
		lines = lines[:previewLines]
	}
	for _, l := range lines {
		if p.full {
			l = cmdline.Printable(l)
		} else {
			l = cmdline.Truncate(strings.ReplaceAll(l, "\t", "    "), p.room())
		}
		fmt.Fprintf(p.w, "       %s\n", l)
	}
	if rest > 0 {
		fmt.Fprintf(p.w, "       %s\n", cmdline.Style(p.color, cmdline.Faint, fmt.Sprintf("… %s more lines", numbers.Thousands(rest))))
	}
}

func (p *printer) note(text string) {
	fmt.Fprintln(p.w, cmdline.Style(p.color, cmdline.Faint, cmdline.Printable(text)))
}

// reductions lists the reductions of the current branch and their reasons.
func (p *printer) reductions(in *inspection) {
	first := true
	for red := range in.View.State.Reductions() {
		if first {
			fmt.Fprintf(p.w, "\n%s\n", cmdline.Style(p.color, cmdline.Bold, "Reductions"))
			first = false
		}
		fmt.Fprintf(p.w, "  #%d %s: %s\n", red.Seq, cmdline.Printable(red.Stage), cmdline.Printable(reductionWords(red.Reduction)))
	}
}

// reductionWords describes a reduction in a line. It has no count of what is hidden:
// the reason has, and counts otherwise.
func reductionWords(red *furl.Reduction) string {
	var words []string
	switch {
	case red.Summary != nil:
		words = append(words, compacted(red))
	case red.After > 0:
		words = append(words, fmt.Sprintf("%s → %s tokens", numbers.Thousands(red.Before), numbers.Thousands(red.After)))
	case red.Before > 0:
		words = append(words, fmt.Sprintf("%s tokens before", numbers.Thousands(red.Before)))
	}
	if why := reasonWords(red); why != "" {
		words = append(words, why)
	}
	return strings.Join(words, "; ")
}

// compacted describes a summary: its number, how many messages it archived, and what
// that freed (C8). Agents record only the size before their own compactions.
func compacted(red *furl.Reduction) string {
	words := fmt.Sprintf("Context Compacted #%d", red.Summary.Number)
	if red.Stage == event.StageExtract {
		words = fmt.Sprintf("Context Extracted #%d", red.Summary.Number)
	}
	if n := red.Summary.Messages; n > 0 {
		noun := "messages"
		if n == 1 {
			noun = "message"
		}
		words += fmt.Sprintf(" — %s %s archived", numbers.Thousands(n), noun)
	}
	switch {
	case red.After > 0 && red.Before > red.After:
		words += fmt.Sprintf(", ~%s tokens freed", numbers.Thousands(red.Before-red.After))
	case red.Before > 0:
		words += fmt.Sprintf(", %s tokens before", numbers.Thousands(red.Before))
	}
	return words
}

// reasonWords is the reason of a reduction for people. Claude Code's words for who
// started a compaction would be taken for furl's policy auto.
func reasonWords(red *furl.Reduction) string {
	switch {
	case red.Summary != nil && red.Reason == "auto":
		return "by the agent itself"
	case red.Summary != nil && red.Reason == "manual":
		return "requested by the user"
	}
	return red.Reason
}

// covered lists the blocks that a reduction would hide.
func (p *printer) covered(s *furl.State, red *furl.Reduction) {
	fmt.Fprintf(p.w, "\n%s\n", cmdline.Style(p.color, cmdline.Bold, cmdline.Printable(red.Stage+": "+red.Reason)))
	shown := 0
	for _, it := range red.Items {
		for _, sp := range it.Spans {
			if shown++; shown > 40 && !p.full {
				continue
			}
			p.item(s, sp, it.Show)
		}
	}
	if shown > 40 && !p.full {
		p.note(fmt.Sprintf("  … %s more; --full lists them", numbers.Thousands(shown-40)))
	}
}

func (p *printer) item(s *furl.State, sp furl.Span, show furl.Show) {
	i, ok := s.Find(sp.First.Msg)
	if !ok {
		return
	}
	_, m := s.Message(i)
	switch show := show.(type) {
	case furl.In:
		b := &m.Blocks[sp.First.Block]
		fmt.Fprintf(p.w, "  message %d, %s: %s → %s tokens, replaced by: %s\n", i+1, b.Kind, numbers.Thousands(b.Tokens), numbers.Thousands(show.Tokens), cmdline.Truncate(strings.ReplaceAll(show.Text, "\n", " "), 80))
	case furl.Mark:
		last, _ := s.Find(sp.Last.Msg)
		text := ""
		if len(show.Messages) > 0 && len(show.Messages[0].Blocks) > 0 {
			text = show.Messages[0].Blocks[0].Text
		}
		fmt.Fprintf(p.w, "  messages %d to %d, replaced by: %s\n", i+1, last+1, cmdline.Truncate(strings.ReplaceAll(text, "\n", " "), 100))
	case furl.Gone:
		fmt.Fprintf(p.w, "  message %d, thinking: hidden\n", i+1)
	}
}
