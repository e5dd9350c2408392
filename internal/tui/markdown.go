package tui

import (
	"strings"

	"charm.land/glamour/v2"
	"charm.land/glamour/v2/ansi"
	xansi "github.com/charmbracelet/x/ansi"
)

// markdown renders Markdown of the model. Its zero value is ready to use.
type markdown struct {
	width    int
	renderer *glamour.TermRenderer
	signs    *signs
}

// maxMarkdown is the size from which text is shown as it is: the parser needs more than
// linear time for some texts.
const maxMarkdown = 64 << 10

// maxDepth is the number of quote and list signs at the start of a line from which text
// is shown as it is.
const maxDepth = 40

// render returns the lines of a Markdown text, each at most width columns wide. No
// control character of the text is in them.
func (m *markdown) render(text string, width int) []string {
	text = clean(text)
	width = max(width, 4)
	if len(text) > maxMarkdown || tooDeep(text) {
		return wrapPlain(text, width)
	}
	out, ok := m.glamour(protect(text), width)
	if !ok {
		return wrapPlain(text, width)
	}
	out = onlyColors(unprotect(out))
	lines := wrapStyled(out, width)
	for i, l := range lines {
		lines[i] = trimRight(l)
	}
	return trimEmpty(lines)
}

// glamour renders text with Glamour. It reports false if Glamour fails: the text is
// arbitrary, and a panic there must not end the chat.
func (m *markdown) glamour(text string, width int) (out string, ok bool) {
	defer func() {
		if recover() != nil {
			m.renderer, out, ok = nil, "", false
		}
	}()
	if m.renderer == nil || m.width != width {
		style := markdownStyle
		if m.signs == &asciiSigns {
			style = markdownASCII()
		}
		r, err := glamour.NewTermRenderer(glamour.WithStyles(style), glamour.WithWordWrap(width),
			glamour.WithChromaFormatter("terminal16"), glamour.WithPreservedNewLines())
		if err != nil {
			return "", false
		}
		m.renderer, m.width = r, width
	}
	out, err := m.renderer.Render(text)
	return out, err == nil
}

// Glamour drops HTML and decodes character references, twice in places, so that
// "&amp;#27;" becomes an escape character. With these two characters of the private use
// area in their place, text outside of code blocks is shown as written.
const (
	ampersand = '\ue026'
	less      = '\ue03c'
)

func protect(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 16)
	var f fence
	for line := range strings.Lines(text) {
		code := f.in()
		f.next(line)
		line = strings.ReplaceAll(line, "&", string(ampersand))
		if !code || !f.in() {
			line = strings.ReplaceAll(line, "<", string(less))
		}
		b.WriteString(line)
	}
	return b.String()
}

func unprotect(text string) string { return unprotector.Replace(text) }

// In addresses of links they are encoded.
var unprotector = strings.NewReplacer(string(ampersand), "&", string(less), "<", "%EE%80%A6", "&", "%EE%80%BC", "<")

// tooDeep reports that a line starts with many quote or list signs.
func tooDeep(text string) bool {
	for line := range strings.Lines(text) {
		n := 0
		for _, r := range line {
			if !strings.ContainsRune(">-*+ 0123456789.)", r) {
				break
			}
			if strings.ContainsRune(">-*+.)", r) {
				n++
			}
		}
		if n > maxDepth && strings.Trim(strings.TrimSpace(line), "-*") != "" {
			return true
		}
	}
	return strings.Count(text, "[") > 1000 || strings.Count(text, "*")+strings.Count(text, "_") > 4000
}

// trimRight removes spaces at the end of a line with styles.
func trimRight(line string) string {
	plain := xansi.Strip(line)
	return xansi.Truncate(line, xansi.StringWidth(strings.TrimRight(plain, " ")), "")
}

