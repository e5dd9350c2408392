package policy

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl"
)

// Result is a tool result that a stage may hide.
type Result struct {
	View  *furl.View
	Unit  *furl.Unit // its step
	Block *furl.ShownBlock
	Age   int // steps since its own
	Newer int // results in the view that are newer
	// Counter counts the tokens of a placeholder. If nil, four bytes a token.
	Counter furl.Counter
	// Recall reports whether the model can call recall tools: only then does a
	// placeholder have a handle.
	Recall bool

	shown *shownNames // shared by the results of one reduction
}

// eachResult calls yield for the results in the view's steps, oldest first, until
// it returns false. The Result is valid during the call.
func eachResult(v *furl.View, b furl.Budget, yield func(*Result) bool) {
	steps := v.Steps
	r := Result{View: v, Counter: b.Counter, Recall: b.Recall}
	for i := range v.Units {
		r.Newer += results(&v.Units[i])
	}
	for i := range v.Units {
		u := &v.Units[i]
		if u.Kind != furl.UnitStep {
			continue
		}
		for j := range u.Blocks {
			sb := &u.Blocks[j]
			if !sb.Block.IsResult() {
				continue
			}
			r.Newer--
			r.Unit, r.Block, r.Age = u, sb, steps-u.Step
			if !yield(&r) {
				return
			}
		}
	}
}

func results(u *furl.Unit) int {
	n := 0
	for i := range u.Blocks {
		if u.Blocks[i].Block.IsResult() {
			n++
		}
	}
	return n
}

// replace appends an item that shows the text in place of the result, if the text
// is smaller than what is shown now.
func (r *Result) replace(items []furl.Item, text string, b furl.Budget) []furl.Item {
	in := furl.InPlace(r.Block.Block, text, b.Counter)
	if in.Tokens >= r.Block.Tokens {
		return items
	}
	in.Note = r.note()
	return append(items, furl.Item{Spans: []furl.Span{{First: r.Block.Pos, Last: r.Block.Pos}}, Show: in})
}

// Call is the call of the result, nil if it is not in the step.
func (r *Result) Call() *furl.Block {
	for i := range r.Unit.Blocks {
		if b := r.Unit.Blocks[i].Block; b.Kind == furl.KindCall && b.ID == r.Block.Block.ID {
			return b
		}
	}
	return nil
}

// Tool is the name of the tool, "" if it is unknown.
func (r *Result) Tool() string {
	if c := r.Call(); c != nil {
		return c.Name
	}
	return ""
}

// Chars is the length of the result's recorded text in characters.
func (r *Result) Chars() int { return utf8.RuneCountInString(r.Block.Block.Text) }

// handle names a block for recall: message and block. It never changes.
func handle(p furl.Pos) string { return fmt.Sprintf("furl:%d.%d", p.Msg, p.Block) }

// keptAs tells the model where the original of a block is. It is empty if the
// model cannot call recall tools: it could do nothing with a handle.
func keptAs(p furl.Pos, recall bool) string {
	if !recall {
		return ""
	}
	return "; original kept as " + handle(p)
}

// keptFromTo is keptAs for all blocks from one to another.
func keptFromTo(first, last furl.Pos, recall bool) string {
	switch {
	case !recall:
		return ""
	case first == last:
		return "; originals kept as " + handle(first)
	}
	return "; originals kept as " + handle(first) + " to " + handle(last)
}

// A Writer returns the placeholder of a result.
type Writer func(r *Result) string

// The default placeholders, as the origins have them (A2, M2).
const (
	textAge         = "[content truncated - {age} steps ago]"
	textObservation = "[observation masked — {chars} chars]"
	textCleared     = "[cleared]"
)

// Template writes a text with these fields filled in: {tool} and {args}, the tool
// and its arguments, cut to 120 characters; {target}, the file or the command
// among them; {chars} and {tokens}, the size of the result; {error}, what failed,
// if it did; {age}, its age in steps when it was hidden; {handle}, its name for
// recall, empty if the model cannot call recall tools; {names}, the names in it that are most likely needed again and do not
// stay visible, in at most 200 counted tokens, or {names:50} in at most 50. Other
// text in braces stays as it is.
func Template(text string) Writer {
	if !strings.Contains(text, "{") {
		return func(*Result) string { return text }
	}
	return func(r *Result) string {
		var out strings.Builder
		rest := text
		for {
			open := strings.IndexByte(rest, '{')
			end := strings.IndexByte(rest[max(open, 0):], '}')
			if open < 0 || end < 0 {
				out.WriteString(rest)
				return out.String()
			}
			out.WriteString(rest[:open])
			if value, ok := r.field(rest[open+1 : open+end]); ok {
				out.WriteString(value)
				rest = rest[open+end+1:]
			} else {
				out.WriteByte('{')
				rest = rest[open+1:]
			}
		}
	}
}

// maxArgs is how much of a call's arguments a placeholder repeats, in characters.
const maxArgs = 120

// defaultNames is how many counted tokens {names} may take.
const defaultNames = 200

// field is the value of one field of a template.
func (r *Result) field(name string) (string, bool) {
	switch name {
	case "tool":
		return r.Tool(), true
	case "args":
		if c := r.Call(); c != nil {
			return cut(string(c.Args), maxArgs), true
		}
		return "", true
	case "chars":
		return strconv.Itoa(r.Chars()), true
	case "tokens":
		return strconv.Itoa(r.Block.Block.Tokens), true
	case "age":
		return strconv.Itoa(r.Age), true
	case "handle":
		if !r.Recall {
			return "", true
		}
		return handle(r.Block.Pos), true
	case "target":
		return r.target(), true
	case "error":
		if seemsFailed(r.Block.Block) {
			return failure(r.Block.Block.Text), true
		}
		return "", true
	case "names":
		return strings.Join(r.names(nameBudget{most: defaultNames}, nil), " "), true
	}
	if n, ok := strings.CutPrefix(name, "names:"); ok {
		if most, err := strconv.Atoi(n); err == nil {
			return strings.Join(r.names(nameBudget{most: most}, nil), " "), true
		}
	}
	return "", false
}

// cut shortens text to at most n characters, the last of them an ellipsis.
func cut(text string, n int) string {
	if len(text) <= n {
		return text // fewer bytes, so fewer characters
	}
	count := 0
	for i := range text {
		if count++; count == n {
			if _, size := utf8.DecodeRuneInString(text[i:]); i+size == len(text) {
				return text
			}
			return text[:i] + "…"
		}
	}
	return text
}
