package setup

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/furlhq/furl/internal/lazyregexp"
)

// tomlLanguage is TOML.
type tomlLanguage struct{}

func (tomlLanguage) decode(data []byte) (any, error) {
	tree := map[string]any{}
	err := toml.Unmarshal(data, &tree)
	if bad := (toml.ParseError{}); errors.As(err, &bad) {
		return nil, fmt.Errorf("line %d: %s", bad.Position.Line, bad.Message)
	}
	return plainTables(tree), err
}

// plainTables makes lists of tables lists like others.
func plainTables(tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = plainTables(inner)
		}
	case []map[string]any:
		list := make([]any, len(v))
		for i, inner := range v {
			list[i] = plainTables(inner)
		}
		return list
	case []any:
		for i, inner := range v {
			v[i] = plainTables(inner)
		}
	}
	return tree
}

// Strings, lists of strings and booleans are the same in JSON and TOML.
func (l tomlLanguage) value(text string) (any, error) {
	tree, err := l.decode([]byte("value = " + text))
	if err != nil {
		return nil, err
	}
	return tree.(map[string]any)["value"], nil
}

// statement is a line of a TOML document, or several for a long value.
type statement struct {
	path     []string // of the table, or of the key with its table
	from, to int      // with the line end
	value    [2]int   // of a key
	header   bool
	list     bool // header of an element of a list, or a key in one
}

// statements returns the headers and keys of a valid document.
func statements(data []byte) (list []statement) {
	var table []string
	inList := false
	for at := 0; at < len(data); {
		start := at
		at = skipBlank(data, at)
		switch {
		case at >= len(data):
		case data[at] == '\n':
			at++
			continue
		case data[at] == '#':
		case data[at] == '[':
			s := statement{from: start, header: true}
			at++
			if data[at] == '[' {
				s.list = true
				at++
			}
			s.path, at = readKey(data, at)
			table, inList = s.path, s.list || under(list, s.path)
			s.list = inList
			s.to = lineAfter(data, at)
			list = append(list, s)
		default:
			s := statement{from: start, list: inList}
			var key []string
			key, at = readKey(data, at)
			s.path = slices.Concat(table, key)
			for at < len(data) && data[at] != '=' {
				at++
			}
			at = skipBlank(data, at+1)
			s.value[0] = at
			at = valueEnd(data, at)
			s.value[1] = at
			s.to = lineAfter(data, at)
			list = append(list, s)
		}
		at = lineAfter(data, at)
	}
	return list
}

// under reports whether a table is in an element of a list.
func under(list []statement, path []string) bool {
	return slices.ContainsFunc(list, func(s statement) bool {
		return s.header && s.list && len(path) > len(s.path) && slices.Equal(path[:len(s.path)], s.path)
	})
}

func skipBlank(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\t' || data[at] == '\r') {
		at++
	}
	return at
}

// lineAfter returns the start of the next line.
func lineAfter(data []byte, at int) int {
	if at >= len(data) {
		return len(data)
	}
	if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(data)
}

// readKey reads a dotted key.
func readKey(data []byte, at int) (key []string, end int) {
	for at < len(data) {
		at = skipBlank(data, at)
		from := at
		if at < len(data) && (data[at] == '"' || data[at] == '\'') {
			at = stringEnd(data, at)
			var v struct{ K string }
			_ = toml.Unmarshal(slices.Concat([]byte("K = "), data[from:at]), &v)
			key = append(key, v.K)
		} else {
			for at < len(data) && !bytes.ContainsRune([]byte(" \t\r\n.=]"), rune(data[at])) {
				at++
			}
			key = append(key, string(data[from:at]))
		}
		at = skipBlank(data, at)
		if at >= len(data) || data[at] != '.' {
			break
		}
		at++
	}
	return key, at
}

// stringEnd returns the offset after a string.
func stringEnd(data []byte, at int) int {
	mark := data[at : at+1]
	if long := bytes.Repeat(mark, 3); bytes.HasPrefix(data[at:], long) {
		mark = long
	}
	escapes := mark[0] == '"'
	for at += len(mark); at < len(data); at++ {
		if escapes && data[at] == '\\' {
			at++
			continue
		}
		if bytes.HasPrefix(data[at:], mark) {
			at += len(mark)
			for n := 0; len(mark) == 3 && n < 2 && at < len(data) && data[at] == mark[0]; n++ {
				at++ // up to two quotes may precede the closing ones
			}
			return at
		}
	}
	return len(data)
}