// trimEmpty removes empty lines at the start and the end.
func trimEmpty(lines []string) []string {
	empty := func(l string) bool { return strings.TrimSpace(xansi.Strip(l)) == "" }
	for len(lines) > 0 && empty(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && empty(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// markdownStyle uses the 16 colors of the terminal.
var markdownStyle = ansi.StyleConfig{
	BlockQuote: ansi.StyleBlock{
		StylePrimitive: ansi.StylePrimitive{Faint: new(true)},
		Indent:         new(uint(1)), IndentToken: new("│ "),
	},
	List:           ansi.StyleList{LevelIndent: 2},
	Heading:        ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{BlockSuffix: "\n", Color: new("6"), Bold: new(true)}},
	H1:             ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Prefix: "# "}},
	H2:             ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Prefix: "## "}},
	H3:             ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Prefix: "### "}},
	H4:             ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Prefix: "#### "}},
	H5:             ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Prefix: "##### "}},
	H6:             ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Prefix: "###### "}},
	Strikethrough:  ansi.StylePrimitive{CrossedOut: new(true)},
	Emph:           ansi.StylePrimitive{Italic: new(true)},
	Strong:         ansi.StylePrimitive{Bold: new(true)},
	HorizontalRule: ansi.StylePrimitive{Faint: new(true), Format: "\n--------\n"},
	Item:           ansi.StylePrimitive{BlockPrefix: "• "},
	Enumeration:    ansi.StylePrimitive{BlockPrefix: ". "},
	Task:           ansi.StyleTask{Ticked: "[✓] ", Unticked: "[ ] "},
	Link:           ansi.StylePrimitive{Color: new("4"), Underline: new(true)},
	LinkText:       ansi.StylePrimitive{Bold: new(true)},
	Image:          ansi.StylePrimitive{Color: new("4"), Underline: new(true)},
	ImageText:      ansi.StylePrimitive{Format: "Image: {{.text}} →"},
	Code:           ansi.StyleBlock{StylePrimitive: ansi.StylePrimitive{Color: new("5")}},
	CodeBlock: ansi.StyleCodeBlock{
		StyleBlock: ansi.StyleBlock{Margin: new(uint(2))},
		Chroma: &ansi.Chroma{
			Comment:             ansi.StylePrimitive{Color: new("#ansidarkgray")},
			CommentPreproc:      ansi.StylePrimitive{Color: new("#ansiteal")},
			Keyword:             ansi.StylePrimitive{Color: new("#ansidarkblue")},
			KeywordType:         ansi.StylePrimitive{Color: new("#ansiteal")},
			NameBuiltin:         ansi.StylePrimitive{Color: new("#ansiteal")},
			NameTag:             ansi.StylePrimitive{Color: new("#ansidarkblue")},
			NameAttribute:       ansi.StylePrimitive{Color: new("#ansiteal")},
			NameFunction:        ansi.StylePrimitive{Color: new("#ansibrown")},
			LiteralNumber:       ansi.StylePrimitive{Color: new("#ansipurple")},
			LiteralString:       ansi.StylePrimitive{Color: new("#ansidarkgreen")},
			LiteralStringEscape: ansi.StylePrimitive{Color: new("#ansiteal")},
			GenericDeleted:      ansi.StylePrimitive{Color: new("#ansidarkred")},
			GenericInserted:     ansi.StylePrimitive{Color: new("#ansidarkgreen")},
			GenericEmph:         ansi.StylePrimitive{Italic: new(true)},
			GenericStrong:       ansi.StylePrimitive{Bold: new(true)},
		},
	},
	DefinitionDescription: ansi.StylePrimitive{BlockPrefix: "\n> "},
}

// markdownASCII is markdownStyle with ASCII signs.
func markdownASCII() ansi.StyleConfig {
	s := markdownStyle
	s.BlockQuote.IndentToken = new("| ")
	s.Item.BlockPrefix = "- "
	s.Task.Ticked = "[x] "
	s.ImageText.Format = "Image: {{.text}} ->"
	s.Table.CenterSeparator, s.Table.ColumnSeparator, s.Table.RowSeparator = new("|"), new("|"), new("-")
	return s
}
