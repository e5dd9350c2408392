package readable

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/furlhq/furl/internal/numbers"
)

// Markdown writes the session as CommonMark. All texts of the session are in
// fences longer than any inside them, or in one escaped line, so that no text
// becomes markup or HTML.
func (s *Session) Markdown(w io.Writer, step Step) error {
	m := &markdown{w: bufio.NewWriterSize(w, 64<<10)}
	title := s.Title
	if title == "" {
		title = s.ID
	}
	m.printf("# %s\n\n", escape(Line(title, 200)))
	m.item("session", s.ID)
	m.item("model", s.Model)
	m.printf("- %s\n", numbers.Count(s.State.Len(), "message"))
	if s.View != nil {
		m.printf("- what the model sees: %s messages, including markers\n", numbers.Thousands(len(s.View.Messages)))
	}
	m.printf("\n")
	for _, g := range s.given() {
		m.printf("**%s**\n\n", escape(Line(g.Label, 100)))
		m.fence("text", g.Text)
	}
	entries, total := s.entries()
	done := 0
	for e := range entries {
		m.entry(&e)
		if done++; step != nil {
			if err := step(done, total); err != nil {
				return err
			}
		}
	}
	return m.w.Flush()
}

// markdown writes pieces of Markdown. w keeps the first error for Flush.
type markdown struct{ w *bufio.Writer }

func (m *markdown) printf(format string, args ...any) { fmt.Fprintf(m.w, format, args...) }

func (m *markdown) item(name, value string) {
	if value != "" {
		m.printf("- %s: %s\n", name, escape(Line(value, 200)))
	}
}

func (m *markdown) entry(e *entry) {
	switch {
	case e.empty():
		return
	case e.Marker != nil:
		m.marker(e)
		return
	case e.Who == "":
		m.printf("*%d: %s*\n\n", e.Seq, escape(Line(e.Note, 400)))
		return
	}
	m.printf("## ")
	if e.Seq != 0 {
		m.printf("%d ", e.Seq)
	}
	m.printf("%s", escape(Line(e.Who, 40)))
	for _, more := range []string{e.At, e.Size, e.Note, e.Hidden} {
		if more != "" {
			m.printf(" · %s", escape(Line(more, 200)))
		}
	}
	m.printf("\n\n")
	for i := range e.Blocks {
		m.block(&e.Blocks[i])
	}
}

func (m *markdown) block(b *block) {
	label := b.Label
	if b.Hidden != "" {
		label = strings.TrimPrefix(label+", "+b.Hidden, ", ")
	}
	if label != "" {
		m.printf("*%s*\n\n", escape(Line(label, 300)))
	}
	if b.JSON {
		m.fence("json", b.Text)
	} else if b.Text != "" {
		m.fence("text", b.Text)
	}
	if b.Instead != "" {
		m.printf("*The model sees instead:*\n\n")
		m.fence("text", b.Instead)
	}
}

func (m *markdown) marker(e *entry) {
	k := e.Marker
	title := k.Title
	if k.Lifted {
		title += ", undone"
	}
	m.printf("---\n\n**%d: %s**", e.Seq, escape(Line(title, 300)))
	if k.Reason != "" {
		m.printf(" — %s", escape(Line(k.Reason, 400)))
	}
	m.printf("\n\n")
	if len(k.Texts) > 0 {
		m.printf("*%s*\n\n", escape(k.Caption))
	}
	for _, text := range k.Texts {
		m.fence("text", text)
	}
	m.printf("---\n\n")
}

// fence writes a text between fences longer than any run of backticks in it.
func (m *markdown) fence(info, text string) {
	text = Visible(text)
	marks := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	m.printf("%s%s\n%s", marks, info, text)
	if !strings.HasSuffix(text, "\n") {
		m.printf("\n")
	}
	m.printf("%s\n\n", marks)
}

func longestRun(s string, c byte) (longest int) {
	run := 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// escape escapes every character of a line that is special in Markdown, and
// writes characters that could start HTML as entities, which also works in
// programs without escapes.
func escape(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c == '&':
			b.WriteString("&amp;")
		case c == '<':
			b.WriteString("&lt;")
		case c == '>':
			b.WriteString("&gt;")
		case strings.ContainsRune("\\`*_{}[]()#+!|~^$\"'", c):
			b.WriteByte('\\')
			b.WriteRune(c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
