package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
)

// standIns writes what one reduction shows.
type standIns struct {
	state *furl.State
	b     furl.Budget
	dial  dial
	// known are names that need not be listed: they are in words of the user
	// or of the assistant that stay, or in an earlier stand-in.
	known map[string]bool
}

func newStandIns(v *furl.View, b furl.Budget, d dial, hidden []candidate) *standIns {
	w := &standIns{state: v.State(), b: b, dial: d, known: make(map[string]bool)}
	gone := make(map[furl.Pos]bool, len(hidden))
	for i := range hidden {
		gone[hidden[i].block.Pos] = true
	}
	for i := range v.Messages {
		for j := range v.Messages[i].Blocks {
			sb := &v.Messages[i].Blocks[j]
			kind := sb.Block.Kind
			if sb.Pos.Msg != 0 && gone[sb.Pos] || kind == furl.KindThinking || kind == furl.KindResult && sb.By == 0 {
				continue
			}
			for text := range sb.Texts() {
				for name := range furl.Names(text) {
					w.known[name] = true
				}
			}
		}
	}
	return w
}

// show gives what is shown for a candidate and its size in counted tokens;
// false if it would be no smaller.
func (w *standIns) show(c *candidate) (show furl.Show, size int, ok bool) {
	var text string
	switch c.kind {
	case aThought:
		return furl.Gone{}, 0, true
	case aResult:
		text = w.result(c)
	case aCall:
		if text = w.input(c); text == "" {
			return nil, 0, false
		}
	}
	in := furl.InPlace(c.block.Block, text, w.b.Counter)
	in.Note = c.note()
	return in, in.Tokens, in.Tokens < c.block.Tokens
}

func (c *candidate) note() string {
	r := Result{Unit: c.unit, Block: c.block, Newer: c.newer}
	tool := cmp.Or(r.Tool(), c.block.Block.Name, "tool")
	if c.kind == aCall {
		tool = c.block.Block.Name + " input"
	}
	return fmt.Sprintf("%s, %d tokens, %d newer results", tool, c.block.Tokens, c.newer)
}

// result is the stand-in of a tool result.
func (w *standIns) result(c *candidate) string {
	r := Result{Unit: c.unit, Block: c.block}
	what := r.Tool()
	if call := r.Call(); call != nil {
		what = strings.TrimSpace(what + " " + target(call))
	}
	text := fmt.Sprintf("[hidden: %s, %d characters, kept as %s]", cmp.Or(what, "result"), r.Chars(), handle(c.block.Pos))
	if c.block.Block.Error {
		text += " it failed"
	}
	if names := w.names(c.block.Block.Text, w.dial.room(c.block.Tokens)); names != "" {
		text += " names in it: " + names
	}
	return text + mediaNote(c.block.Block.Media)
}

// input is a call's input with its long texts replaced, everything else byte
// for byte as it was; "" if there are none.
func (w *standIns) input(c *candidate) string {
	args := c.block.Block.Args
	if !json.Valid(args) {
		return ""
	}
	var out bytes.Buffer
	done := 0
	for i := 0; i < len(args); i++ {
		if args[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(args) && args[end] != '"' {
			if args[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(args))
		rest := bytes.TrimLeft(args[end:], " \t\r\n")
		var text string
		if end-i-2 >= minString && !bytes.HasPrefix(rest, []byte(":")) && json.Unmarshal(args[i:end], &text) == nil {
			words := fmt.Sprintf("[shortened by furl, not part of the input: %d characters, kept as %s", utf8.RuneCountInString(text), handle(c.block.Pos))
			if names := w.names(text, w.dial.room(len(text)/4)); names != "" {
				words += "; names in it: " + names
			}
			if quoted, err := json.Marshal(words + "]"); err == nil && len(quoted) < end-i {
				out.Write(args[done:i])
				out.Write(quoted)
				done = end
			}
		}
		i = end - 1
	}
	if done == 0 {
		return ""
	}
	out.Write(args[done:])
	return out.String()
}

// names lists the names in a text that are rarest on the path and not known
// yet, as many as go into so many counted tokens, in the order of the text.
func (w *standIns) names(text string, budget int) string {
	type found struct {
		name     string
		rare, at int
	}
	var list []found
	seen := make(map[string]bool)
	for name := range furl.Names(text) {
		if !seen[name] && !w.known[name] {
			seen[name] = true
			list = append(list, found{name, w.state.Rarity(name), len(list)})
		}
	}
	slices.SortFunc(list, func(a, b found) int { return cmp.Or(cmp.Compare(a.rare, b.rare), cmp.Compare(a.at, b.at)) })
	n := 0
	for n < len(list) {
		if budget -= 1 + w.count(list[n].name); budget < 0 {
			break
		}
		n++
	}
	list = list[:n]
	slices.SortFunc(list, func(a, b found) int { return cmp.Compare(a.at, b.at) })
	var out strings.Builder
	for i, f := range list {
		if i > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(f.name)
		w.known[f.name] = true
	}
	return out.String()
}

func (w *standIns) count(text string) int {
	if w.b.Counter == nil {
		return (len(text) + 3) / 4
	}
	return w.b.Counter.Count(text)
}
