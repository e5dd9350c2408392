// Package catalog contains what furl knows about models: windows, prices,
// cache and thinking rules. All of it is data in a file that is compiled in
// (models.yaml). A user's file can override and extend it:
//
//	models:
//	  - id: claude-opus-4-5      # known: only what is named here changes
//	    prices: {input: 4.5}
//	  - id: my-local-model       # new
//	    window: 32768
//	    format: openai-chat
//	    date: 2026-11
//	    source: the server's own documentation
//
// Files are parsed strictly. An unknown key, a duplicate, a value of the
// wrong type or out of range is an error that names the file and the line and
// says what was expected. Anchors and aliases (&x, *x) may be used to repeat a
// value. A key families names the series of models whose newer members are taken to be
// like the known ones (Catalog.Assume).
package catalog

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/furlhq/furl"
)

// Entry is one model and the source of its facts.
type Entry struct {
	Model   furl.Model
	Aliases []string
	Origin
	// Changes are the changes by entries of other files (Merge), the newest last. Origin
	// is that of the values that they do not change.
	Changes []Change
}

// Origin is where the values of an entry come from.
type Origin struct {
	// Date is the month or day when the facts were looked up, "2026-10" or
	// "2026-10-07", and Source says where. A user's entries may omit them;
	// Source is then the file's name.
	Date, Source string
	// Where is the file and line of the entry.
	Where string
}

// String describes an origin for people: the source, its date, and the file and line.
func (o Origin) String() string {
	file := o.Where[:max(0, strings.LastIndex(o.Where, ":"))]
	switch {
	case o.Source == "" || o.Source == file:
		return o.Where
	case o.Date == "":
		return fmt.Sprintf("%s (%s)", o.Source, o.Where)
	}
	return fmt.Sprintf("%s, %s (%s)", o.Source, o.Date, o.Where)
}

// Change is the part of an entry that another file has replaced.
type Change struct {
	Keys []string // such as window, sorted
	Origin
}

// OriginOf returns the origin of the value of a key, such as window.
func (e *Entry) OriginOf(key string) Origin {
	for _, c := range slices.Backward(e.Changes) {
		if slices.Contains(c.Keys, key) {
			return c.Origin
		}
	}
	return e.Origin
}

// Catalog is a set of models by name. It is immutable and safe for concurrent
// use.
type Catalog struct {
	entries  []entry
	index    map[string]int // every id and alias, by key
	families []family
}

// builtInName is the name of the built-in file in origins.
const builtInName = "built-in models.yaml"

//go:embed models.yaml
var models []byte

var builtIn = sync.OnceValue(func() *Catalog {
	c, err := Parse(builtInName, models)
	if err == nil {
		c, err = new(Catalog).Merge(c)
	}
	if err != nil {
		panic(err) // the file is part of the program, and tested
	}
	return c
})

// Default returns the built-in catalogue.
func Default() *Catalog { return builtIn() }

// Load reads a catalogue file. The result does not include the built-in
// models; use Merge for that.
func Load(path string) (*Catalog, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	data, err := readAll(f)
	if err != nil {
		return nil, fmt.Errorf("catalog: read %s: %w", path, err)
	}
	return Parse(path, data)
}

// Parse parses the text of a catalogue file. name is used in errors. An entry
// may contain only its changes to another catalogue's entry, so Merge checks
// whether the values fit together.
func Parse(name string, data []byte) (*Catalog, error) {
	c, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	c.index, err = names(c.entries)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Merge returns c overridden by over. If the id of an entry in over is an id
// or alias in c, the entry changes what it names and keeps everything else.
// If c knows the id only by a rule of Lookup or Assume, the result is a separate entry
// that keeps what c knows or assumes.
// Names in both belong to over. An error names the entry of over that is
// invalid after merging.
func (c *Catalog) Merge(over *Catalog) (*Catalog, error) {
	out := &Catalog{
		entries:  slices.Clone(c.entries),
		index:    make(map[string]int, len(c.index)+len(over.index)),
		families: slices.Concat(over.families, c.families), // the first that has a name counts
	}
	maps.Copy(out.index, c.index)
	var errs []error
	for _, e := range over.entries {
		i, exact := c.index[key(e.id)]
		if !exact {
			if j, ok := c.find(e.id); ok {
				base := c.entries[j]
				base.change(&e)
				base.id, base.aliases = e.id, e.aliases
				e = base
			} else if base, ok := c.assumed(e.id); ok {
				e.sets = e.after(append(base.sets, func(e *Entry) { e.Model.Like = "" })) // the user knows it
			}
			i = len(out.entries)
			out.entries = append(out.entries, e)
		} else {
			base := out.entries[i]
			base.change(&e)
			base.aliases = append(slices.Clone(base.aliases), e.aliases...)
			out.entries[i] = base
		}
		for _, n := range append([]string{e.id}, e.aliases...) {
			out.index[key(n)] = i
		}
		errs = append(errs, out.entries[i].check())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

// Entry returns the entry for a model's name, by the rules of Lookup.
func (c *Catalog) Entry(name string) (Entry, bool) {
	i, ok := c.find(name)
	if !ok {
		return Entry{}, false
	}
	e := c.entries[i].build()
	if longContext(name) {
		e.Model.Window = longWindow
	}
	return e, true
}

// SetByUser reports whether a file of the user, and not the built-in one, has the value of
// a key, such as window, of a model. The name is looked up by the rules of Lookup.
func (c *Catalog) SetByUser(name, key string) bool {
	i, ok := c.find(name)
	if !ok {
		return false
	}
	e := &c.entries[i]
	return !e.builtIn && slices.Contains(e.keys, key) || slices.ContainsFunc(e.changes, func(c Change) bool { return slices.Contains(c.Keys, key) })
}

// Entries returns all entries in the order of the files.
func (c *Catalog) Entries() []Entry {
	all := make([]Entry, len(c.entries))
	for i := range c.entries {
		all[i] = c.entries[i].build()
	}
	return all
}

// Names returns every id and alias, sorted, for shell completion.
func (c *Catalog) Names() []string {
	var names []string
	for _, e := range c.entries {
		names = append(append(names, e.id), e.aliases...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