// valueEnd returns the offset after a value.
func valueEnd(data []byte, at int) int {
	depth := 0
	for at < len(data) {
		switch data[at] {
		case '"', '\'':
			at = stringEnd(data, at)
			if depth == 0 {
				return at
			}
			continue
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return at + 1
			}
		case '#':
			if depth == 0 {
				return len(bytes.TrimRight(data[:at], " \t"))
			}
			at = lineAfter(data, at)
			continue
		case '\n':
			if depth == 0 {
				return len(bytes.TrimRight(data[:at], " \t\r"))
			}
		}
		at++
	}
	return len(bytes.TrimRight(data, " \t\r"))
}

var bareKey = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

func tomlKey(path ...string) string {
	words := slices.Clone(path)
	for i, word := range words {
		if !bareKey.MatchString(word) {
			words[i] = quote(word)
		}
	}
	return strings.Join(words, ".")
}

// find returns the statement of a key.
func findTOML(list []statement, path []string) (statement, bool) {
	i := slices.IndexFunc(list, func(s statement) bool { return !s.header && !s.list && slices.Equal(s.path, path) })
	if i < 0 {
		return statement{}, false
	}
	return list[i], true
}

func (tomlLanguage) set(data []byte, path []string, value string) ([]byte, change, error) {
	c := change{Path: path, Value: value}
	list := statements(data)
	if s, ok := findTOML(list, path); ok {
		old := string(data[s.value[0]:s.value[1]])
		c.Old = &old
		return splice(data, s.value[0], s.value[1], value), c, nil
	}
	table, key := path[:len(path)-1], path[len(path)-1]
	for _, s := range list {
		if !s.header && len(s.path) < len(path) && slices.Equal(s.path, path[:len(s.path)]) {
			return nil, c, fmt.Errorf("line %d: %s is written in braces: write it as a table [%s]", lineOf(data, s.value[0]), describe(s.path), tomlKey(s.path...))
		}
	}
	eol := lineEnd(data)
	line := tomlKey(key) + " = " + value
	at, found := sectionEnd(list, table)
	if !found {
		if len(data) > 0 {
			c.Head = eol
			if data[len(data)-1] != '\n' {
				c.Head = eol + eol
			}
		}
		c.Head += "[" + tomlKey(table...) + "]" + eol
		return slices.Concat(data, []byte(c.Head+line+eol)), c, nil
	}
	if at > 0 && data[at-1] != '\n' {
		c.Lead = eol
		return splice(data, at, at, c.Lead+line), c, nil
	}
	return splice(data, at, at, line+eol), c, nil
}

// sectionEnd returns the end of the last key of a table, or of its header. The root
// begins at offset 0.
func sectionEnd(list []statement, table []string) (at int, found bool) {
	inside := len(table) == 0
	found = inside
	for _, s := range list {
		if s.header {
			inside = !s.list && slices.Equal(s.path, table)
		}
		if inside {
			at, found = s.to, true
		}
	}
	return at, found
}

func (tomlLanguage) unset(data []byte, c change) ([]byte, error) {
	list := statements(data)
	s, ok := findTOML(list, c.Path)
	if !ok {
		return nil, errors.New("the value was moved since furl setup wrote it")
	}
	if c.Old != nil {
		return splice(data, s.value[0], s.value[1], *c.Old), nil
	}
	if len(bytes.TrimSpace(data[s.value[1]:s.to])) > 0 {
		return nil, fmt.Errorf("line %d: a comment was added to the line", lineOf(data, s.value[0]))
	}
	from, to := s.from, s.to
	if c.Lead != "" && bytes.HasSuffix(data[:from], []byte(c.Lead)) {
		// The file did not end with a line end. What follows now needs it.
		from -= len(c.Lead)
		if to < len(data) {
			to = s.value[1]
		}
	}
	if c.Head == "" {
		return splice(data, from, to, ""), nil
	}
	// The header was inserted too. It stays if more was written below it.
	table := c.Path[:len(c.Path)-1]
	for i, h := range list {
		if !h.header || h.list || !slices.Equal(h.path, table) {
			continue
		}
		if i+2 < len(list) && !list[i+2].header || bytes.Contains(data[h.to:s.from], []byte("#")) || lineAfter(data, h.from) != s.from {
			break
		}
		start := h.from
		head := bytes.TrimSuffix(data[h.from:h.to], []byte("\n"))
		head = bytes.TrimSuffix(head, []byte("\r"))
		lead, _, _ := strings.Cut(c.Head, "[")
		if string(head) != "["+tomlKey(table...)+"]" {
			break
		}
		if bytes.HasSuffix(data[:start], []byte(lead)) {
			start -= len(lead)
			if start > 0 && data[start-1] != '\n' && to < len(data) {
				start += len(lineEnd(data))
			}
		}
		return splice(data, start, to, ""), nil
	}
	return splice(data, from, to, ""), nil
}
