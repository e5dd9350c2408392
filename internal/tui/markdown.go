package tui

import (
	"fmt"
	"image/color"
	"strings"
	"sync"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/alecthomas/chroma/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/furlhq/furl/internal/highlight"
)

// markdown renders Markdown of the model. Its zero value is ready to use with signs.
//
// There are libraries for this: Glamour loads all lexers and styles of Chroma when a
// program starts, in furl serve too, and runs paragraphs of a list item together.
type markdown struct {
	signs *signs
}

// maxMarkdown is the size from which text is shown as it is: the parser needs more than
// linear time for some texts.
const maxMarkdown = 64 << 10

// maxDepth is the number of quote and list signs at the start of a line from which text
// is shown as it is.
const maxDepth = 40

// maxCells is the number of cells that a table could have, from which text is shown as it is: each
// row gets all columns.
const maxCells = 8000

// minWidth is the smallest width that blocks in quotes and lists are wrapped at.
const minWidth = 4

// render returns the lines of a Markdown text, each at most width columns wide. No
// control character of the text is in them.
func (m *markdown) render(text string, width int) []string {
	text = clean(text)
	width = max(width, minWidth)
	if len(text) > maxMarkdown || tooDeep(text) {
		return wrapPlain(text, width)
	}
	lines, ok := m.parsed(text, width)
	if !ok {
		return wrapPlain(text, width)
	}
	lines = fit(lines, width)
	for i, l := range lines {
		lines[i] = trimRight(onlyColors(l))
	}
	return trimEmpty(lines)
}

// parsed parses text and renders its blocks. It reports false if the parser panics: the
// text is arbitrary, and a panic there must not end the chat.
func (m *markdown) parsed(source string, width int) (lines []string, ok bool) {
	defer func() {
		if recover() != nil {
			lines, ok = nil, false
		}
	}()
	b := []byte(source)
	document := markdownParser().Parse(text.NewReader(b))
	return (&blocks{source: b, signs: m.signs}).all(document, width), true
}

// markdownParser parses CommonMark with tables, tasks, ~~strike~~ and bare addresses. It has no
// HTML and no character references, so they are shown as written, and no definitions of
// links, which would be invisible.
var markdownParser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewEmphasisParser(), 500),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewLinkifyParser(), 999),
		),
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
})

// ink is the style of words. Styles of lipgloss would write a sequence for each underlined
// character.
type ink struct {
	bold, italic, strike, underline bool
	color                           color.Color
}

// Text uses the 16 colors of the terminal.
var (
	heading = ink{bold: true, color: lipgloss.Cyan}
	address = ink{underline: true, color: lipgloss.Blue}
)

func (k ink) paint(s string) string {
	if s == "" || k == (ink{}) {
		return s
	}
	var style ansi.Style
	if k.bold {
		style = style.Bold()
	}
	if k.italic {
		style = style.Italic(true)
	}
	if k.strike {
		style = style.Strikethrough(true)
	}
	if k.underline {
		style = style.Underline(true)
	}
	if k.color != nil {
		style = style.ForegroundColor(k.color)
	}
	return style.Styled(s)
}

// blocks renders the blocks of a document.
type blocks struct {
	source []byte
	signs  *signs
}

// all returns the lines of the blocks in a node, with an empty line between two blocks,
// except before a list in a list item.
func (r *blocks) all(parent ast.Node, width int) (lines []string) {
	_, item := parent.(*ast.ListItem)
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		_, list := n.(*ast.List)
		if lines != nil && !(item && list) {
			lines = append(lines, "")
		}
		lines = append(lines, r.block(n, width)...)
	}
	return lines
}

func (r *blocks) block(n ast.Node, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		return wrapStyled(heading.paint(strings.Repeat("#", n.Level)+" ")+r.inline(n, heading), width)
	case *ast.Blockquote:
		bar := r.quoteSign() + " "
		return indent(r.all(n, max(width-2, minWidth)), bar, bar)
	case *ast.List:
		return r.list(n, width)
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		return r.code(n, width)
	case *ast.ThematicBreak:
		return []string{"--------"}
	case *extast.Table:
		return r.table(n, width)
	}
	return wrapStyled(r.inline(n, ink{}), width)
}

