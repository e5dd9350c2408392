package tui

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/internal/numbers"
)

const (
	shownEntries  = 40  // entries that are read when a session opens
	maxEntryLines = 200 // lines of one entry when a session opens
)

// userLines draws a message of the user.
func userLines(text string, media, width int, sg *signs) []string {
	text = strings.TrimRight(clean(text), "\n")
	if media > 0 && !strings.Contains(text, "[image ") {
		text = strings.TrimSpace(text + fmt.Sprintf(" [%d attachments]", media))
	}
	lines, more := firstLines(wrapPlain(text, width-2), maxEntryLines)
	lines = indent(paint(userText, lines), userText.Render(sg.user)+" ", "  ")
	if more > 0 {
		lines = append(lines, dim.Render(fmt.Sprintf("  %s %d more lines", sg.more, more)))
	}
	return lines
}

// thinkingLine is thinking folded to a line.
func thinkingLine(text string, width int, sg *signs) []string {
	n := len(strings.Fields(headOf(text, 1<<20)))
	if n == 0 {
		return nil
	}
	words := numbers.Thousands(n) + " words"
	if n == 1 {
		words = "1 word"
	}
	return []string{italic.Render(cut(sg.thought+" Thinking "+sg.dot+" "+words, width, ""))}
}

// entryLines draws an entry of a session, and what can be unfolded of it.
func (m *model) entryLines(e chat.Entry) (lines []string, f *folded) {
	switch e.Kind {
	case chat.User:
		lines = userLines(headOf(e.Text, maxMarkdown), e.Media, m.width, m.signs)
	case chat.Text:
		more := 0
		lines, more = firstLines(m.markdown.render(headOf(e.Text, maxMarkdown), m.width), maxEntryLines)
		if more > 0 {
			lines = append(lines, dim.Render(fmt.Sprintf("%s %d more lines", m.signs.more, more)))
		}
	case chat.Thinking:
		lines = thinkingLine(e.Text, m.width, m.signs)
		f = &folded{title: "Thinking", text: e.Text}
	case chat.Call:
		lines = callLines(e.Call, e.Result, 0, m.width, m.signs)
		f = &folded{title: callTitle(e.Call), call: &e.Call, res: e.Result}
	case chat.Marker:
		lines = markerLines(firstLine(e.Text), m.width, m.signs)
		f = &folded{title: label(firstLine(e.Text)), text: e.Text}
	}
	if e.Hidden && e.Kind != chat.Marker {
		for i, l := range lines {
			lines[i] = dim.Render(stripColors(l))
		}
	}
	return lines, f
}

// showEntries prints the last entries of the session: as many as fill about three
// screens, so that a long session opens as fast as a short one.
func (m *model) showEntries(list []chat.Entry, before int) {
	type drawn struct {
		lines []string
		f     *folded
		kind  chat.EntryKind
	}
	var all []drawn
	rows := 0
	for i := len(list) - 1; i >= 0 && rows < 3*m.height; i-- {
		lines, f := m.entryLines(list[i])
		if len(lines) == 0 {
			continue
		}
		all = append(all, drawn{lines, f, list[i].Kind})
		rows += len(lines) + 1
		before = max(before, 0)
		if rows >= 3*m.height {
			before += i
		}
	}
	if before > 0 {
		m.print(dim.Render(cut(fmt.Sprintf("%s %s earlier entries", m.signs.more, numbers.Thousands(before)), m.width, "")))
	}
	for i := len(all) - 1; i >= 0; i-- {
		m.printBlock(all[i].kind, all[i].lines)
		m.foldable(all[i].f)
	}
}
