package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/highlight"
	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/unidiff"
	"github.com/furlhq/furl/internal/visible"
)

// plain renders a text as it is.
func plain(text string) template.HTML {
	return template.HTML(`<pre class="plain">` + template.HTMLEscapeString(printable(text)) + `</pre>`)
}

// printable makes a text safe to show.
func printable(s string) string {
	return visible.Text(strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\r\n", "\n"))
}

// maxMarkdown is the length of the longest text that is parsed as Markdown, in bytes, and
// maxLine that of its longest line. Others are shown as they are.
const (
	maxMarkdown = 64 << 10
	maxLine     = 8 << 10
)

// maxNesting is the length of the longest start of a line of list and quote signs and
// spaces, and maxCells the number of cells that a table could have. Deeper lists and larger
// tables are not parsed: their HTML is far longer than the text, because each row of a
// table gets all columns.
const (
	maxNesting = 100
	maxCells   = 8000
)

// markdown renders a text in Markdown. HTML in it is shown as text, and so are images. A
// result with anything but the elements that it writes is not shown: the text is, as it is.
func markdown(text string) template.HTML {
	text = printable(text)
	if len(text) > maxMarkdown || longestLine(text) > maxLine {
		return plain(text)
	}
	columns, lines := 0, 0
	for line := range strings.Lines(text) {
		if len(line)-len(strings.TrimLeft(line, " \t>-*+")) > maxNesting {
			return plain(text)
		}
		columns, lines = max(columns, strings.Count(line, "|")), lines+1
	}
	md := markdownParser()
	if columns*lines > maxCells {
		md = tablelessParser()
	}
	var b bytes.Buffer
	if err := md.Convert([]byte(text), &b); err != nil {
		return plain(text)
	}
	if !onlyAllowed(b.String()) {
		return plain(text)
	}
	return template.HTML(`<div class="md">` + b.String() + `</div>`)
}

func longestLine(s string) (n int) {
	for line := range strings.Lines(s) {
		n = max(n, len(line))
	}
	return n
}

var (
	markdownParser = sync.OnceValue(func() goldmark.Markdown {
		return newMarkdown(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)))
	})
	tablelessParser = sync.OnceValue(func() goldmark.Markdown { return newMarkdown() })
)

// newMarkdown returns a parser without definitions of links, which would be invisible.
func newMarkdown(more ...goldmark.Extender) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithParser(parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...), parser.WithInlineParsers(parser.DefaultInlineParsers()...))),
		goldmark.WithExtensions(append(more, extension.Strikethrough, extension.TaskList)...),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(nodes{}, 1))),
	)
}

// nodes renders code with its syntax, and HTML and images as text.
type nodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (nodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			block := n.(*ast.FencedCodeBlock)
			if block.Info != nil {
				_, _ = fmt.Fprintf(w, `<span class="info">%s</span>`, template.HTMLEscapeString(string(block.Info.Value(source))))
			}
			var text strings.Builder
			for i := range block.Lines().Len() {
				line := block.Lines().At(i)
				text.Write(line.Value(source))
			}
			_, _ = w.WriteString(string(code(text.String(), string(block.Language(source)))))
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			writeSegments(w, n.(*ast.RawHTML).Segments, source)
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		block := n.(*ast.HTMLBlock)
		if entering {
			_, _ = w.WriteString(`<pre class="plain">`)
			writeSegments(w, block.Lines(), source)
			return ast.WalkContinue, nil
		}
		if block.HasClosure() {
			_, _ = w.WriteString(template.HTMLEscapeString(string(block.ClosureLine.Value(source))))
		}
		_, _ = w.WriteString(`</pre>`)
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindLink, link)
	r.Register(ast.KindAutoLink, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			l := n.(*ast.AutoLink)
			open, end := anchor(l.URL(source))
			_, _ = w.WriteString(open + template.HTMLEscapeString(string(l.Label(source))) + end)
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindImage, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			image := n.(*ast.Image)
			_, _ = fmt.Fprintf(w, `<span class="image">[image %s]</span>`, template.HTMLEscapeString(destination(image.Destination, image.Title)))
		}
		return ast.WalkContinue, nil
	})
}