func (r *blocks) quoteSign() string {
	if r.signs == &asciiSigns {
		return "|"
	}
	return "│"
}

func (r *blocks) list(n *ast.List, width int) (lines []string) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		first := "• "
		switch {
		case n.IsOrdered():
			first = fmt.Sprintf("%d. ", number)
			number++
		case isTask(item):
			first = ""
		case r.signs == &asciiSigns:
			first = "- "
		}
		rest := strings.Repeat(" ", max(len([]rune(first)), 2))
		own := r.all(item, max(width-len(rest), minWidth))
		if own == nil {
			own = []string{""}
		}
		lines = append(lines, indent(own, first, rest)...)
	}
	return lines
}

// isTask reports that an item starts with a check box, which replaces its bullet.
func isTask(item ast.Node) bool {
	if item.FirstChild() == nil {
		return false
	}
	_, box := item.FirstChild().FirstChild().(*extast.TaskCheckBox)
	return box
}

// code returns the lines of a code block, indented by two columns.
func (r *blocks) code(n ast.Node, width int) (lines []string) {
	source, language := string(n.Lines().Value(r.source)), ""
	if fenced, ok := n.(*ast.FencedCodeBlock); ok {
		language = string(fenced.Language(r.source))
	}
	painted := strings.TrimRight(source, "\n")
	if tokens, ok := highlight.Tokens(source, language); ok {
		painted = paintTokens(tokens)
	}
	for line := range strings.SplitSeq(painted, "\n") {
		lines = append(lines, indent(wrapStyled(line, max(width-2, minWidth)), "  ", "  ")...)
	}
	return lines
}

// paintTokens colors code. Each line has its own styles.
func paintTokens(tokens []chroma.Token) string {
	var b strings.Builder
	for _, line := range chroma.SplitTokensIntoLines(tokens) {
		for _, t := range line {
			value := strings.TrimSuffix(t.Value, "\n")
			if style, ok := codeStyle(t.Type); ok && value != "" {
				b.WriteString(style.Render(value))
			} else {
				b.WriteString(value)
			}
			if value != t.Value {
				b.WriteByte('\n')
			}
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// codeStyle returns the style of a type of tokens, or of the nearest type that it belongs to.
func codeStyle(t chroma.TokenType) (lipgloss.Style, bool) {
	for ; t != 0; t = t.Parent() {
		if style, ok := codeStyles[t]; ok {
			return style, true
		}
	}
	return lipgloss.Style{}, false
}

var codeStyles = map[chroma.TokenType]lipgloss.Style{
	chroma.Comment:             lipgloss.NewStyle().Foreground(lipgloss.BrightBlack),
	chroma.CommentPreproc:      cyan,
	chroma.Keyword:             lipgloss.NewStyle().Foreground(lipgloss.Blue),
	chroma.KeywordType:         cyan,
	chroma.NameBuiltin:         cyan,
	chroma.NameTag:             lipgloss.NewStyle().Foreground(lipgloss.Blue),
	chroma.NameAttribute:       cyan,
	chroma.NameFunction:        yellow,
	chroma.LiteralNumber:       lipgloss.NewStyle().Foreground(lipgloss.Magenta),
	chroma.LiteralString:       green,
	chroma.LiteralStringEscape: cyan,
	chroma.GenericDeleted:      red,
	chroma.GenericInserted:     green,
	chroma.GenericEmph:         lipgloss.NewStyle().Italic(true),
	chroma.GenericStrong:       bold,
}

// table renders a table as wide as its cells, or as wide as the screen with wrapped cells.
func (r *blocks) table(n *extast.Table, width int) []string {
	border := lipgloss.NormalBorder()
	if r.signs == &asciiSigns {
		border = lipgloss.Border{Top: "-", Bottom: "-", Left: "|", Right: "|", Middle: "|"}
	}
	t := table.New().Border(border).BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false)
	t.StyleFunc(func(_, column int) lipgloss.Style {
		style := lipgloss.NewStyle().Padding(0, 1)
		if column < len(n.Alignments) {
			switch n.Alignments[column] {
			case extast.AlignCenter:
				style = style.Align(lipgloss.Center)
			case extast.AlignRight:
				style = style.Align(lipgloss.Right)
			}
		}
		return style
	})
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, r.inline(cell, ink{}))
		}
		if _, head := row.(*extast.TableHeader); head {
			t.Headers(cells...)
		} else {
			t.Row(cells...)
		}
	}
	out := t.String()
	if lipgloss.Width(out) > width {
		out = t.Width(width).String()
	}
	return strings.Split(out, "\n")
}

