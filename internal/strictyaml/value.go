package strictyaml

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Value is a value of a file. Its methods report what is wrong with it to the
// call of Parse that it comes from.
type Value struct {
	file *file
	key  string // with the keys around it: gateway.listen
	item bool   // of a list; key is that of the list
	mask bool   // errors do not quote it
	node *yaml.Node
	at   *yaml.Node // the key of node, nil for the root and items of lists
}

// Key returns the key of the value with the keys around it, such as
// gateway.listen. Keys in the items of a list begin anew.
func (v Value) Key() string { return v.key }

// Name returns the last of the keys of Key.
func (v Value) Name() string {
	if v.at == nil {
		return ""
	}
	return v.at.Value
}

// Line returns the line at which the value begins, from 1.
func (v Value) Line() int { return v.node.Line }

// LineComment returns the comment that follows the value on its line.
func (v Value) LineComment() string { return v.node.LineComment }

// Secret returns the value with errors that quote neither it nor the values in it,
// because it may have a key.
func (v Value) Secret() Value {
	v.mask = true
	return v
}

// Report reports an error at the value's line. What says what is wrong, remedy
// what to do or what was expected.
func (v Value) Report(what, remedy string) { v.reportAt(v.node.Line, what, remedy) }

// ReportKey reports an error at the line of the value's key.
func (v Value) ReportKey(what, remedy string) {
	line := v.node.Line
	if v.at != nil {
		line = v.at.Line
	}
	v.reportAt(line, what, remedy)
}

func (v Value) reportAt(line int, what, remedy string) {
	if len(v.file.errs) < maxErrors {
		v.file.errs = append(v.file.errs, Error(v.file.name, line, what, remedy))
	}
}

// Expected reports that the value is not what was expected, such as "a list of
// names".
func (v Value) Expected(what string) {
	n := v.resolved()
	if isNull(n) {
		v.Report("missing value of "+v.name(), "expected "+what)
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		what += ", not a mapping"
	case yaml.SequenceNode:
		what += ", not a list"
	}
	v.Report("invalid "+v.String(), "expected "+what)
}

func (v Value) name() string {
	if v.key == "" {
		return "file"
	}
	return v.key
}

// String returns the key and, if the value is a scalar and not secret, its beginning
// in quotes.
func (v Value) String() string {
	if n := v.resolved(); n.Kind == yaml.ScalarNode && !isNull(n) && !v.mask {
		return fmt.Sprintf("%s %.80q", v.name(), n.Value)
	}
	return v.name()
}

// resolved follows an alias (*x) to its anchor (&x).
func (v Value) resolved() *yaml.Node {
	if v.node.Kind == yaml.AliasNode && v.node.Alias != nil {
		return v.node.Alias
	}
	return v.node
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// member returns the value of a key of v.
func (v Value) member(key, node *yaml.Node) Value {
	name := key.Value
	if v.key != "" && !v.item {
		name = v.key + "." + name
	}
	return Value{file: v.file, key: name, node: node, at: key, mask: v.mask}
}

// element returns an item of v.
func (v Value) element(node *yaml.Node) Value {
	return Value{file: v.file, key: v.key, item: true, node: node, mask: v.mask}
}

// more reports whether another value may be read.
func (v Value) more() bool {
	v.file.values++
	if v.file.values == maxValues {
		v.Report("too many values", fmt.Sprintf("at most %d are read, with aliases expanded", maxValues))
	}
	return v.file.values < maxValues
}

// Object ranges over the keys of v in their order, with what known has for
// each. It reports keys that known does not have and keys that occur twice. A
// null value has no keys.
func Object[T any](v Value, known map[string]T) iter.Seq2[T, Value] {
	return func(yield func(T, Value) bool) {
		for value := range v.Entries(`"key: value" lines`) {
			reader, ok := known[value.Name()]
			if !ok {
				value.ReportKey(fmt.Sprintf("unknown key %.80q", value.Name()), suggestion(value.Name(), slices.Sorted(maps.Keys(known))))
				continue
			}
			if !yield(reader, value) {
				return
			}
		}
	}
}

// Get returns the value of a key, false if v does not have that key.
func (v Value) Get(key string) (Value, bool) {
	n := v.resolved()
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return v.member(n.Content[i], n.Content[i+1]), true
		}
	}
	return Value{}, false
}

// Require reports that a key is missing if v has keys, but not that one.
func (v Value) Require(key, remedy string) {
	_, ok := v.Get(key)
	if n := v.resolved(); !ok && (n.Kind == yaml.MappingNode || isNull(n)) {
		v.Report("missing "+key, remedy)
	}
}

