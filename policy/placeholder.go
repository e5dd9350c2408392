package policy

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/toolscript"
)

// Placeholder writes what a result was, and the names in it that the model is most
// likely to need again, in at most so many counted tokens (0: none):
//
//	[hidden: read_file src/a.go, 5321 characters; original kept as furl:12.1; names in it: VerifyToken src/b.go]
//
// Names are copied, never paraphrased, so that the model can use and search for
// them. The handle is left out if the model cannot call recall tools.
func Placeholder(nameTokens int) Writer {
	return func(r *Result) string { return r.placeholder(nameBudget{most: nameTokens}) }
}

func (r *Result) placeholder(most nameBudget) string {
	var out strings.Builder
	out.WriteString("[hidden: ")
	if what := strings.TrimSpace(r.Tool() + " " + r.target()); what != "" {
		out.WriteString(what + ", ")
	}
	fmt.Fprintf(&out, "%d characters", r.Chars())
	if c := r.Call(); seemsFailed(r.Block.Block) {
		out.WriteString(", failed: " + failure(r.Block.Block.Text))
	} else if c != nil && repeatsInput(c, r.Block.Block) {
		out.WriteString(", repeats its input, begins: " + firstLine(r.Block.Block.Text))
	}
	out.WriteString(keptAs(r.Block.Pos, r.Recall))
	told := namesIn(slices.Values([]string{out.String()}))
	if names := r.names(most, told); len(names) > 0 {
		out.WriteString("; names in it: " + strings.Join(names, " "))
	}
	out.WriteByte(']')
	return out.String()
}

// target is what the result's call acts on, "" if that is unknown.
func (r *Result) target() string {
	if c := r.Call(); c != nil {
		return target(c)
	}
	return ""
}

// names returns the names in the result that are most likely needed again, without
// those that stay visible and those that were listed already.
func (r *Result) names(most nameBudget, told map[string]bool) []string {
	if most.most <= 0 {
		return nil
	}
	if r.shown == nil {
		r.shown = newShownNames(r.View, []*furl.ShownBlock{r.Block})
	}
	return r.shown.tell(toolscript.Texts(r.Block.Block), most, r.Counter, told)
}

// shownNames is the set of names that stay visible in a view when some of its
// blocks are hidden: those in messages of the user and the assistant, in calls,
// and in placeholders, including the ones written so far. Results and thinking
// that are shown whole do not count, since they will be hidden later. The view is
// read on first use.
type shownNames struct {
	view   *furl.View
	hidden map[furl.Pos]bool
	names  map[string]bool
}

func newShownNames(v *furl.View, hidden []*furl.ShownBlock) *shownNames {
	n := &shownNames{view: v, hidden: make(map[furl.Pos]bool, len(hidden))}
	for _, sb := range hidden {
		n.hidden[sb.Pos] = true
	}
	return n
}

// tell returns the names in texts that are most likely needed again, without those
// that stay visible or are in one of the other sets, and adds them to the names
// that stay visible.
func (n *shownNames) tell(texts iter.Seq[string], most nameBudget, c furl.Counter, others ...map[string]bool) []string {
	if n.names == nil {
		n.read()
	}
	names := telling(n.view.State, texts, most, c, func(name string) bool {
		for _, set := range others {
			if set[name] {
				return true
			}
		}
		return n.names[name]
	})
	for _, name := range names {
		for name := range lexer.Names(name) { // without what belongs before it
			n.names[name] = true
		}
	}
	return names
}

// add adds the names in a text to those that stay visible.
func (n *shownNames) add(text string) {
	if n.names == nil {
		n.read()
	}
	for name := range lexer.Names(text) {
		n.names[name] = true
	}
}

func (n *shownNames) read() {
	n.names = make(map[string]bool)
	for i := range n.view.Units {
		blocks := n.view.Units[i].Blocks
		for j := range blocks {
			sb := &blocks[j]
			whole := sb.By == 0 && (sb.Block.IsResult() || sb.Block.Kind == furl.KindThinking)
			if whole || sb.Pos.Msg != 0 && n.hidden[sb.Pos] {
				continue
			}
			for text := range toolscript.ShownTexts(sb) {
				for name := range lexer.Names(text) {
					n.names[name] = true
				}
			}
		}
	}
}
