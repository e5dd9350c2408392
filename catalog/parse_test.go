package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl/catalog"
)

// Each error names its line and says what to write instead.
func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown key", "models:\n  - id: a\n    windw: 5\n", `f:3: unknown key "windw"; did you mean "window"?`},
		{"unknown key, nothing like it", "models:\n  - id: a\n    caching:\n      zebra: 5\n", `f:4: unknown key "zebra"; the keys here are explicit, granule, lifetime, lookback, max_marks, min_prefix`},
		{"unknown top key", "model:\n  - id: a\n", `f:2: unknown key "model"; a catalogue has one key, "models"`},
		{"key twice", "models:\n  - id: a\n    window: 5\n    window: 6\n", `f:4: "window" is given twice, first on line 3; keep one`},
		{"id twice", "models:\n  - id: gpt-5.1\n  - id: GPT-5-1\n", `f:3: the name "GPT-5-1" is taken by "gpt-5.1" on line 2; keep one of them`},
		{"alias twice", "models:\n  - id: a\n  - id: b\n    aliases: [c, a]\n", `f:3: the name "a" is taken by "a" on line 2; keep one of them`},
		{"no id", "models:\n  - window: 5\n", `f:2: a model without "id"; add the name requests use for it`},
		{"id with a space", "models:\n  - id: a b\n", `f:2: "id" is "a b"; write a name of 1 to 256 characters without spaces`},
		{"word for a number", "models:\n  - id: a\n    window: large\n", `f:3: "window" is "large"; write a whole number`},
		{"quoted number", "models:\n  - id: a\n    window: '5'\n", `f:3: "window" is "5"; write a whole number`},
		{"fraction of a token", "models:\n  - id: a\n    window: 1.5\n", `f:3: "window" is "1.5"; write a whole number`},
		{"negative count", "models:\n  - id: a\n    window: -1\n", `f:3: "window" is -1; write a whole number from 0 to 1000000000`},
		{"huge count", "models:\n  - id: a\n    window: 99999999999\n", `f:3: "window" is 99999999999; write a whole number from 0 to 1000000000`},
		{"negative price", "models:\n  - id: a\n    prices:\n      input: -3\n      output: 4\n", `f:4: "input" is -3; write a number from 0 to 1e+06`},
		{"price that is not a number", "models:\n  - id: a\n    prices: {input: .nan, output: 4}\n", `f:3: "input" is .nan; write a number from 0 to 1e+06`},
		{"list for a mapping", "models:\n  - id: a\n    prices: [1, 2]\n", `f:3: "prices" is a list; write "key: value" lines`},
		{"mapping for a list", "models:\n  id: a\n", `f:2: "models" is a mapping; write a list, each model starting with "- id: NAME"`},
		{"word for a list", "models:\n  - id: a\n    aliases: b\n", `f:3: "aliases" is "b"; write a list such as [a, b]`},
		{"no value", "models:\n  - id: a\n    window:\n", `f:3: "window" has no value; write a whole number, or remove the line`},
		{"yes for true", "models:\n  - id: a\n    prefill: yes\n", `f:3: "prefill" is "yes"; write true or false`},
		{"format", "models:\n  - id: a\n    format: openai\n", `f:3: "format" is "openai"; write one of ["anthropic" "openai-chat" "openai-responses"]`},
		{"lifetime", "models:\n  - id: a\n    caching: {lifetime: 5 minutes}\n", `f:3: "lifetime" is "5 minutes"; write a duration such as 5m or 1h, up to 720h`},
		{"date", "models:\n  - id: a\n    date: May 2026\n", `f:3: "date" is "May 2026"; write a month or a day, such as 2026-10 or 2026-10-07`},
		{"read above input", "models:\n  - id: a\n    prices: {input: 1, cache_read: 2, output: 3}\n", `f:2: prices: cache_read of "a" is 2, above input at 1; swap them or correct one`},
		{"half a price", "models:\n  - id: a\n    prices: {input: 1}\n", `f:2: prices: "a" has an input price and no output price; add output`},
		{"the other half", "models:\n  - id: a\n    prices: {output: 1}\n", `f:2: prices: "a" has an output price and no input price; add input`},
		{"long without a limit", "models:\n  - id: a\n    long_prompts: {input: 1, output: 3}\n", `f:2: long_prompts: "a" needs both "above" and prices`},
		{"output above the window", "models:\n  - id: a\n    window: 5\n    max_output: 6\n", `f:2: max_output of "a" is 6, above its window of 5; swap them or correct one`},
		{"marks", "models:\n  - id: a\n    caching: {explicit: true, lifetime: 5m}\n", `f:2: caching: "a" is explicit and allows no marks; add max_marks`},
		{"no lifetime", "models:\n  - id: a\n    caching: {min_prefix: 5}\n", `f:2: caching: "a" has a min_prefix and no lifetime; add one such as 5m`},
		{"merge key", "models:\n  - &a {id: a}\n  - {<<: *a, id: b}\n", `f:3: a key that is "<<"; write a plain word ("<<" is not supported, repeat single values with &x and *x)`},
		{"two documents", "models: []\n---\nmodels: []\n", `f:2: a second document starts here; keep one, without "---" in between`},
		{"not YAML", "models:\n  - id: [\n", `f:2: not valid YAML: did not find expected node content`},
		{"a list", "- id: a\n", `f:1: the file is a list; write "key: value" lines`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := catalog.Parse("f", []byte(tt.text))
			if err == nil {
				_, err = catalog.Default().Merge(c)
			}
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// Several errors are reported at once, up to a limit.
func TestParseReportsAllErrors(t *testing.T) {
	_, err := catalog.Parse("f", []byte("models:\n  - id: a\n    windw: 1\n    prices: {input: -1}\n  - id: b\n    prefil: true\n"))
	want := "f:3: unknown key \"windw\"; did you mean \"window\"?\n" +
		"f:4: \"input\" is -1; write a number from 0 to 1e+06\n" +
		"f:6: unknown key \"prefil\"; did you mean \"prefill\"?"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	_, err = catalog.Parse("f", []byte("models:\n"+strings.Repeat("  - 5\n", 500)))
	if n := strings.Count(fmt.Sprint(err), "\n") + 1; n > 20 {
		t.Errorf("%d errors reported, want at most 20", n)
	}
}

func TestParseAccepts(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":        "",
		"comments":       "# nothing yet\n",
		"an empty list":  "models: []\n",
		"a null":         "~\n",
		"flow style":     `{"models": [{"id": "x", "window": 5}]}`,
		"anchors":        "models:\n  - id: a\n    prices: &p {input: 1, output: 2}\n  - id: b\n    prices: *p\n",
		"a day":          "models:\n  - id: a\n    date: 2026-10-07\n",
		"a numeric name": "models:\n  - id: 7\n",
	} {
		if _, err := catalog.Parse("f", []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("models:\n  - id: a\n    prices: &p {input: 1, output: 2}\n  - id: b\n    aliases: [c]\n    prices: *p\n"))
	f.Add([]byte("models:\n  - id: a\n    caching: {explicit: true, lifetime: 5m, max_marks: 4}\n    long_prompts: {above: 5, input: 1, output: 2}\n"))
	f.Add([]byte("models: [&a [*a]]"))
	f.Add([]byte("&a models: *a"))
	f.Add([]byte("models:\n- id: a\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := catalog.Parse("f", data)
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "f:") && !strings.Contains(err.Error(), "not valid YAML") {
					t.Errorf("an error without its line: %q", line)
				}
			}
			return
		}
		// Parsed entries can be looked up, and merging them into the built-in
		// catalogue succeeds or returns an error.
		for _, e := range c.Entries() {
			if m, ok := c.Lookup(e.Model.ID); len(e.Model.ID) <= 200 && (!ok || m.ID != e.Model.ID) {
				t.Errorf("%q is not found", e.Model.ID)
			}
		}
		if merged, err := catalog.Default().Merge(c); err == nil {
			for _, e := range c.Entries() {
				if _, ok := merged.Lookup(e.Model.ID); !ok && len(e.Model.ID) <= 200 {
					t.Errorf("%q is not found after merging", e.Model.ID)
				}
			}
		}
	})
}