// link writes a link, and behind it where it leads unless its text says so. What does not lead
// to a web page is no link; what it has as its destination stays.
func link(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	l := n.(*ast.Link)
	open, end := anchor(l.Destination)
	if entering {
		_, _ = w.WriteString(open)
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(end)
	if to := destination(l.Destination, l.Title); to != "" && to != textOf(l, source) {
		_, _ = fmt.Fprintf(w, ` <span class="dest">(%s)</span>`, template.HTMLEscapeString(to))
	}
	return ast.WalkContinue, nil
}

// destination returns where a link leads, with its title if it has one.
func destination(to, title []byte) string {
	if len(title) == 0 {
		return string(to)
	}
	return fmt.Sprintf(`%s "%s"`, to, title)
}

// textOf returns the text of a node without marks.
func textOf(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // has no errors
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// writeSegments writes parts of the source as text. Errors of the buffer are reported when it
// is flushed.
func writeSegments(w util.BufWriter, segments *text.Segments, source []byte) {
	for i := range segments.Len() {
		segment := segments.At(i)
		_, _ = w.WriteString(template.HTMLEscapeString(string(segment.Value(source))))
	}
}

// anchor returns the start and the end of a link to a web page, or nothing for other
// destinations.
func anchor(to []byte) (open, end string) {
	to = util.URLEscape(to, true)
	u, err := url.Parse(string(to))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", ""
	}
	return fmt.Sprintf(`<a href="%s"`, util.EscapeHTML(to)) + anchorEnd, "</a>"
}

const anchorEnd = ` rel="nofollow noreferrer noopener" target="_blank">`

// The elements that markdown writes, and the values of attributes of some.
var (
	elements   = set(strings.Fields("p br hr em strong del code pre blockquote ul ol li h1 h2 h3 h4 h5 h6 table thead tbody tr th td span input a"))
	attributes = map[string]*lazyregexp.Regexp{
		"a href": lazyregexp.New(`^(?i)https?://[^<>"'\s]+$`), "a rel": lazyregexp.New(`^nofollow noreferrer noopener$`), "a target": lazyregexp.New(`^_blank$`),
		"span class": className, "pre class": className, "code class": className, "ol start": lazyregexp.New(`^[0-9]{1,9}$`),
		"input type": lazyregexp.New(`^checkbox$`), "input checked": empty, "input disabled": empty,
	}
	className = lazyregexp.New(`^[a-zA-Z0-9 -]{1,40}$`)
	empty     = lazyregexp.New(`^$`)
)

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

// onlyAllowed reports that HTML has only the elements and attributes that markdown
// writes, in the way that it writes them. The renderer escapes everything else: this is for
// the case that it has a flaw.
func onlyAllowed(html string) bool {
	for {
		_, after, found := strings.Cut(html, "<")
		if !found {
			return true
		}
		tag, rest, closed := strings.Cut(after, ">")
		if !closed || !allowedTag(tag) {
			return false
		}
		html = rest
	}
}

// allowedTag reports whether the text between < and > is an element of elements, with only
// attributes of attributes.
func allowedTag(tag string) bool {
	if name, end := strings.CutPrefix(tag, "/"); end {
		return elements[name]
	}
	name, rest, _ := strings.Cut(strings.TrimSuffix(tag, " /"), " ")
	if !elements[name] {
		return false
	}
	for rest != "" {
		attribute, after, ok := strings.Cut(rest, `="`)
		value, more, closed := strings.Cut(after, `"`)
		if allowed := attributes[name+" "+attribute]; !ok || !closed || allowed == nil || !allowed.MatchString(value) {
			return false
		}
		if rest = more; rest != "" {
			if rest, ok = strings.CutPrefix(more, " "); !ok || rest == "" {
				return false
			}
		}
	}
	return true
}

// code renders source code in a language, or as it is if the language is unknown.
func code(text, language string) template.HTML {
	text = printable(text)
	tokens, ok := highlight.Tokens(text, language)
	if !ok {
		return plain(text)
	}
	var b strings.Builder
	b.WriteString(`<pre class="code">`)
	for _, line := range chroma.SplitTokensIntoLines(tokens) {
		for _, t := range line {
			if class := codeClass(t.Type); class != "" {
				fmt.Fprintf(&b, `<span class="c-%s">%s</span>`, class, template.HTMLEscapeString(t.Value))
			} else {
				b.WriteString(template.HTMLEscapeString(t.Value))
			}
		}
	}
	b.WriteString(`</pre>`)
	return template.HTML(b.String())
}

// codeClass returns the short name that Pygments and Chroma have for a type of tokens, or
// "" for text.
func codeClass(t chroma.TokenType) string {
	for ; t != 0; t = t.Parent() {
		if class, ok := chroma.StandardTypes[t]; ok {
			return class
		}
	}
	return ""
}

// callHTML renders the arguments of a call: edits as a diff, commands and files as code,
// others as JSON.
func callHTML(b *furl.Block, text string) template.HTML {
	var args map[string]json.RawMessage
	if len(text) < len(b.Args) || json.Unmarshal(b.Args, &args) != nil {
		var free string
		if json.Unmarshal([]byte(text), &free) == nil {
			return patchOrPlain(free)
		}
		return plain(text)
	}
	get := func(keys ...string) (string, bool) {
		for _, k := range keys {
			var s string
			if v, ok := args[k]; ok && json.Unmarshal(v, &s) == nil {
				return s, true
			}
		}
		return "", false
	}
	file, _ := get("file_path", "filePath", "path", "filename")
	if before, ok := get("old_string", "oldString", "old_str"); ok {
		after, _ := get("new_string", "newString", "new_str")
		return diff(unidiff.Diff(visible.Line(file), ended(before), ended(after)))
	}
	if content, ok := get("content", "file_text"); ok && file != "" {
		return code(content, highlight.Language(file))
	}
	if command, ok := get("command", "cmd"); ok {
		return code(command, "bash")
	}
	if patch, ok := get("patch", "input"); ok {
		return patchOrPlain(patch)
	}
	var indented bytes.Buffer
	if nesting(b.Args) > maxIndented || json.Indent(&indented, b.Args, "", "  ") != nil {
		return plain(text)
	}
	return code(indented.String(), "json")
}

// maxIndented is the depth of the deepest JSON that is indented. The indentation of deeper
// JSON could be a thousand times as long as the JSON.
const maxIndented = 40

// nesting returns the depth of JSON.
func nesting(b []byte) (deepest int) {
	depth, inText := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// ended returns a text that ends with a newline, so that a diff has no notes about it.
func ended(s string) []byte {
	if !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return []byte(s)
}

// patchOrPlain renders a patch as a diff, other texts as they are.
func patchOrPlain(text string) template.HTML {
	if strings.Contains(text, "*** Begin Patch") || strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "diff ") {
		return diff(text)
	}
	return plain(text)
}

// maxDiff is the length in bytes of the HTML of a diff, from which the rest is not shown.
const maxDiff = 2 << 20

// hunk counts the lines that a hunk of a unified diff still has before and after the
// change, so that a line in it such as "+++ b/file" is not taken for the name of a file.
type hunk struct{ before, after int }

var hunkHead = lazyregexp.New(`^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@`)

// next reports whether a line is in the hunk, which the line may begin.
func (h *hunk) next(line string) bool {
	if h.before <= 0 && h.after <= 0 {
		if m := hunkHead.FindStringSubmatch(line); m != nil {
			h.before, h.after = hunkLines(m[1]), hunkLines(m[2])
		}
		return false
	}
	switch {
	case strings.HasPrefix(line, "+"):
		h.after--
	case strings.HasPrefix(line, "-"):
		h.before--
	case strings.HasPrefix(line, "\\"): // No newline at end of file
	default:
		h.before, h.after = h.before-1, h.after-1
	}
	return true
}

// hunkLines returns a number of lines in the head of a hunk, which leaves out 1.
func hunkLines(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 1
	}
	return n
}

// diff renders a unified diff, or another text whose lines start with + and -.
func diff(text string) template.HTML {
	var b strings.Builder
	b.WriteString(`<pre class="diff">`)
	left := 0 // bytes that are not shown
	var h hunk
	for line := range strings.Lines(printable(text)) {
		class := ""
		if b.Len() > maxDiff {
			left += len(line)
			continue
		}
		if len(line) > maxShown {
			head, _ := cut(line, maxShown)
			line = fmt.Sprintf("%s… %s more bytes\n", head, thousands(len(line)-len(head)))
		}
		inside := h.next(line)
		switch {
		case !inside && (strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---") || strings.HasPrefix(line, "***")):
			class = "file"
		case !inside && strings.HasPrefix(line, "@@"):
			class = "at"
		case strings.HasPrefix(line, "+"):
			class = "add"
		case strings.HasPrefix(line, "-"):
			class = "del"
		}
		fmt.Fprintf(&b, `<span class="%s">%s</span>`, class, template.HTMLEscapeString(line))
	}
	if left > 0 {
		fmt.Fprintf(&b, `<span class="at">… %s more bytes</span>`, thousands(left))
	}
	b.WriteString(`</pre>`)
	return template.HTML(b.String())
}
