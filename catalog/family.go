package catalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/strictyaml"
)

// family is a series of models whose names begin with the same word, such as claude. The
// rules of a member that the catalogue lacks are assumed from the members that it has.
type family struct {
	name   string
	except []string // beginnings of names that do not belong to it
}

// Describe returns the description of a model by its name in requests: the result of
// Lookup, or else of Assume, or else the defaults of the requests' format, which have no
// window.
func (c *Catalog) Describe(name string, format furl.Format) furl.Model {
	if m, ok := c.Lookup(name); ok {
		return m
	}
	if m, ok := c.Assume(name); ok {
		return m
	}
	return Unknown(name, format)
}

// Assume describes a model that Lookup does not find, if its name belongs to a family. It
// uses the rules of the newest member of the same line (claude-opus-…) if that member is of
// the newest generation, else those of the newest member of the family. Model.Like is that
// member. Where a wrong rule would break a session, Assume uses the strictest one: thinking
// is bound to the prompt before it if any member binds it, and is never removable. The
// window is the smallest one of the newest generation, or 0 if the model is of an older
// generation. Prices are not assumed.
func (c *Catalog) Assume(name string) (furl.Model, bool) {
	e, ok := c.assumed(name)
	if !ok {
		return furl.Model{}, false
	}
	return e.build().Model, true
}

// assumed returns the entry that is assumed for a name.
func (c *Catalog) assumed(name string) (entry, bool) {
	for cand := range candidates(name) {
		for cutSuffix(cand) != cand {
			cand = cutSuffix(cand)
		}
		for i := range c.families {
			if f := &c.families[i]; f.has(cand) {
				return c.assume(f, name, parseName(f.name, cand))
			}
		}
	}
	return entry{}, false
}

// has reports whether a name belongs to the family. Names with tags of local servers
// (qwen3:32b) and paths do not.
func (f *family) has(name string) bool {
	return (name == f.name || strings.HasPrefix(name, f.name+"-")) && !strings.ContainsAny(name, ":/") &&
		!slices.ContainsFunc(f.except, func(e string) bool { return strings.HasPrefix(name, e) })
}

// memberName is a name without its family: claude-opus-5-5 has the line opus and the
// version 5, 5.
type memberName struct {
	line    string
	version []int
}

func parseName(family, name string) memberName {
	var n memberName
	var line []string
	for word := range strings.SplitSeq(strings.TrimPrefix(key(name), family), "-") {
		if v, ok := parseVersion(word); ok {
			n.version = append(n.version, v)
		} else if word != "" {
			line = append(line, word)
		}
	}
	n.line = strings.Join(line, "-")
	return n
}

// parseVersion reads a number such as 5, v4, k3 or 4o. Numbers of more than two digits
// are dates or sizes.
func parseVersion(word string) (int, bool) {
	digits := strings.TrimLeft(strings.TrimSuffix(word, "o"), "vk")
	if len(digits) > 2 || len(word)-len(digits) > 1 {
		return 0, false
	}
	v, err := strconv.Atoi(digits)
	return v, err == nil && v >= 0
}

// generation is the first number of a version, 0 if there is none.
func (n *memberName) generation() int {
	if len(n.version) == 0 {
		return 0
	}
	return n.version[0]
}

func (c *Catalog) assume(f *family, name string, of memberName) (entry, bool) {
	var like, newest *entry
	var likeVersion, newestVersion []int
	window, current, binds := 0, 0, false
	members := make(map[*entry]int) // their generations
	for i := range c.entries {
		e := &c.entries[i]
		for _, n := range append([]string{e.id}, e.aliases...) {
			if !f.has(n) {
				continue
			}
			m := parseName(f.name, n)
			members[e] = max(members[e], m.generation())
			if newest == nil || slices.Compare(m.version, newestVersion) > 0 {
				newest, newestVersion = e, m.version
			}
			if m.line == of.line && (like == nil || slices.Compare(m.version, likeVersion) > 0) {
				like, likeVersion = e, m.version
			}
			current = max(current, m.generation())
		}
	}
	if newest == nil {
		return entry{}, false
	}
	for e, generation := range members {
		m := e.build().Model
		binds = binds || m.Thinking.Binds
		if generation == current && m.Window > 0 && (window == 0 || m.Window < window) {
			window = m.Window
		}
	}
	if len(of.version) > 0 && of.generation() < current {
		window = 0
	}
	base := newest
	if like != nil && members[like] == current {
		base = like
	}
	strict := func(e *Entry) {
		m := &e.Model
		e.Date, e.Source = "", ""
		m.Like = base.id
		m.Prices, m.LongPrices, m.LongAbove, m.TimedPrices = furl.Prices{}, furl.Prices{}, 0, nil
		m.Thinking.Binds, m.Thinking.Removable = binds, false
		m.Thinking.LastOnly = m.Thinking.LastOnly && !binds
		m.Window, m.WindowAssumed = window, window > 0
		m.MaxOutput = min(m.MaxOutput, window)
	}
	return entry{id: name, sets: append(slices.Clone(base.sets), strict), file: base.file, line: base.line}, true
}

// readFamilies reads the list of families.
func readFamilies(v strictyaml.Value) (families []family) {
	for item := range v.List(`a list of families, each with "- name: NAME"`) {
		var f family
		for read, v := range strictyaml.Object(item, map[string]func(strictyaml.Value){
			"name": func(v strictyaml.Value) { f.name = strings.ToLower(word(v)) },
			"except": func(v strictyaml.Value) {
				for item := range v.List("a list such as [a, b]") {
					f.except = append(f.except, strings.ToLower(word(item)))
				}
			},
		}) {
			read(v)
		}
		item.Require("name", "add the word with which the names of its models begin")
		if f.name != "" && !slices.Contains(f.except, "") {
			families = append(families, f)
		}
	}
	return families
}
