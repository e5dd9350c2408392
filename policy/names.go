package policy

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/namecount"
)

// tellingNames returns the names in a text that are most likely to be used
// again, in the order of the text. A list of them with spaces between them has at
// most maxTokens counted tokens. A name is an identifier, path, version or the
// like: 6 to 199 letters, digits and _ . / : @ # - with a digit, one of / _ . -
// or an upper-case letter after the first character. How likely a name is to be
// used again follows from its shape and from how often it occurs in the text and
// in how many blocks of the path. The same path gives the same names.
func tellingNames(s *furl.State, text string, maxTokens int, c furl.Counter) []string {
	return telling(s, slices.Values([]string{text}), nameBudget{most: maxTokens}, c, nil)
}

// nameBudget limits a list of names.
type nameBudget struct {
	most  int     // counted tokens
	worth float64 // the least that a name must be worth per token, see worthOf
}

// maxMisses is how many names that do not fit are tried before the list counts as
// full.
const maxMisses = 20

// telling is tellingNames for several texts, without the names for which skip
// returns true.
func telling(s *furl.State, texts iter.Seq[string], most nameBudget, c furl.Counter, skip func(string) bool) []string {
	type found struct {
		name      string
		at, times int
		worth     float64
	}
	var all []found
	seen := make(map[string]int) // 1 + where in all, 0: skipped
	for text := range texts {
		for name := range lexer.Names(text) {
			switch at, ok := seen[name]; {
			case ok && at > 0:
				all[at-1].times++
			case ok:
			case skip != nil && skip(name):
				seen[name] = 0
			default:
				all = append(all, found{name: name, at: len(all), times: 1})
				seen[name] = len(all)
			}
		}
	}
	for i := range all {
		all[i].worth = worthOf(all[i].name, all[i].times, namecount.Blocks(s, all[i].name))
	}
	all = slices.DeleteFunc(all, func(f found) bool { return f.worth < most.worth }) // before they are sorted
	slices.SortFunc(all, func(a, b found) int { return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.at, b.at)) })
	var chosen []found
	room, misses := most.most, 0
	for _, f := range all {
		cost := count(c, " "+f.name)
		if cost > room {
			if misses++; misses == maxMisses {
				break
			}
			continue
		}
		room -= cost
		chosen = append(chosen, f)
	}
	slices.SortFunc(chosen, func(a, b found) int { return cmp.Compare(a.at, b.at) })
	names := make([]string, len(chosen))
	for i := range chosen {
		names[i] = chosen[i].name
	}
	return names
}

// worthOf is how likely a name is needed again, per token of listing it, if a text
// has it so many times and so many blocks of the path have it. An identifier that
// occurs twice in the text and in two blocks has about 1 before the division by
// its size. The numbers are fitted to the recordings whose hashes are even, see
// docs/internals/cost-model.md.
func worthOf(name string, times, blocks int) float64 {
	w := shapeOf(name)
	switch {
	case times >= 3:
		w *= 2
	case times == 2:
		w *= 1.5
	}
	switch {
	case blocks <= 1:
		w *= 0.8
	case blocks <= 6:
		w *= 1.2
	default: // a name that occurs everywhere stays visible anyway
		w *= 0.4
	}
	return w / float64(2+len(name)/4)
}

// shapeOf is how likely a name of this shape is needed again, compared with an
// identifier or a file.
func shapeOf(name string) float64 {
	var digits, letters, hex int
	for i := 0; i < len(name); i++ {
		switch c := name[i] | 0x20; {
		case '0' <= name[i] && name[i] <= '9':
			digits++
			hex++
		case 'a' <= c && c <= 'f':
			letters++
			hex++
		case 'a' <= c && c <= 'z' || name[i] >= 0x80:
			letters++
		}
	}
	slash, colon := strings.LastIndexByte(name, '/'), strings.IndexByte(name, ':') >= 0
	last := name[len(name)-1]
	switch {
	case letters == 0: // dates, sizes, versions
		return 0
	case colon && '0' <= last && last <= '9': // a line of a file
		return 0.05
	case strings.Contains(name, "//"): // an address
		return 0.4
	case colon && slash < 0:
		return 0.1
	case digits > 0 && hex >= 7 && hex == digits+letters: // a hash
		return 0.5
	case slash >= 0 && strings.IndexByte(name[slash:], '.') > 1: // a file
		return 1
	case slash >= 0:
		return 0.4
	case digits > 4:
		return 0.2
	}
	return 1
}
