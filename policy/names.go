package policy

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/namecount"
)

// nameBudget limits a list of names.
type nameBudget struct {
	most  int     // counted tokens
	worth float64 // the least that a name must be worth per token, see worthOf
	// exact says that the tokens of each name are counted to find what it is worth.
	// Otherwise they are estimated from its length.
	exact bool
}

// maxMisses is how many names that do not fit are tried before the list counts as
// full.
const maxMisses = 20

// teller has the memory in which names are found. It is used again for each list, of any plan.
type teller struct {
	all  []foundName
	seen map[string]int // by name: 1 + where in all, 0: skipped
}

type foundName struct {
	listed
	at, times int
	worth     float64
	cost      int // counted tokens with the space before it; 0: not counted yet
}

// counted is how many tokens the name takes in a list.
func (f *foundName) counted(c furl.Counter) int { return count(c, " "+f.lead+f.name) }

var tellers = sync.Pool{New: func() any { return &teller{seen: make(map[string]int)} }}

// maxCleared is the size of the largest map that is worth to be used again: clearing it takes as
// long as it was large once.
const maxCleared = 256

// done gives the memory back, without the names: they are parts of texts, which would be kept.
func (t *teller) done() {
	if len(t.seen) > maxCleared {
		t.seen = make(map[string]int)
	}
	clear(t.seen)
	clear(t.all)
	tellers.Put(t)
}

// telling returns the names in texts that are most likely to be used again, in the order
// of the texts, without those for which skip returns true. A list of them with spaces
// between them has at most as many counted tokens as the budget. A name is an identifier,
// path, version or the like: 6 to 199 letters, digits and _ . / : @ # - with a digit, one
// of / _ . - or an upper-case letter after the first character. How likely a name is to be
// used again follows from its shape and from how often it occurs in the text and in how
// many blocks of the path. The same path gives the same names.
func telling(s *furl.State, texts iter.Seq[string], most nameBudget, c furl.Counter, skip func(string) bool) []string {
	t := tellers.Get().(*teller)
	defer t.done()
	all, seen := t.all[:0], t.seen
	for text := range texts {
		for l := range wholeNames(text) {
			switch at, ok := seen[l.name]; {
			case ok && at > 0:
				all[at-1].times++
			case ok:
			case skip != nil && skip(l.name):
				seen[l.name] = 0
			default:
				all = append(all, foundName{listed: l, at: len(all), times: 1})
				seen[l.name] = len(all)
			}
		}
	}
	t.all = all
	for i := range all {
		f := &all[i]
		value := valueOf(f.name, f.times, namecount.Blocks(s, f.name))
		if f.worth = worthOf(f.name, value); most.exact && value >= 2*most.worth { // of one token at least
			f.cost = f.counted(c)
			f.worth = value / float64(1+f.cost)
		}
	}
	all = slices.DeleteFunc(all, func(f foundName) bool { return f.worth < most.worth }) // before they are sorted
	slices.SortFunc(all, func(a, b foundName) int { return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.at, b.at)) })
	var chosen []foundName
	room, misses := most.most, 0
	for i := range all {
		f := &all[i]
		cost := f.cost
		if cost == 0 {
			cost = f.counted(c)
		}
		if cost > room {
			if misses++; misses == maxMisses {
				break
			}
			continue
		}
		room -= cost
		chosen = append(chosen, *f)
	}
	slices.SortFunc(chosen, func(a, b foundName) int { return cmp.Compare(a.at, b.at) })
	names := make([]string, len(chosen))
	for i := range chosen {
		names[i] = chosen[i].lead + chosen[i].name
	}
	return names
}

// worthOf is what listing a name is worth per token, by its length. A byte-pair
// encoding splits names of one length into more or fewer tokens.
func worthOf(name string, value float64) float64 { return value / float64(2+len(name)/4) }

// valueOf is how likely a name is needed again, if a text has it so many times and so
// many blocks of the path have it. An identifier that occurs twice in the text and in
// two blocks has about 1. The numbers are fitted to the recordings whose hashes are
// even, see docs/internals/cost-model.md.
func valueOf(name string, times, blocks int) float64 {
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
	return w
}

// shapeOf is how likely a name of this shape is needed again, compared with an
// identifier. docs/internals/cost-model.md has how often names of each shape came
// back.
func shapeOf(name string) float64 {
	k := kindsOf(name)
	switch {
	case k.letters == 0 && k.marks == 0: // the number of an issue, a color
		return 0.15
	case k.letters == 0, k.isNumber(name), isMode(name):
		return 0
	case k.colons > 0 && isDigit(name[len(name)-1]): // a line of a file, a port
		return 0.05
	case strings.Contains(name, "//"): // an address
		return 0.3
	case k.colons > 0:
		return 0.1
	case k.digits > 0 && k.hex == k.digits+k.letters && k.marks == strings.Count(name, "-"):
		if k.marks > 0 { // a UUID
			return 0.1
		}
		if len(name) == 6 { // a color
			return 0.15
		}
		return 0.5
	case strings.Contains(name, ".."): // two commits
		return 0
	case k.slash > 0 && strings.IndexByte(name[:strings.IndexByte(name, '/')], '.') > 0: // a package: example.org/x/y
		return 1
	case k.slash >= 0: // a file, a folder, a route
		return 0.6
	case k.digits > 4:
		return 0.2
	case k.digits > 0 && k.hyphens > 0:
		return 0.4
	case k.hyphens > 0 && k.marks == k.hyphens, k.upper == k.letters && k.marks == 0: // words, mostly
		return 0.7
	}
	return 1
}

// kinds counts what a name consists of.
type kinds struct {
	letters, digits, hex, upper int
	marks, colons, hyphens      int
	slash                       int // where the last one is, -1 if there is none
}

func kindsOf(name string) kinds {
	k := kinds{slash: -1}
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case isDigit(c):
			k.digits++
			k.hex++
		case c >= utf8.RuneSelf, 'a' <= c|0x20 && c|0x20 <= 'z':
			k.letters++
			if 'a' <= c|0x20 && c|0x20 <= 'f' {
				k.hex++
			}
			if 'A' <= c && c <= 'Z' {
				k.upper++
			}
		default:
			k.marks++
			switch c {
			case ':':
				k.colons++
			case '-':
				k.hyphens++
			case '/':
				k.slash = i
			}
		}
	}
	return k
}

// isNumber reports whether a name is a number with a unit, a version, a time, an
// address in memory, or a piece of a drawing: it begins with a digit, or a v and a
// digit, and has few letters.
func (k *kinds) isNumber(name string) bool {
	if k.hex == k.digits+k.letters && k.marks == 0 && name[0] != '0' {
		return false // a hash
	}
	if strings.HasPrefix(name, "0x") && isHex(name[2:]) {
		return true
	}
	return (isDigit(name[0]) || name[0] == 'v' && isDigit(name[1])) && k.letters <= max(2, (k.digits+k.marks)/2)
}

// isMode reports whether a name is the mode of a file as ls writes it.
func isMode(name string) bool {
	return strings.Trim(name, "dlrwxsStT-") == "" && strings.Contains(name, "-") && strings.ContainsAny(name, "rwx")
}
