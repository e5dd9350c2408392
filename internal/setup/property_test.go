package setup

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl/internal/agents"
)

// writer writes random documents. The number 12345 stands where the user will change
// something.
type writer struct {
	*rapid.T
	eol string
	b   strings.Builder
}

func (w *writer) pick(from ...string) string { return rapid.SampledFrom(from).Draw(w.T, "text") }

func (w *writer) chance(percent int) bool {
	return rapid.IntRange(0, 99).Draw(w.T, "chance") < percent
}

// space writes what may be between two tokens of JSON.
func (w *writer) space() {
	for range rapid.IntRange(0, 2).Draw(w.T, "spaces") {
		w.b.WriteString(w.pick(" ", "  ", "\t", w.eol, w.eol+"  ", "/* c, } */", "// \"c\" {"+w.eol, " "))
	}
}

// keys are those of settings, so that some exist already.
var keys = []string{"mcpServers", "furl", "env", "ANTHROPIC_BASE_URL", "provider", "anthropic", "options", "baseURL", "mcp", "statusLine", "a", "b b", `c"d`, "é"}

func (w *writer) object(depth int) {
	w.b.WriteString("{")
	w.space()
	n := rapid.IntRange(0, 4).Draw(w.T, "members")
	used := map[string]bool{}
	for i := range n {
		key := w.pick(keys...)
		if used[key] {
			key = fmt.Sprint("k", i)
		}
		used[key] = true
		w.b.WriteString(quote(key))
		w.space()
		w.b.WriteString(":")
		w.space()
		w.value(depth)
		w.space()
		if i < n-1 || w.chance(30) {
			w.b.WriteString(",")
			w.space()
		}
	}
	w.b.WriteString("}")
}

func (w *writer) value(depth int) {
	switch kind := rapid.IntRange(0, 9).Draw(w.T, "kind"); {
	case kind < 5 && depth > 0:
		w.object(depth - 1)
	case kind == 5 && depth > 0:
		w.b.WriteString("[")
		w.space()
		w.value(depth - 1)
		w.b.WriteString(",")
		w.value(0)
		w.b.WriteString("]")
	default:
		w.b.WriteString(w.pick("12345", "1.50", "true", "null", `"x"`, `"a\"}\\"`, `"// no comment"`))
	}
}

// checkSettings applies settings to a document one by one, and undoes them: once as it
// is, and once after another change.
func checkSettings(t *rapid.T, name, text string, settings []agents.Setting) {
	d, err := parse(name, []byte(text))
	if err != nil {
		t.Skip(err)
	}
	want := clone(d.tree)
	var changes []change
	for _, s := range settings {
		value := s.Resolve(options.URL, options.Command)
		c, changed, err := d.apply(s.Path, value)
		if err != nil {
			continue // refused, with nothing changed
		}
		v, err := d.lang.value(value)
		if err != nil {
			t.Fatal(err)
		}
		if want, err = place(want, s.Path, v); err != nil {
			t.Fatal(err)
		}
		if changed {
			changes = append(changes, c)
		}
	}
	if !same(d.tree, want) {
		t.Fatalf("%q became %q", text, d.bytes())
	}
	after := string(d.bytes())
	for _, edit := range []func(string) string{func(s string) string { return s }, replace("12345", `"changed, } "`)} {
		d, err := parse(name, []byte(edit(after)))
		if err != nil {
			t.Fatalf("%q: %v", edit(after), err)
		}
		for _, c := range slices.Backward(changes) {
			if err := d.revert(edited(c, edit)); err != nil {
				t.Fatalf("%q became %q, of which %s stays: %v", text, edit(after), c.Path, err)
			}
		}
		if got, want := string(d.bytes()), edit(text); got != want && strings.TrimSpace(text) != "" {
			t.Fatalf("%q became %q; after undo %q", want, edit(after), got)
		}
	}
}

// edited is a change whose replaced value the user had changed before already.
func edited(c change, edit func(string) string) change {
	if c.Old != nil {
		old := edit(*c.Old)
		c.Old = &old
	}
	return c
}

func TestAnyJSON(t *testing.T) {
	var settings []agents.Setting
	for _, name := range []string{"claude", "opencode", "gemini", "cursor"} {
		for _, f := range client(t, name).Files {
			settings = append(settings, f.Settings...)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := &writer{T: rt, eol: rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "eol")}
		w.space()
		w.object(3)
		w.space()
		checkSettings(rt, "x.jsonc", w.b.String(), settings)
	})
}

func TestAnyTOML(t *testing.T) {
	settings := leaves(client(t, "codex").Files[0].Settings)
	rapid.Check(t, func(rt *rapid.T) {
		w := &writer{T: rt, eol: rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "eol")}
		values := []string{"12345", `"x # y"`, "'[z]'", "[1, 2,\n # c ]\n 3]", "{ a = 1, b = \"}\" }", "\"\"\"\n[no]\n\\\"\"\"\"", "'''\na = 1\n'''", "1979-05-27", "nan", "true"}
		line := func(key string) {
			w.b.WriteString(w.pick("", " ", "\t") + key + w.pick("=", " = ", " =  ") + strings.ReplaceAll(w.pick(values...), "\n", w.eol) + w.pick("", " # c", "  ") + w.eol)
			w.b.WriteString(w.pick("", "", w.eol, "# [c] = 1"+w.eol))
		}
		used := map[string]bool{}
		section := func(prefix string) {
			for range rapid.IntRange(0, 3).Draw(rt, "keys") {
				key := w.pick("model", "model_provider", "command", "args", "name", "base_url", `"b b"`, "'c.d'", "e.f")
				if !used[prefix+key] {
					used[prefix+key] = true
					line(key)
				}
			}
		}
		w.b.WriteString(w.pick("", "# top"+w.eol, w.eol))
		section("")
		for range rapid.IntRange(0, 4).Draw(rt, "tables") {
			table := w.pick("mcp_servers.furl", "mcp_servers.x", "model_providers", "model_providers.furl", "model_providers.\"a.b\"", "t", "[list]", "[list]", "list.in")
			if !used["["+table] || table == "[list]" {
				used["["+table] = true
				w.b.WriteString(w.pick("", "  ") + "[" + table + "]" + w.pick("", " # c") + w.eol)
				section(table)
			}
		}
		text := w.b.String()
		if w.chance(30) {
			text = strings.TrimRight(text, "\r\n")
		}
		checkSettings(rt, "x.toml", text, settings)
	})
}
