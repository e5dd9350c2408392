// Package setup edits the configuration files of agents so that they use furl, and
// undoes that. Edits are insertions and replacements of single values: comments,
// order, indentation, line ends and everything else in a file stay byte for byte.
package setup

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// change is one value that was set in a file, with what is needed to remove it.
type change struct {
	Path  []string `json:"path"`
	Value string   `json:"value"` // JSON
	// Old is the replaced text, nil if the path had no value.
	Old *string `json:"old,omitempty"`
	// Made is how many keys of the path were inserted, counted from its end.
	Made int `json:"made,omitempty"`
	// Lead and Tail are the spaces inserted before and after the value's key.
	Lead string `json:"lead,omitempty"`
	Tail string `json:"tail,omitempty"`
	// Head is the inserted header of a TOML table with the spaces before it.
	Head string `json:"head,omitempty"`
	// Inner is the text between the braces of an object that was empty.
	Inner string `json:"inner,omitempty"`
}

// withLineEnd returns a change for a file whose line ends may have been converted.
func (c change) withLineEnd(eol string) change {
	for _, text := range []*string{&c.Lead, &c.Tail, &c.Head, &c.Inner} {
		*text = strings.ReplaceAll(strings.ReplaceAll(*text, "\r\n", "\n"), "\n", eol)
	}
	return c
}

// language edits documents in one syntax. Data has no byte order mark.
type language interface {
	// decode returns the values of a document. An empty one has an empty object. An
	// error names the line.
	decode(data []byte) (any, error)
	// set sets a value, which is JSON.
	set(data []byte, path []string, value string) ([]byte, change, error)
	// unset removes a value. The document still has it.
	unset(data []byte, c change) ([]byte, error)
	// value decodes JSON as decode does.
	value(text string) (any, error)
}

// languageOf returns the language of a file by its extension.
func languageOf(path string) language {
	switch filepath.Ext(path) {
	case ".toml":
		return tomlLanguage{}
	case ".yaml", ".yml":
		return yamlLanguage{}
	}
	return jsonLanguage{}
}

// mark is the byte order mark of UTF-8.
var mark = []byte("\xef\xbb\xbf")

// errChanged is returned by unset for a value that is not the one that was set.
var errChanged = errors.New("the value was changed since furl setup wrote it")

// document is a file's content.
type document struct {
	lang language
	mark []byte // byte order mark, if any
	data []byte
	tree any
}

func parse(path string, data []byte) (*document, error) {
	d := &document{lang: languageOf(path), data: data}
	if bytes.HasPrefix(data, mark) {
		d.mark, d.data = mark, data[len(mark):]
	}
	if !utf8.Valid(d.data) {
		return nil, errors.New("not UTF-8: save the file as UTF-8")
	}
	return d, d.load()
}

func (d *document) load() (err error) {
	d.tree, err = d.lang.decode(d.data)
	return err
}

func (d *document) bytes() []byte { return append(slices.Clone(d.mark), d.data...) }

// apply sets a value and checks that nothing else has changed. It returns false if the
// document has the value already.
func (d *document) apply(path []string, value string) (change, bool, error) {
	want, err := d.lang.value(value)
	if err != nil {
		return change{}, false, err
	}
	if old, ok := lookup(d.tree, path); ok && same(old, want) {
		return change{}, false, nil
	}
	data, c, err := d.lang.set(d.data, path, value)
	if err != nil {
		return change{}, false, err
	}
	tree, err := place(clone(d.tree), path, want)
	if err == nil {
		err = d.replace(data, tree)
	}
	return c, true, err
}

// replace takes data as the new content if it has the values of tree.
func (d *document) replace(data []byte, tree any) error {
	got, err := d.lang.decode(data)
	if err != nil || !same(got, tree) {
		return errors.New("the file is written in a way that furl cannot edit without changing other values: make this change by hand")
	}
	d.data, d.tree = data, got
	return nil
}

