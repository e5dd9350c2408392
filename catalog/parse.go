package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
	"go.yaml.in/yaml/v3"
)

// The limits of a file, far above any useful file.
const (
	maxFile   = 4 << 20
	maxModels = 10_000
	maxErrors = 20
	maxCount  = 1_000_000_000
	maxPrice  = 1_000_000 // dollars per million tokens
	maxScale  = 100
	maxItem   = 300
)

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("larger than %d MiB", maxFile>>20)
	}
	return data, err
}

// parser parses one file and collects the errors.
type parser struct {
	name string
	errs []error
}

func where(file string, line int) string { return file + ":" + strconv.Itoa(line) }

func (p *parser) errorf(n *yaml.Node, format string, args ...any) {
	p.errorAt(n.Line, format, args...)
}

func (p *parser) errorAt(line int, format string, args ...any) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, fmt.Errorf("%s: %s", where(p.name, line), fmt.Sprintf(format, args...)))
	}
}

func (p *parser) parse(data []byte) []entry {
	if len(data) > maxFile {
		p.errorAt(1, "the file is larger than %d MiB, the limit for a catalogue", maxFile>>20)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil // an empty file, or one of comments only, changes nothing
		}
		p.syntax(err)
		return nil
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		p.errorAt(max(more.Line, 1), "a second document starts here; keep one, without \"---\" in between")
	}
	var entries []entry
	if len(doc.Content) == 1 && doc.Content[0].ShortTag() == "!!null" {
		return nil
	}
	for _, n := range doc.Content {
		p.object(n, "the file", func(key string, _, v *yaml.Node) {
			if key != "models" {
				p.errorf(v, "unknown key %q; a catalogue has one key, \"models\"", key)
				return
			}
			entries = p.models(v)
		})
	}
	return entries
}

// yamlLine finds the line in an error of the YAML parser.
var yamlLine = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)

func (p *parser) syntax(err error) {
	text, line := err.Error(), 1
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if m[1] != "" {
			line, _ = strconv.Atoi(m[1]) // matched as digits; a huge number only misplaces the message
		}
	}
	p.errorAt(line, "not valid YAML: %s", text)
}

func (p *parser) models(v *yaml.Node) []entry {
	v = deref(v)
	if v.Kind != yaml.SequenceNode {
		p.errorf(v, "\"models\" is %s; write a list, each model starting with \"- id: NAME\"", kind(v))
		return nil
	}
	if len(v.Content) > maxModels {
		p.errorf(v, "%d models; the limit is %d", len(v.Content), maxModels)
		return nil
	}
	entries := make([]entry, 0, len(v.Content))
	for _, n := range v.Content {
		entries = append(entries, p.model(n))
	}
	return entries
}

func (p *parser) model(n *yaml.Node) entry {
	e := entry{file: p.name, line: n.Line}
	p.object(n, "a model", func(key string, k, v *yaml.Node) {
		switch key {
		case "id":
			e.id = p.word(key, v)
		case "aliases":
			e.aliases = p.words(key, v)
		default:
			e.sets = append(e.sets, p.field(modelFields, key, k, v, "id", "aliases")...)
		}
	})
	if e.id == "" && len(p.errs) == 0 {
		p.errorf(n, "a model without \"id\"; add the name requests use for it")
	}
	return e
}

func (p *parser) field(fs fields, key string, k, v *yaml.Node, also ...string) []set {
	f, ok := fs[key]
	if !ok {
		known := append(slices.Collect(maps.Keys(fs)), also...)
		slices.Sort(known)
		if guess := closest(key, known); guess != "" {
			p.errorf(k, "unknown key %q; did you mean %q?", key, guess)
		} else {
			p.errorf(k, "unknown key %q; the keys here are %s", key, strings.Join(known, ", "))
		}
		return nil
	}
	return f(p, key, v)
}

// object calls each for the pairs of a mapping, in order.
func (p *parser) object(n *yaml.Node, what string, each func(key string, k, v *yaml.Node)) {
	n = deref(n)
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "%s is %s; write \"key: value\" lines", what, kind(n))
		return
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
			p.errorf(k, "a key that is %s; write a plain word (\"<<\" is not supported, repeat single values with &x and *x)", kind(k))
			continue
		}
		if line, dup := seen[k.Value]; dup {
			p.errorf(k, "%q is given twice, first on line %d; keep one", k.Value, line)
			continue
		}
		seen[k.Value] = k.Line
		each(k.Value, k, v)
	}
}

// deref follows an alias (*x) to its anchor. The parser resolves a name to an
// anchor before it, so aliases cannot form a cycle.
func deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.ShortTag() == "!!null" {
			return "empty"
		}
		return strconv.Quote(n.Value)
	}
	return "an alias"
}

// scalar returns the text of a value that has one of the YAML types.
func (p *parser) scalar(key string, n *yaml.Node, want string, tags ...string) (string, bool) {
	n = deref(n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		p.errorf(n, "%q has no value; write %s, or remove the line", key, want)
		return "", false
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.ShortTag()) {
		p.errorf(n, "%q is %s; write %s", key, kind(n), want)
		return "", false
	}
	return n.Value, true
}

var textTags = []string{"!!str", "!!int", "!!float", "!!timestamp"}

func (p *parser) word(key string, n *yaml.Node) string {
	s, ok := p.scalar(key, n, "a name", textTags...)
	if ok && (strings.TrimSpace(s) != s || s == "" || len(s) > maxName || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })) {
		p.errorf(n, "%q is %.80q; write a name of 1 to %d characters without spaces", key, s, maxName)
		return ""
	}
	return s
}

