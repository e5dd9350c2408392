package setup

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/furlhq/furl/internal/lazyregexp"
)

// yamlLanguage is YAML. Only what setups need can be edited: keys of the root,
// elements of lists, and single values.
type yamlLanguage struct{}

var yamlPlace = lazyregexp.New(`^yaml: (?:unmarshal errors:\s*)?(line \d+: )?`)

func (yamlLanguage) decode(data []byte) (any, error) {
	var tree any
	d := yaml.NewDecoder(bytes.NewReader(data))
	err := d.Decode(&tree)
	if err != nil && len(bytes.TrimSpace(data)) > 0 && err.Error() != "EOF" {
		text := err.Error()
		at := yamlPlace.FindStringSubmatch(text)
		if at == nil {
			return nil, err
		}
		return nil, errors.New(at[1] + strings.TrimPrefix(text, at[0]))
	}
	var next any
	if err == nil && d.Decode(&next) == nil {
		return nil, errors.New("the file has several documents")
	}
	switch tree.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return tree, nil
	}
	return nil, errors.New("not a mapping")
}

func (yamlLanguage) value(text string) (tree any, err error) {
	err = yaml.Unmarshal([]byte(text), &tree)
	return tree, err
}

// yamlChild finds a key of a mapping, or an element of a list by its name.
func yamlChild(n *yaml.Node, key string) *yaml.Node {
	if name, ok := elementName(key); ok {
		if n.Kind == yaml.SequenceNode {
			for _, e := range n.Content {
				if v := yamlChild(e, "name"); v != nil && v.Value == name {
					return e
				}
			}
		}
		return nil
	}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
	}
	return nil
}

func (yamlLanguage) set(data []byte, path []string, value string) ([]byte, change, error) {
	c := change{Path: path, Value: value}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, c, err
	}
	eol := lineEnd(data)
	if doc.Kind == 0 {
		doc.Content = []*yaml.Node{{Kind: yaml.MappingNode}}
	}
	at := doc.Content[0]
	for i, key := range path {
		next := yamlChild(at, key)
		if next != nil {
			at = next
			continue
		}
		rest := path[i:]
		switch {
		case at.Style&yaml.FlowStyle != 0 && len(at.Content) > 0:
			return nil, c, fmt.Errorf("line %d: %s is written in braces or brackets: write one key or element a line", at.Line, describe(path[:i]))
		case i == 0:
			text := yamlText(rest, value, "", eol)
			if len(data) > 0 && data[len(data)-1] != '\n' {
				text = eol + strings.TrimSuffix(text, eol)
			}
			c.Head = text
			return append(bytes.Clone(data), text...), c, nil
		case at.Kind == yaml.SequenceNode && len(at.Content) > 0 && len(rest) == 1:
			// Before the first element, whose place is known.
			start := lineStart(data, at.Content[0].Line)
			dash := bytes.IndexByte(data[start:], '-')
			c.Head = yamlText(rest, value, strings.Repeat(" ", dash), eol)
			return splice(data, start, start, c.Head), c, nil
		case at.Kind == yaml.MappingNode && len(at.Content) > 2 && len(rest) == 1:
			// Before the second key, for the first one may follow a dash.
			second := at.Content[2]
			start := lineStart(data, second.Line)
			if len(bytes.TrimSpace(data[start:start+second.Column-1])) > 0 {
				return nil, c, fmt.Errorf("line %d: %s is not written with one key a line", second.Line, describe(path[:i]))
			}
			c.Head = strings.Repeat(" ", second.Column-1) + yamlText(rest, value, "", eol)
			return splice(data, start, start, c.Head), c, nil
		}
		return nil, c, fmt.Errorf("line %d: cannot add %s here: add it by hand", max(at.Line, 1), describe(path))
	}
	from, to, ok := scalarAt(data, at)
	if !ok {
		return nil, c, fmt.Errorf("line %d: %s is not a value on one line: change it by hand", at.Line, describe(path))
	}
	old := string(data[from:to])
	c.Old = &old
	return splice(data, from, to, value), c, nil
}

// yamlText returns the lines of a key or an element of a list.
func yamlText(path []string, value, indent, eol string) string {
	if _, ok := elementName(path[0]); ok && len(path) == 1 { // the value has the name
		var element yaml.Node
		if yaml.Unmarshal([]byte(value), &element) != nil || len(element.Content) == 0 {
			return ""
		}
		m, lead := element.Content[0], "- "
		var b strings.Builder
		for i := 0; i+1 < len(m.Content); i += 2 {
			b.WriteString(indent + lead + m.Content[i].Value + ": " + yamlValue(m.Content[i+1]) + eol)
			lead = "  "
		}
		return b.String()
	}
	if len(path) == 1 {
		return indent + path[0] + ": " + value + eol
	}
	return indent + path[0] + ":" + eol + yamlText(path[1:], value, indent+"  ", eol)
}

// yamlValue writes a value on one line.
func yamlValue(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		var words []string
		for _, e := range n.Content {
			words = append(words, yamlValue(e))
		}
		return "[" + strings.Join(words, ", ") + "]"
	}
	return quote(n.Value)
}

func lineStart(data []byte, line int) int {
	at := 0
	for ; line > 1; line-- {
		at = lineAfter(data, at)
	}
	return at
}

// scalarAt returns the place of a value that is on one line.
func scalarAt(data []byte, n *yaml.Node) (from, to int, ok bool) {
	if n.Kind != yaml.ScalarNode || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 || n.Anchor != "" {
		return 0, 0, false
	}
	start := lineStart(data, n.Line)
	line := data[start:lineAfter(data, start)]
	from = n.Column - 1
	if len([]rune(string(line))) != len(line) || from >= len(line) {
		return 0, 0, false // columns count characters
	}
	switch rest := line[from:]; rest[0] {
	case '"', '\'':
		to = from + stringEnd(rest, 0)
	default:
		to = from + len(n.Value)
	}
	if to > len(line) {
		return 0, 0, false
	}
	return start + from, start + to, true
}

func (l yamlLanguage) unset(data []byte, c change) ([]byte, error) {
	if c.Old != nil {
		var doc yaml.Node
		if err := yaml.Unmarshal(data, &doc); err != nil {
			return nil, err
		}
		at := doc.Content[0]
		for _, key := range c.Path {
			if at = yamlChild(at, key); at == nil {
				return data, nil
			}
		}
		from, to, ok := scalarAt(data, at)
		if !ok {
			return nil, errChanged
		}
		return splice(data, from, to, *c.Old), nil
	}
	// The inserted lines, as they are.
	at := bytes.Index(data, []byte(c.Head))
	if at < 0 || bytes.Contains(data[at+1:], []byte(c.Head)) {
		return l.unsetByPath(data, c)
	}
	end := at + len(c.Head)
	if strings.HasPrefix(c.Head, "\n") || strings.HasPrefix(c.Head, "\r\n") {
		// The file did not end with a line end. What follows now needs it.
		if end < len(data) {
			at += len(lineEnd(data))
			end = lineAfter(data, end)
		}
	}
	return splice(data, at, end, ""), nil
}

// unsetByPath removes the line of a value that several lines are equal to.
func (yamlLanguage) unsetByPath(data []byte, c change) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	at := doc.Content[0]
	for _, key := range c.Path {
		if at = yamlChild(at, key); at == nil {
			return data, nil
		}
	}
	start := lineStart(data, at.Line)
	if !bytes.HasPrefix(data[start:], []byte(c.Head)) {
		return nil, errChanged
	}
	return splice(data, start, start+len(c.Head), ""), nil
}
