package setup

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/unidiff"
	"github.com/tailscale/hujson"
)

// Diff returns the change of a file in the unified format, "" if there is none. Values
// that furl did not write are shown as "…", because they may be credentials.
func (f *File) Diff() string {
	if !f.differs() {
		return ""
	}
	before, after := f.Before, f.After
	if f.Remove {
		after = nil
	}
	if !f.whole {
		before, after = f.masked(before), f.masked(after)
	}
	return unidiff.Diff(Short(f.Path), clean(before), clean(after))
}

// own lets the diff show the strings of a value that furl wrote. What follows --after
// is the user's.
func (f *File) own(value string) {
	for _, text := range stringsOf(value) {
		shown := text
		if before, _, ok := strings.Cut(text, " --after "); ok {
			shown = before + " --after …"
		}
		f.shown[text] = shown
	}
}

// clean removes what cannot be seen. The result is not nil.
func clean(data []byte) []byte {
	return append([]byte{}, bytes.ReplaceAll(bytes.TrimPrefix(data, mark), []byte("\r\n"), []byte("\n"))...)
}

// stringsOf returns all strings of a JSON value.
func stringsOf(value string) (list []string) {
	var tree any
	if json.Unmarshal([]byte(value), &tree) != nil {
		return nil
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			list = append(list, v)
		case map[string]any:
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(tree)
	return list
}

// publicURL returns an address without what may be credentials: password, query,
// fragment, and long words of the path.
func publicURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "…"
	}
	words := strings.Split(u.Path, "/")
	for i, word := range words {
		if secretWord(word) {
			words[i] = "…"
		}
	}
	return u.Scheme + "://" + u.Host + strings.Join(words, "/")
}

// span is a part of a file to mask.
type span struct {
	from, to int
	text     string
}