// At returns the value that a path of keys and indexes of items leads to, or the
// last one on the path that exists.
func (v Value) At(path []string) Value {
	for _, step := range path {
		n := v.resolved()
		if index, err := strconv.Atoi(step); n.Kind == yaml.SequenceNode && err == nil && index >= 0 && index < len(n.Content) {
			v = v.element(n.Content[index])
			continue
		}
		next, ok := v.Get(step)
		if !ok {
			return v
		}
		v = next
	}
	return v
}

// Entries ranges over the values of the keys of v in their order. It reports keys
// that occur twice. A null value has no keys. Expected describes the keys for the
// error if v is something else.
func (v Value) Entries(expected string) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		n := v.resolved()
		if isNull(n) {
			return
		}
		if n.Kind != yaml.MappingNode {
			v.Expected(expected)
			return
		}
		lines := make(map[string]int, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content) && v.more(); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			line, duplicate := lines[key.Value]
			switch {
			case key.Kind != yaml.ScalarNode:
				v.reportAt(key.Line, "invalid key", "expected a word")
			case key.ShortTag() == "!!merge":
				v.reportAt(key.Line, `unsupported key "<<"`, "repeat single values with &x and *x")
			case duplicate:
				v.reportAt(key.Line, fmt.Sprintf("duplicate key %.80q", key.Value), fmt.Sprintf("first on line %d", line))
			default:
				lines[key.Value] = key.Line
				if !yield(v.member(key, value)) {
					return
				}
			}
		}
	}
}

func suggestion(key string, known []string) string {
	if guess := closest(key, known); guess != "" {
		return fmt.Sprintf("did you mean %q?", guess)
	}
	return "expected one of " + strings.Join(known, ", ")
}

// List ranges over the items of v. A null value has none. Expected describes
// the list for the error if v is something else.
func (v Value) List(expected string) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		n := v.resolved()
		if isNull(n) {
			return
		}
		if n.Kind != yaml.SequenceNode {
			v.Expected(expected)
			return
		}
		for _, item := range n.Content {
			if !v.more() || !yield(v.element(item)) {
				return
			}
		}
	}
}

// Len returns the number of items if v is a list.
func (v Value) Len() int {
	if n := v.resolved(); n.Kind == yaml.SequenceNode {
		return len(n.Content)
	}
	return 0
}

// scalar returns the text of a scalar that has one of the tags. It reports
// other values.
func (v Value) scalar(expected string, tags ...string) (string, bool) {
	n := v.resolved()
	if n.Kind == yaml.ScalarNode && slices.Contains(tags, n.ShortTag()) {
		return n.Value, true
	}
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		expected += " without quotes"
	}
	v.Expected(expected)
	return "", false
}

// Text returns a text. Numbers and dates are text too. Expected describes the
// text for the error if v is something else; false means that an error was
// reported.
func (v Value) Text(expected string) (string, bool) {
	return v.scalar(expected, "!!str", "!!int", "!!float", "!!timestamp")
}

// OneOf returns one of a few words.
func (v Value) OneOf(words ...string) (string, bool) {
	expected := "one of " + strings.Join(words, ", ")
	s, ok := v.Text(expected)
	if ok && !slices.Contains(words, s) {
		v.Expected(expected)
		ok = false
	}
	return s, ok
}

// Bool returns true or false.
func (v Value) Bool() (value, ok bool) {
	s, ok := v.scalar("true or false", "!!bool")
	return strings.EqualFold(s, "true"), ok
}

// Whole returns a whole number from 0 to most.
func (v Value) Whole(expected string, most int64) (int64, bool) {
	s, ok := v.scalar(expected, "!!int")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil || n < 0 || n > most {
		v.Expected(expected)
		return 0, false
	}
	return n, true
}

// Number returns a number from 0 to most.
func (v Value) Number(expected string, most float64) (float64, bool) {
	s, ok := v.scalar(expected, "!!int", "!!float")
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil || !(f >= 0 && f <= most) { // NaN is neither
		v.Expected(expected)
		return 0, false
	}
	return f, true
}

// Decode stores the value in what to points to, as yaml.Unmarshal does. False
// means that errors were reported.
func (v Value) Decode(to any) bool {
	err := v.node.Decode(to)
	if err == nil {
		return true
	}
	texts := []string{err.Error()}
	if several, ok := errors.AsType[*yaml.TypeError](err); ok {
		texts = several.Errors
	}
	for _, text := range texts {
		text, line := textAndLine(text)
		if line == 0 {
			line = v.Line()
		}
		v.reportAt(line, "invalid "+v.name(), text)
	}
	return false
}