func (p *parser) words(key string, n *yaml.Node) []string {
	list := deref(n)
	if list.Kind != yaml.SequenceNode {
		p.errorf(n, "%q is %s; write a list such as [a, b]", key, kind(list))
		return nil
	}
	var words []string
	for _, c := range list.Content {
		if w := p.word(key, c); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// names indexes the entries of one file, in which names must be unique.
func (p *parser) names(entries []entry) map[string]int {
	index := make(map[string]int, 2*len(entries))
	for i, e := range entries {
		for _, n := range append([]string{e.id}, e.aliases...) {
			if j, dup := index[key(n)]; dup {
				p.errorAt(e.line, "the name %q is taken by %q on line %d; keep one of them", n, entries[j].id, entries[j].line)
				continue
			}
			index[key(n)] = i
		}
	}
	return index
}

// check validates the combination of an entry's values.
func (p *parser) check(e *entry) {
	b := e.build()
	m := &b.Model
	for _, q := range []struct {
		name string
		furl.Prices
	}{{"prices", m.Prices}, {"long_prompts", m.LongPrices}} {
		if q.CacheRead > q.Input {
			p.errorAt(e.line, "%s: cache_read of %q is %v, above input at %v; swap them or correct one", q.name, e.id, q.CacheRead, q.Input)
		}
		if q.Input > 0 && q.Output == 0 {
			p.errorAt(e.line, "%s: %q has an input price and no output price; add output", q.name, e.id)
		}
		if q.Input == 0 && q.Output > 0 {
			p.errorAt(e.line, "%s: %q has an output price and no input price; add input", q.name, e.id)
		}
	}
	if (m.LongAbove > 0) != price.Known(m.LongPrices) {
		p.errorAt(e.line, "long_prompts: %q needs both \"above\" and prices", e.id)
	}
	if m.Window > 0 && m.MaxOutput > m.Window {
		p.errorAt(e.line, "max_output of %q is %d, above its window of %d; swap them or correct one", e.id, m.MaxOutput, m.Window)
	}
	if m.Caching.Explicit && m.Caching.MaxMarks == 0 {
		p.errorAt(e.line, "caching: %q is explicit and allows no marks; add max_marks", e.id)
	}
	if m.Caching.Lifetime == 0 && m.Caching.MinPrefix > 0 {
		p.errorAt(e.line, "caching: %q has a min_prefix and no lifetime; add one such as 5m", e.id)
	}
}

func count(at func(*Entry) *int) field {
	return func(p *parser, key string, n *yaml.Node) []set {
		s, ok := p.scalar(key, n, "a whole number", "!!int")
		if !ok {
			return nil
		}
		v, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
		if err != nil || v < 0 || v > maxCount {
			p.errorf(n, "%q is %.40s; write a whole number from 0 to %d", key, s, maxCount)
			return nil
		}
		return []set{func(e *Entry) { *at(e) = int(v) }}
	}
}

func number(at func(*Entry) *float64, most float64) field {
	return func(p *parser, key string, n *yaml.Node) []set {
		s, ok := p.scalar(key, n, "a number", "!!int", "!!float")
		if !ok {
			return nil
		}
		v, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
		if err != nil || !(v >= 0 && v <= most) { // false for NaN
			p.errorf(n, "%q is %.40s; write a number from 0 to %v", key, s, most)
			return nil
		}
		return []set{func(e *Entry) { *at(e) = v }}
	}
}

func flag(at func(*Entry) *bool) field {
	return func(p *parser, key string, n *yaml.Node) []set {
		s, ok := p.scalar(key, n, "true or false", "!!bool")
		if !ok {
			return nil
		}
		v := strings.EqualFold(s, "true")
		return []set{func(e *Entry) { *at(e) = v }}
	}
}

func text(at func(*Entry) *string, valid func(string) string) field {
	return func(p *parser, key string, n *yaml.Node) []set {
		s, ok := p.scalar(key, n, "a text", textTags...)
		if !ok {
			return nil
		}
		if valid != nil {
			if cure := valid(s); cure != "" {
				p.errorf(n, "%q is %.40q; %s", key, s, cure)
				return nil
			}
		}
		return []set{func(e *Entry) { *at(e) = s }}
	}
}

func isDate(s string) string {
	for _, layout := range []string{"2006-01", "2006-01-02"} {
		if _, err := time.Parse(layout, s); err == nil {
			return ""
		}
	}
	return "write a month or a day, such as 2026-10 or 2026-10-07"
}

func formatField(p *parser, key string, n *yaml.Node) []set {
	s, ok := p.scalar(key, n, "a wire format", "!!str")
	if !ok {
		return nil
	}
	f := furl.Format(s)
	if !slices.Contains(formats, f) {
		p.errorf(n, "%q is %.40q; write one of %q", key, s, formats)
		return nil
	}
	return []set{func(e *Entry) { e.Model.Format = f }}
}

func lifetimeField(p *parser, key string, n *yaml.Node) []set {
	s, ok := p.scalar(key, n, "a duration such as 5m", "!!str")
	if !ok {
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > 30*24*time.Hour {
		p.errorf(n, "%q is %.40q; write a duration such as 5m or 1h, up to 720h", key, s)
		return nil
	}
	return []set{func(e *Entry) { e.Model.Caching.Lifetime = d }}
}

func object(fs fields) field {
	return func(p *parser, name string, n *yaml.Node) []set {
		var sets []set
		p.object(n, strconv.Quote(name), func(key string, k, v *yaml.Node) {
			sets = append(sets, p.field(fs, key, k, v)...)
		})
		return sets
	}
}
