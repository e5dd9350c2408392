package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// StandIn writes what a result was, and the rarest names in it, as many as go
// into so many counted tokens (0: none):
//
//	[hidden: read_file src/a.go, 5321 characters; original kept as furl:12.1; names in it: VerifyToken, src/b.go]
//
// Names are copied, never paraphrased: a later message that takes one up again
// still finds it, and it is what to search for.
func StandIn(nameTokens int) Writer {
	return func(r *Result) string {
		var out strings.Builder
		out.WriteString("[hidden: ")
		if what := strings.TrimSpace(r.Tool() + " " + r.target()); what != "" {
			out.WriteString(what + ", ")
		}
		fmt.Fprintf(&out, "%d characters", r.Chars())
		if r.Block.Block.Error {
			out.WriteString(", failed: " + failure(r.Block.Block.Text))
		}
		fmt.Fprintf(&out, "; original kept as %s", handle(r.Block.Pos))
		told := namesIn(slices.Values([]string{out.String()}))
		if names := r.names(nameTokens, told); len(names) > 0 {
			out.WriteString("; names in it: " + strings.Join(names, ", "))
		}
		out.WriteByte(']')
		return out.String()
	}
}

// target is what the result's call acts on, "" if that is not known.
func (r *Result) target() string {
	if c := r.Call(); c != nil {
		return target(c)
	}
	return ""
}

// names are the rarest names in the result that the view will show nowhere
// else, and that were not told already.
func (r *Result) names(maxTokens int, told map[string]bool) []string {
	if maxTokens <= 0 {
		return nil
	}
	if r.shown == nil {
		r.shown = newShownNames(r.View, []*furl.ShownBlock{r.Block})
	}
	names := rarest(r.View.State(), r.Block.Block.Text, maxTokens, r.Counter, func(name string) bool {
		return told[name] || r.shown.has(name)
	})
	r.shown.add(names)
	return names
}

// RarestNames gives the names in a text that occur in the fewest blocks of the
// path (see furl.Names and State.Rarity), as many as a list of them may hold
// in so many counted tokens, in the order of the text. Of equally rare ones
// those that occur first are taken. The same path gives the same names.
func RarestNames(s *furl.State, text string, maxTokens int, c furl.Counter) []string {
	return rarest(s, text, maxTokens, c, nil)
}

// maxMisses is how many names that no longer fit are tried before a list is
// taken to be full.
const maxMisses = 20

// rarest is RarestNames without the names for which skip is true.
func rarest(s *furl.State, text string, maxTokens int, c furl.Counter, skip func(string) bool) []string {
	type found struct {
		name     string
		at, rare int
	}
	var all []found
	seen := make(map[string]bool)
	for name := range furl.Names(text) {
		if !seen[name] {
			seen[name] = true
			if skip == nil || !skip(name) {
				all = append(all, found{name, len(all), s.Rarity(name)})
			}
		}
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Or(cmp.Compare(a.rare, b.rare), cmp.Compare(a.at, b.at)) })
	var chosen []found
	misses := 0
	for _, f := range all {
		cost := count(c, ", "+f.name)
		if cost > maxTokens {
			if misses++; misses == maxMisses {
				break
			}
			continue
		}
		maxTokens -= cost
		chosen = append(chosen, f)
	}
	slices.SortFunc(chosen, func(a, b found) int { return cmp.Compare(a.at, b.at) })
	names := make([]string, len(chosen))
	for i := range chosen {
		names[i] = chosen[i].name
	}
	return names
}

// shownNames knows the names that a view still shows when some blocks in it
// are hidden, those in the stand-ins written so far among them. It reads the
// view when it is first asked.
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

func (n *shownNames) has(name string) bool {
	if n.names == nil {
		n.read()
	}
	return n.names[name]
}

func (n *shownNames) add(names []string) {
	for _, name := range names {
		n.names[name] = true
	}
}

func (n *shownNames) read() {
	n.names = make(map[string]bool)
	for i := range n.view.Units {
		blocks := n.view.Units[i].Blocks
		for j := range blocks {
			if p := blocks[j].Pos; p.Msg != 0 && n.hidden[p] {
				continue
			}
			for text := range blocks[j].Texts() {
				for name := range furl.Names(text) {
					n.names[name] = true
				}
			}
		}
	}
}