// revert removes a value, or puts back what it replaced. The error is errChanged if
// the value is no longer the one that was set, and nil if it is gone.
func (d *document) revert(c change) error {
	want, err := d.lang.value(c.Value)
	if err != nil {
		return err
	}
	now, ok := lookup(d.tree, c.Path)
	switch {
	case !ok:
		return nil
	case !same(now, want):
		return errChanged
	}
	data, err := d.lang.unset(d.data, c.withLineEnd(lineEnd(d.data)))
	if err != nil {
		return err
	}
	got, err := d.lang.decode(data)
	if err != nil {
		return errors.New("the file is written in a way that furl cannot edit without changing other values: remove it by hand")
	}
	// Whether parents stay depends on what else they hold, so the check is without
	// empty ones.
	expected := clone(d.tree)
	if c.Old != nil {
		old, found := lookup(got, c.Path)
		if !found {
			return errChanged
		}
		expected, _ = place(expected, c.Path, old)
	} else {
		expected = without(expected, c.Path)
	}
	if !same(pruned(expected, c.Path), pruned(got, c.Path)) {
		return errors.New("the file is written in a way that furl cannot edit without changing other values: remove it by hand")
	}
	d.data, d.tree = data, got
	return nil
}

// elementName returns x for the path element "[name=x]".
func elementName(key string) (string, bool) {
	name, ok := strings.CutPrefix(key, "[name=")
	return strings.TrimSuffix(name, "]"), ok
}

// child returns the value of a key, or of an element of a list by its name.
func child(tree any, key string) (any, bool) {
	if name, ok := elementName(key); ok {
		list, _ := tree.([]any)
		for _, v := range list {
			if m, ok := v.(map[string]any); ok && m["name"] == name {
				return v, true
			}
		}
		return nil, false
	}
	m, _ := tree.(map[string]any)
	v, ok := m[key]
	return v, ok
}

func lookup(tree any, path []string) (any, bool) {
	for _, key := range path {
		var ok bool
		if tree, ok = child(tree, key); !ok {
			return nil, false
		}
	}
	return tree, true
}

// place sets a value in a tree.
func place(tree any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	old, found := child(tree, path[0])
	inner, err := place(old, path[1:], value)
	if err != nil {
		return nil, err
	}
	if name, ok := elementName(path[0]); ok {
		list, ok := tree.([]any)
		if !ok && tree != nil {
			return nil, errors.New("not a list")
		}
		for i, v := range list {
			if m, ok := v.(map[string]any); ok && m["name"] == name && found {
				list[i] = inner
				return list, nil
			}
		}
		return append([]any{inner}, list...), nil
	}
	m, ok := tree.(map[string]any)
	if !ok {
		if tree != nil {
			return nil, errors.New("not an object")
		}
		m = map[string]any{}
	}
	m[path[0]] = inner
	return m, nil
}

// without removes a value from a tree.
func without(tree any, path []string) any {
	last := len(path) - 1
	parent, ok := lookup(tree, path[:last])
	if !ok {
		return tree
	}
	if name, ok := elementName(path[last]); ok {
		list, _ := parent.([]any)
		list = slices.DeleteFunc(slices.Clone(list), func(v any) bool {
			m, _ := v.(map[string]any)
			return m["name"] == name
		})
		tree, _ = place(tree, path[:last], list)
		return tree
	}
	m, _ := parent.(map[string]any)
	delete(m, path[last])
	return tree
}

// pruned removes empty objects and lists along a path.
func pruned(tree any, path []string) any {
	tree = clone(tree)
	for n := len(path); n > 0; n-- {
		v, ok := lookup(tree, path[:n])
		if !ok {
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			if len(v) > 0 {
				return tree
			}
		case []any:
			if len(v) > 0 {
				return tree
			}
		case nil:
		default:
			return tree
		}
		tree = without(tree, path[:n])
	}
	return tree
}

func clone(tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		m := maps.Clone(v)
		for key, inner := range m {
			m[key] = clone(inner)
		}
		return m
	case []any:
		list := slices.Clone(v)
		for i, inner := range list {
			list[i] = clone(inner)
		}
		return list
	}
	return tree
}

// same compares values. Unlike reflect.DeepEqual it takes NaN for equal to NaN.
func same(a, b any) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) }

// lineOf returns the number of the line at an offset, from 1.
func lineOf(data []byte, at int) int { return 1 + bytes.Count(data[:min(at, len(data))], []byte("\n")) }

// lineEnd returns the line end of a document: that of its first line.
func lineEnd(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// splice replaces data[from:to].
func splice(data []byte, from, to int, text string) []byte {
	return slices.Concat(data[:from], []byte(text), data[to:])
}
