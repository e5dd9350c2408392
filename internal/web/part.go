package web

import (
	"encoding/json"
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/visible"
)

// kind is the kind of a block, by which the page colors it.
type kind string

const (
	kindSystem      kind = "system"
	kindTools       kind = "tools"
	kindUser        kind = "user"
	kindAssistant   kind = "assistant"
	kindCall        kind = "call"
	kindThinking    kind = "thinking"
	kindResult      kind = "result"
	kindSummary     kind = "summary"
	kindPlaceholder kind = "placeholder"
)

// kindOf returns the kind of a block as recorded.
func kindOf(msg *furl.Message, b *furl.Block) kind {
	switch {
	case b.Kind == furl.KindThinking:
		return kindThinking
	case b.IsResult():
		return kindResult
	case b.Kind == furl.KindCall:
		return kindCall
	}
	switch msg.Role {
	case furl.RoleAssistant:
		return kindAssistant
	case furl.RoleSystem, furl.RoleDeveloper:
		return kindSystem
	}
	return kindUser
}

// part is a block of a message as the page shows it.
type part struct {
	At     string // its handle in addresses, such as "12.0"; "" for a marker of the view
	Kind   kind
	Title  string // of a call or a result
	Tokens int    // the provider's
	Error  bool
	// Hidden reports that the model does not see it as recorded; By is the reduction.
	Hidden bool
	By     furl.Seq
	Media  []picture

	msg         *furl.Message
	block       *furl.Block
	text        string // in place of the block's
	placeholder bool
	brief       bool // its text is loaded when it is opened, or is only its beginning
}

// maxPictures is the number of images of a block that the page shows.
const maxPictures = 50

// picture is an image of a block.
type picture struct {
	Address       string // of its bytes
	Type          string
	Width, Height int // in pixels, 0 if unknown
}

// part returns a block.
func (m *moment) part(pos furl.Pos, msg *furl.Message, b *furl.Block) part {
	p := part{Kind: kindOf(msg, b), Tokens: m.tokens(b.Tokens, b, m.state.ShownBy(pos) != 0), Error: b.Error || b.ErrorText, msg: msg, block: b}
	if pos.Msg != 0 {
		p.At = handle(pos)
	}
	switch b.Kind {
	case furl.KindCall:
		p.Title = callTitle(b)
	case furl.KindResult:
		p.Title = m.resultTitle(pos, b)
	}
	for i := range b.Media {
		if len(p.Media) == maxPictures {
			break
		}
		if media := &b.Media[i]; isPicture(media.Type) {
			p.Media = append(p.Media, picture{Address: m.mediaAddress(p.At, i), Type: media.Type, Width: media.Width, Height: media.Height})
		}
	}
	return p
}