// masked returns a document with only furl's own strings.
func (f *File) masked(data []byte) []byte {
	data = bytes.TrimPrefix(data, mark)
	var spans []span
	switch languageOf(f.Path).(type) {
	case jsonLanguage:
		v, err := parseJSON(data)
		if err != nil {
			return data[:0] // blank: others were refused
		}
		f.maskJSON(&v, &spans)
	case tomlLanguage:
		spans = f.maskTOML(data)
	default:
		return f.maskYAML(data)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, s := range spans {
		if s.to > len(data) {
			s.to, s.text = len(data), strings.TrimSuffix(s.text, "\n") // the line end for the parser
		}
		if s.from >= at {
			out = append(append(out, data[at:s.from]...), s.text...)
			at = s.to
		}
	}
	return append(out, data[at:]...)
}

// show returns how a string is shown.
func (f *File) show(text string) string {
	if shown, ok := f.shown[text]; ok {
		return quote(shown)
	}
	return `"…"`
}

func (f *File) maskJSON(v *hujson.Value, spans *[]span) {
	comment := func(at int, extra hujson.Extra) {
		*spans = append(*spans, span{at, at + len(extra), maskComments(string(extra))})
	}
	comment(v.StartOffset-len(v.BeforeExtra), v.BeforeExtra)
	comment(v.EndOffset, v.AfterExtra)
	switch c := v.Value.(type) {
	case hujson.Literal:
		if c.Kind() == '"' {
			*spans = append(*spans, span{v.StartOffset, v.EndOffset, f.show(c.String())})
		}
	case *hujson.Object:
		for i := range c.Members {
			m := &c.Members[i]
			comment(m.Name.StartOffset-len(m.Name.BeforeExtra), m.Name.BeforeExtra)
			if name := string(m.Name.Value.(hujson.Literal)); secretWord(name) {
				*spans = append(*spans, span{m.Name.StartOffset, m.Name.EndOffset, `"…"`})
			}
			f.maskJSON(&m.Value, spans)
		}
		comment(v.EndOffset-1-len(c.AfterExtra), c.AfterExtra)
	case *hujson.Array:
		for i := range c.Elements {
			f.maskJSON(&c.Elements[i], spans)
		}
		comment(v.EndOffset-1-len(c.AfterExtra), c.AfterExtra)
	}
}

func (f *File) maskTOML(data []byte) (spans []span) {
	last := 0
	gap := func(from, to int) {
		for _, at := range commentPlace.FindAllIndex(data[from:to], -1) {
			spans = append(spans, span{from + at[0], from + at[1], maskComments(string(data[from+at[0] : from+at[1]]))})
		}
	}
	for _, s := range statements(data) {
		if s.header {
			gap(last, s.from)
			if key := string(data[s.from:s.to]); secretWord(key) {
				spans = append(spans, span{s.from, s.to, "[…]\n"})
			}
			last = s.to
			continue
		}
		gap(last, s.from)
		for at := s.value[0]; at < s.value[1]; {
			switch data[at] {
			case '"', '\'':
				end := stringEnd(data, at)
				v, err := tomlLanguage{}.value(string(data[at:end]))
				text, _ := v.(string)
				if err != nil {
					text = ""
				}
				spans = append(spans, span{at, end, f.show(text)})
				at = end
			case '#':
				end := bytes.IndexByte(data[at:], '\n')
				if end < 0 {
					end = len(data) - at
				}
				spans = append(spans, span{at, at + end, maskComments(string(data[at : at+end]))})
				at += end
			default:
				at++
			}
		}
		gap(s.value[1], s.to)
		last = s.to
	}
	gap(last, len(data))
	return spans
}

var (
	commentPlace = lazyregexp.New(`#[^\n]*`)
	yamlLine     = lazyregexp.New(`^(\s*(?:- +)*)([\w.-]+):(\s+(.*?))?(\r?)$`)
)

func (f *File) maskYAML(data []byte) []byte {
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		text := strings.TrimSpace(line)
		parts := yamlLine.FindStringSubmatch(line)
		switch {
		case text == "":
		case text[0] == '#':
			lines[i] = maskComments(line)
		case parts != nil && secretWord(parts[2]):
			lines[i] = parts[1] + "…"
		case parts != nil && parts[4] == "":
		case parts != nil:
			v, err := yamlLanguage{}.value(parts[4])
			shown := "…"
			if err == nil && len(f.shown) > 0 && f.allShown(v) {
				shown = parts[4]
			} else if s, ok := v.(string); ok && f.shown[s] != "" {
				shown = quote(f.shown[s])
			}
			lines[i] = parts[1] + parts[2] + ": " + shown
		default:
			indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
			lines[i] = indent + "…"
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// allShown reports whether a value has only strings that furl wrote.
func (f *File) allShown(v any) bool {
	switch v := v.(type) {
	case string:
		return f.shown[v] == v
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !f.allShown(e) })
	case bool, int, float64, nil:
		return true
	}
	return false
}

// secretWord reports whether a key or a word may be a credential: it is long and has
// digits, or is very long.
func secretWord(word string) bool {
	return len(word) >= 40 && !strings.ContainsAny(word, "/ ") || len(word) >= 14 && strings.ContainsAny(word, "0123456789") && !strings.ContainsAny(word, "/ ")
}

var word = lazyregexp.New(`[^\s"'=:,]+`)

// maskComments hides words in comments that may be credentials, and all that follows
// "=" or ":".
func maskComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if i := strings.IndexAny(line, "=:"); i >= 0 && len(strings.TrimSpace(line[i+1:])) > 0 {
			end := line[len(strings.TrimRight(line, "\r\n")):]
			line = line[:i+1] + " …" + end
		}
		b.WriteString(word.ReplaceAllStringFunc(line, func(w string) string {
			if len(w) >= 10 && strings.ContainsAny(w, "0123456789") || len(w) >= 24 {
				return "…"
			}
			return w
		}))
	}
	return b.String()
}
