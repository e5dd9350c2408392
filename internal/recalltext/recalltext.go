// Package recalltext has the recall tools and the texts of their results, for models.
// The gateway, the agent loop and the MCP server share them.
package recalltext

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
)

// The names of the recall tools.
const (
	ToolSearch = "memory_search"
	ToolGet    = "memory_get"
)

// Limits of recall tools, in bytes.
const (
	MaxOriginal = 16 << 10 // of an original
	MaxQuery    = 2000     // of a query
)

// ErrEmptyQuery is the error of a search without a query.
var ErrEmptyQuery = errors.New("empty query")

// Block describes a block: its role, kind and tool, whether it is an error, and when it
// was recorded.
func Block(role furl.Role, kind, tool string, at time.Time, failed bool) string {
	out := string(role) + " " + kind
	if tool != "" {
		out += " of " + tool
	}
	if failed {
		out += ", an error"
	}
	if !at.IsZero() {
		out += ", " + at.UTC().Format("2006-01-02 15:04 UTC")
	}
	return out
}

// Original returns the lines of an original that a model has requested, at most
// MaxOriginal bytes, and a head that says what and which lines they are.
func Original(o *session.Original, lines recall.Range) (head, piece string, err error) {
	piece, from, to, err := lines.Cut(o.Text)
	if err != nil {
		return "", "", fmt.Errorf("line range out of bounds: the text has %d lines", strings.Count(o.Text, "\n")+1)
	}
	first := strings.Count(o.Text[:from], "\n") + 1
	if short := Truncate(piece, MaxOriginal); len(short) < len(piece) {
		if i := strings.LastIndexByte(short, '\n'); i > len(short)/2 {
			short = short[:i+1]
		}
		to, piece = from+len(short), short
	}
	head = fmt.Sprintf("[%s] %s, %d bytes, %d lines", o.Handle, Block(o.Role, o.Kind, o.Tool, o.Time, o.Error), len(o.Text), strings.Count(o.Text, "\n")+1)
	if from > 0 || to < len(o.Text) {
		head += fmt.Sprintf("; shown from line %d", first)
	}
	if to < len(o.Text) && lines.ToLine == 0 {
		head += fmt.Sprintf("; continue with from_line %d", first+strings.Count(piece, "\n"))
	}
	return head, piece, nil
}

// Truncate returns the first bytes of a text, at most most of them, without splitting a
// character.
func Truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