func isPicture(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// handle is the form of a position in addresses.
func handle(pos furl.Pos) string { return fmt.Sprintf("%d.%d", pos.Msg, pos.Block) }

func seqKey(seq furl.Seq) string { return strconv.FormatUint(uint64(seq), 10) }

// titleKeys are the arguments that tell what a call is about, most telling first.
var titleKeys = []string{"file_path", "filePath", "path", "filename", "command", "cmd", "pattern", "query", "url", "description", "prompt", "name"}

const (
	maxName   = 80      // length of a tool's name in a title, in characters
	maxTitled = 1 << 20 // bytes of the longest arguments that are read for a title
	// maxAway is how many blocks before a result its call is looked for. Agents put
	// results right after their calls.
	maxAway = 2000
)

// callTitle describes a call in a line: the tool and the argument that matters.
func callTitle(b *furl.Block) string {
	name := shorten(visible.Line(b.Name[:min(len(b.Name), 4*maxName)]), maxName)
	var args map[string]any
	if len(b.Args) > maxTitled || json.Unmarshal(b.Args, &args) != nil {
		return name
	}
	for _, key := range titleKeys {
		switch v := args[key].(type) {
		case string:
			if v != "" {
				return name + " " + shorten(firstLine(v), 100)
			}
		case []any: // a command as a list of words
			words := make([]string, 0, len(v))
			for _, w := range v {
				words = append(words, fmt.Sprint(w))
			}
			return name + " " + shorten(firstLine(strings.Join(words, " ")), 100)
		}
	}
	return name
}

// resultTitle describes the call of a result.
func (m *moment) resultTitle(pos furl.Pos, b *furl.Block) string {
	i, ok := m.state.Find(pos.Msg)
	if !ok {
		return ""
	}
	for left := maxAway; i >= 0 && left > 0 && b.ID != ""; i-- {
		_, msg := m.state.Message(i)
		for j := range msg.Blocks {
			if left--; left == 0 {
				break
			}
			if c := &msg.Blocks[j]; c.Kind == furl.KindCall && c.ID == b.ID {
				return callTitle(c)
			}
		}
	}
	return ""
}

// firstLine returns the first line of a text that is not empty.
func firstLine(s string) string {
	s = strings.TrimSpace(s[:min(len(s), 4096)])
	line, _, _ := strings.Cut(s, "\n")
	return visible.Line(strings.ReplaceAll(strings.TrimSpace(strings.ToValidUTF8(line, "�")), "\t", " "))
}

// shorten cuts a text after limit characters.
func shorten(s string, limit int) string {
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i] + "…"
		}
	}
	return s
}

// Text returns the text of a part as recorded, or its placeholder.
func (p *part) Text() string {
	if p.placeholder {
		return p.text
	}
	if p.block.Kind == furl.KindCall {
		return string(p.block.Args)
	}
	return p.block.Text
}

// Empty reports whether there is nothing to show.
func (p *part) Empty() bool { return p.Text() == "" && len(p.Media) == 0 }

// First is the first line of the text, for folded parts.
func (p *part) First() string { return shorten(firstLine(p.Text()), 140) }

// Folded reports whether the part shows a line first, and the rest on request.
func (p *part) Folded() bool {
	return p.brief || p.Hidden || p.Kind == kindCall || p.Kind == kindResult || p.Kind == kindThinking || p.Kind == kindSystem
}

// lazy is the size in bytes from which a folded part is loaded when it is opened.
const lazy = 400

// Lazy reports whether the part is loaded when it is opened.
func (p *part) Lazy() bool {
	return p.At != "" && !p.placeholder && (p.brief || len(p.Text()) > lazy || len(p.Media) > 0)
}

// folded is the size in bytes from which the text of a part is cut in the transcript. The
// rest is shown on request.
const folded = 6000

// limit is the size in bytes from which the text is cut.
func (p *part) limit() int {
	if p.brief && (p.At == "" || p.placeholder) { // it cannot be loaded
		return lazy
	}
	return folded
}

// HTML returns the beginning of the text in HTML.
func (p *part) HTML() template.HTML {
	text, _ := cut(p.Text(), p.limit())
	return p.format(text)
}

// More is the number of bytes that HTML leaves out.
func (p *part) More() int {
	text := p.Text()
	head, _ := cut(text, p.limit())
	return len(text) - len(head)
}

// format renders a text of the part.
func (p *part) format(text string) template.HTML {
	switch {
	case p.placeholder || p.Kind == kindSummary:
		return plain(text)
	case p.Kind == kindCall:
		return callHTML(p.block, text)
	case p.Kind == kindResult:
		return plain(text)
	}
	return markdown(text)
}

// cut returns the first n bytes of a text, at the end of a line or a character, and
// whether that is less than all.
func cut(s string, n int) (string, bool) {
	if len(s) <= n {
		return s, false
	}
	s = s[:n]
	if i := strings.LastIndexByte(s, '\n'); i > n/2 {
		return s[:i+1], true
	}
	for len(s) > 0 && s[len(s)-1]&0xC0 == 0x80 {
		s = s[:len(s)-1]
	}
	return s[:max(len(s)-1, 0)], true
}
