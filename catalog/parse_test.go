package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl/catalog"
)

// An error names the key, the value and the line, and what was expected.
func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown key", "models:\n  - id: a\n    windw: 5\n", `f: unknown key "windw" (line 3): did you mean "window"?`},
		{"unknown key, nothing like it", "models:\n  - id: a\n    caching:\n      zebra: 5\n", `f: unknown key "zebra" (line 4): expected one of explicit, extended, granule, lifetime, lookback, max_marks, min_prefix`},
		{"unknown top key", "model:\n  - id: a\n", `f: unknown key "model" (line 1): did you mean "models"?`},
		{"duplicate key", "models:\n  - id: a\n    window: 5\n    window: 6\n", `f: duplicate key "window" (line 4): first on line 3`},
		{"duplicate id", "models:\n  - id: gpt-5.1\n  - id: GPT-5-1\n", `f: duplicate name "GPT-5-1" (line 3): "gpt-5.1" on line 2 has it too`},
		{"duplicate alias", "models:\n  - id: a\n  - id: b\n    aliases: [c, a]\n", `f: duplicate name "a" (line 3): "a" on line 2 has it too`},
		{"no id", "models:\n  - window: 5\n", `f: missing id (line 2): add the name that requests use for the model`},
		{"id with a space", "models:\n  - id: a b\n", `f: invalid id "a b" (line 2): expected a name of 1 to 256 characters without spaces`},
		{"word for a number", "models:\n  - id: a\n    window: large\n", `f: invalid window "large" (line 3): expected a whole number from 0 to 1,000,000,000`},
		{"quoted number", "models:\n  - id: a\n    window: '5'\n", `f: invalid window "5" (line 3): expected a whole number from 0 to 1,000,000,000 without quotes`},
		{"fraction of a token", "models:\n  - id: a\n    window: 1.5\n", `f: invalid window "1.5" (line 3): expected a whole number from 0 to 1,000,000,000`},
		{"negative count", "models:\n  - id: a\n    window: -1\n", `f: invalid window "-1" (line 3): expected a whole number from 0 to 1,000,000,000`},
		{"huge count", "models:\n  - id: a\n    window: 99999999999\n", `f: invalid window "99999999999" (line 3): expected a whole number from 0 to 1,000,000,000`},
		{"negative price", "models:\n  - id: a\n    prices:\n      input: -3\n      output: 4\n", `f: invalid prices.input "-3" (line 4): expected a number from 0 to 1,000,000`},
		{"price that is not a number", "models:\n  - id: a\n    prices: {input: .nan, output: 4}\n", `f: invalid prices.input ".nan" (line 3): expected a number from 0 to 1,000,000`},
		{"list for a mapping", "models:\n  - id: a\n    prices: [1, 2]\n", `f: invalid prices (line 3): expected "key: value" lines, not a list`},
		{"mapping for a list", "models:\n  id: a\n", `f: invalid models (line 2): expected a list of models, each starting with "- id: NAME", not a mapping`},
		{"word for a list", "models:\n  - id: a\n    aliases: b\n", `f: invalid aliases "b" (line 3): expected a list such as [a, b]`},
		{"no value", "models:\n  - id: a\n    window:\n", `f: missing value of window (line 3): expected a whole number from 0 to 1,000,000,000`},
		{"yes for true", "models:\n  - id: a\n    prefill: yes\n", `f: invalid prefill "yes" (line 3): expected true or false`},
		{"format", "models:\n  - id: a\n    format: openai\n", `f: invalid format "openai" (line 3): expected one of anthropic, openai-chat, openai-responses, gemini`},
		{"lifetime", "models:\n  - id: a\n    caching: {lifetime: 5 minutes}\n", `f: invalid caching.lifetime "5 minutes" (line 3): expected a duration such as 5m or 1h, up to 720h`},
		{"date", "models:\n  - id: a\n    date: May 2026\n", `f: invalid date "May 2026" (line 3): expected a month or a day, such as 2026-10 or 2026-10-07`},
		{"read above input", "models:\n  - id: a\n    prices: {input: 1, cache_read: 2, output: 3}\n", `f: invalid prices of "a" (line 2): cache_read 2 is above input 1; swap or correct them`},
		{"half a price", "models:\n  - id: a\n    prices: {input: 1}\n", `f: invalid prices of "a" (line 2): input has a price and output has none; add output`},
		{"the other half", "models:\n  - id: a\n    prices: {output: 1}\n", `f: invalid prices of "a" (line 2): output has a price and input has none; add input`},
		{"long without a limit", "models:\n  - id: a\n    long_prompts: {input: 1, output: 3}\n", `f: invalid long_prompts of "a" (line 2): expected both "above" and prices`},
		{"output above the window", "models:\n  - id: a\n    window: 5\n    max_output: 6\n", `f: invalid max_output of "a" (line 2): 6 is above the window, 5; swap or correct them`},
		{"marks", "models:\n  - id: a\n    caching: {explicit: true, lifetime: 5m}\n", `f: invalid caching of "a" (line 2): explicit caching allows no marks; add max_marks`},
		{"no lifetime", "models:\n  - id: a\n    caching: {min_prefix: 5}\n", `f: invalid caching of "a" (line 2): min_prefix needs a lifetime; add one such as 5m`},
		{"merge key", "models:\n  - &a {id: a}\n  - {<<: *a, id: b}\n", `f: unsupported key "<<" (line 3): repeat single values with &x and *x`},
		{"two documents", "models: []\n---\nmodels: []\n", `f: second document (line 2): expected one document; remove "---"`},
		{"not YAML", "models:\n  - id: [\n", `f: invalid YAML (line 2): did not find expected node content`},
		{"a list", "- id: a\n", `f: invalid file (line 1): expected "key: value" lines, not a list`},
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
	want := "f: unknown key \"windw\" (line 3): did you mean \"window\"?\n" +
		"f: invalid prices.input \"-1\" (line 4): expected a number from 0 to 1,000,000\n" +
		"f: unknown key \"prefil\" (line 6): did you mean \"prefill\"?"
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
		"a null list":    "models:\n",
		"null keys":      "models:\n  - id: a\n    prices:\n",
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
				if !strings.HasPrefix(line, "f: ") && !strings.Contains(err.Error(), "invalid YAML") {
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