// inline returns the text in a node with its styles. Newlines of the text stay.
func (r *blocks) inline(parent ast.Node, style ink) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		inner := style
		switch n := n.(type) {
		case *ast.Text:
			b.WriteString(style.paint(unescape(n.Value(r.source))))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte('\n')
			}
			continue
		case *ast.String:
			b.WriteString(style.paint(string(n.Value)))
			continue
		case *ast.CodeSpan:
			inner.color = lipgloss.Magenta
			b.WriteString(inner.paint(strings.ReplaceAll(plainText(n, r.source), "\n", " ")))
			continue
		case *ast.AutoLink:
			b.WriteString(address.paint(label(string(n.Label(r.source)))))
			continue
		case *extast.TaskCheckBox:
			b.WriteString(style.paint(r.checkBox(n.IsChecked)))
			continue
		case *ast.Image:
			b.WriteString(style.paint("Image: ") + r.link(n, n.Destination, style, r.arrow()))
			continue
		case *ast.Link:
			inner.bold = true
			b.WriteString(r.link(n, n.Destination, inner, " "))
			continue
		case *ast.Emphasis:
			inner.bold, inner.italic = style.bold || n.Level == 2, style.italic || n.Level == 1
		case *extast.Strikethrough:
			inner.strike = true
		}
		b.WriteString(r.inline(n, inner))
	}
	return b.String()
}

// link returns the text of a link and where it leads, which is written once if both are
// the same.
func (r *blocks) link(n ast.Node, to []byte, style ink, between string) string {
	words, end := "", address.paint(label(unescape(to)))
	if plainText(n, r.source) != string(to) {
		words = r.inline(n, style)
	}
	if words == "" || end == "" {
		return words + end
	}
	return words + between + end
}

// unescape removes the backslashes before punctuation.
func unescape(b []byte) string { return string(util.UnescapePunctuations(b)) }

func (r *blocks) arrow() string {
	if r.signs == &asciiSigns {
		return " -> "
	}
	return " → "
}

func (r *blocks) checkBox(checked bool) string {
	switch {
	case !checked:
		return "[ ] "
	case r.signs == &asciiSigns:
		return "[x] "
	}
	return "[✓] "
}

// plainText returns the text in a node without styles.
func plainText(parent ast.Node, source []byte) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if t, ok := n.(*ast.Text); ok {
			b.Write(t.Value(source))
			if t.SoftLineBreak() {
				b.WriteByte('\n')
			}
			continue
		}
		b.WriteString(plainText(n, source))
	}
	return b.String()
}

// tooDeep reports that a line starts with many quote or list signs, or that the text has
// far more of other signs than a person reads.
func tooDeep(text string) bool {
	columns, lines := 0, 0
	for line := range strings.Lines(text) {
		columns, lines = max(columns, strings.Count(line, "|")), lines+1
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
	return columns*lines > maxCells || strings.Count(text, "[") > 1000 || strings.Count(text, "*")+strings.Count(text, "_") > 4000
}

// trimRight removes spaces at the end of a line with styles.
func trimRight(line string) string {
	plain := ansi.Strip(line)
	return ansi.Truncate(line, ansi.StringWidth(strings.TrimRight(plain, " ")), "")
}

// trimEmpty removes empty lines at the start and the end.
func trimEmpty(lines []string) []string {
	empty := func(l string) bool { return strings.TrimSpace(ansi.Strip(l)) == "" }
	for len(lines) > 0 && empty(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && empty(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}
