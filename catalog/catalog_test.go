package catalog_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/price"
)

// Every built-in entry says when and where its facts were found, and is
// valid.
func TestBuiltInEntries(t *testing.T) {
	c := catalog.Default()
	if n := len(c.Entries()); n < 80 {
		t.Errorf("%d entries", n)
	}
	for _, e := range c.Entries() {
		m := e.Model
		if e.Date == "" || e.Source == "" || e.Source == "built-in models.yaml" {
			t.Errorf("%s: date %q and source %q, want both", e.Where, e.Date, e.Source)
		}
		if m.Provider == "" || m.Format == "" || m.Window == 0 {
			t.Errorf("%s: %q has provider %q, format %q, window %d, want all three", e.Where, m.ID, m.Provider, m.Format, m.Window)
		}
		checkPrices(t, e.Where, m.Prices)
		for i := range m.TimedPrices {
			checkPrices(t, e.Where, m.TimedPrices[i].Prices)
			checkPrices(t, e.Where, m.TimedPrices[i].LongPrices)
		}
		if m.LongAbove > 0 {
			checkPrices(t, e.Where, m.LongPrices)
			if m.LongPrices.Input <= m.Prices.Input || m.LongAbove >= m.Window {
				if m.LongAbove != m.Window { // offered with a larger window on request
					t.Errorf("%s: long prompts of %q: from %d on at %v, with a window of %d and %v below", e.Where, m.ID, m.LongAbove, m.LongPrices.Input, m.Window, m.Prices.Input)
				}
			}
		}
		if c := m.Caching; c.MinPrefix > 0 && !c.Explicit && c.Granule == 0 {
			t.Errorf("%s: automatic caching of %q without a granule", e.Where, m.ID)
		}
		if m.Thinking.Binds && (m.Thinking.Required || m.Thinking.LastOnly) {
			t.Errorf("%s: %q: no model is documented to bind thinking and to require or drop it", e.Where, m.ID)
		}
		if m.TokenScale != 0 && (m.TokenScale < 0.8 || m.TokenScale > 2) {
			t.Errorf("%s: token scale of %q is %v", e.Where, m.ID, m.TokenScale)
		}
		got, ok := c.Lookup(m.ID)
		if !ok || got.ID != m.ID {
			t.Errorf("%s: looking up %q finds %q", e.Where, m.ID, got.ID)
		}
	}
}

func checkPrices(t *testing.T, where string, p furl.Prices) {
	t.Helper()
	if !price.Known(p) {
		return
	}
	if p.CacheRead > p.Input || p.Input > p.CacheWrite1h || p.CacheWrite > p.CacheWrite1h || p.Input >= p.Output {
		t.Errorf("%s: prices out of order: %+v", where, p)
	}
}

// The facts on which policies and the cache simulation depend.
func TestClaudeFacts(t *testing.T) {
	for _, tt := range []struct {
		id                       string
		window, minPrefix        int
		read                     float64 // of the input price
		binds, lastOnly, prefill bool
	}{
		{"claude-fable-5-2", 1_000_000, 512, 0.025, true, false, false},
		{"claude-mythos-5-2", 1_000_000, 512, 0.025, true, false, false},
		{"claude-fable-5-1", 1_000_000, 512, 0.025, true, false, false},
		{"claude-opus-5-5", 1_000_000, 512, 0.05, true, false, false},
		{"claude-sonnet-5", 1_000_000, 1024, 0.1, false, false, false},
		{"claude-opus-4-8", 1_000_000, 1024, 0.1, false, false, false},
		{"claude-sonnet-4-6", 1_000_000, 1024, 0.1, false, false, false},
		{"claude-opus-4-5-20251101", 200_000, 4096, 0.1, false, false, true},
		{"claude-sonnet-4-5-20250929", 200_000, 1024, 0.1, false, true, true},
		{"claude-haiku-4-5-20251001", 200_000, 4096, 0.1, false, true, true},
	} {
		m, ok := catalog.Default().Lookup(tt.id)
		if !ok {
			t.Errorf("%s is unknown", tt.id)
			continue
		}
		read := m.Prices.CacheRead / m.Prices.Input
		if m.Window != tt.window || m.Caching.MinPrefix != tt.minPrefix || read < tt.read*0.999 || read > tt.read*1.001 {
			t.Errorf("%s: window %d, minimum prefix %d, reads at %v of the input price; want %d, %d, %v", tt.id, m.Window, m.Caching.MinPrefix, read, tt.window, tt.minPrefix, tt.read)
		}
		if m.Thinking.Binds != tt.binds || m.Thinking.LastOnly != tt.lastOnly || m.Prefill != tt.prefill {
			t.Errorf("%s: binds %v, last only %v, prefill %v; want %v, %v, %v", tt.id, m.Thinking.Binds, m.Thinking.LastOnly, m.Prefill, tt.binds, tt.lastOnly, tt.prefill)
		}
		if c := m.Caching; !c.Explicit || c.Lookback != 20 || c.MaxMarks != 4 {
			t.Errorf("%s: caching %+v; want explicit, 20 positions, 4 marks", tt.id, c)
		}
		if w, w1 := m.Prices.CacheWrite/m.Prices.Input, m.Prices.CacheWrite1h/m.Prices.Input; w < 1.249 || w > 1.251 || w1 < 1.999 || w1 > 2.001 {
			t.Errorf("%s: writes at %v and %v of the input price, want 1.25 and 2", tt.id, w, w1)
		}
	}
}

// Requests of the past have the prices of their day.
func TestPricesByDate(t *testing.T) {
	for _, tt := range []struct {
		id, at              string
		prompt              int
		input, read, output float64
	}{
		{"deepseek-v4-pro", "2026-08-16 15:59", 1000, 0.435, 0.003625, 0.87},
		{"deepseek-v4-pro", "2026-08-12 02:00", 1000, 0.435, 0.003625, 0.87}, // no peak hours yet
		{"deepseek-v4-pro", "2026-08-16 16:00", 1000, 0.66, 0.022, 1.98},
		{"deepseek-v4-pro", "2026-08-25 02:00", 1000, 1.32, 0.044, 3.96},
		{"deepseek-v4-flash", "2026-08-12 02:00", 1000, 0.14, 0.0028, 0.28},
		{"deepseek-v4-flash", "2026-08-25 02:00", 1000, 0.44, 0.014, 1.32},
		{"deepseek-v4-flash", "2026-08-25 05:00", 1000, 0.22, 0.007, 0.66},
		{"deepseek-v4-flash", "2026-09-11 02:00", 1000, 0.3, 0.006, 1.2},
		{"deepseek-v4-flash", "2026-09-12 02:00", 1000, 0.15, 0.003, 0.6}, // a Saturday
		{"claude-sonnet-5-5", "2026-10-06 12:00", 1000, 2, 0.2, 10},
		{"claude-sonnet-5-5", "2026-10-08 12:00", 1000, 2, 0.1, 10},
		{"gpt-5.6-sol", "2026-08-20 23:59", 1000, 5, 0.5, 30},
		{"gpt-5.6-sol", "2026-08-20 23:59", 300_000, 10, 1, 45},
		{"gpt-5.6-sol", "2026-08-21 00:00", 1000, 4, 0.4, 20},
		{"gpt-5.6-sol", "2026-08-21 00:00", 300_000, 8, 0.8, 30},
		{"gpt-5.6-terra", "2026-07-29 12:00", 1000, 2.5, 0.25, 15},
		{"gpt-5.6-terra", "2026-07-30 12:00", 1000, 2, 0.2, 12},
		{"gpt-5.6-luna", "2026-07-29 12:00", 300_000, 2, 0.2, 9},
		{"gpt-5.6-luna", "2026-07-30 12:00", 300_000, 0.4, 0.04, 1.8},
	} {
		at, err := time.Parse("2006-01-02 15:04", tt.at)
		if err != nil {
			t.Fatal(err)
		}
		m, ok := catalog.Default().Lookup(tt.id)
		p := price.For(&m, tt.prompt, at)
		if !ok || p.Input != tt.input || p.CacheRead != tt.read || p.Output != tt.output {
			t.Errorf("%s at %s, %d tokens: %+v, want %v, %v, %v", tt.id, tt.at, tt.prompt, p, tt.input, tt.read, tt.output)
		}
	}
}

// An entry that a file changes has the origin of each value: the file's for the keys that
// it has, the built-in one for the others.
func TestOriginOf(t *testing.T) {
	builtIn, _ := catalog.Default().Entry("claude-opus-5-5")
	c, err := catalog.Default().Merge(parse(t, "user.yaml", `
models:
  - {id: claude-opus-5.5, window: 400_000, prices: {input: 4, output: 20}, aliases: [house]}
  - {id: gpt-5-2031-01-01, max_output: 1000, source: a letter, date: 2026-11}
  - {id: llama-local, window: 32_768}
  - {id: gpt-4o, date: 2026-12-01}
`))
	if err == nil {
		c, err = c.Merge(parse(t, "second.yaml", "models: [{id: house, window: 300_000}]"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, key, want string }{
		{"house", "window", "second.yaml:1"},
		{"house", "prices", "user.yaml:3"},
		{"house", "caching", builtIn.Origin.String()},
		{"gpt-5-2031-01-01", "max_output", "a letter, 2026-11 (user.yaml:4)"},
		{"llama-local", "window", "user.yaml:5"},
		{"gpt-4o", "window", "OpenAI"},
	} {
		e, ok := c.Entry(tt.name)
		if got := e.OriginOf(tt.key).String(); !ok || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s of %s is from %q, want %q", tt.key, tt.name, got, tt.want)
		}
	}
	if e, _ := c.Entry("house"); e.Model.Window != 300_000 || len(e.Changes) != 2 || e.Origin != builtIn.Origin {
		t.Errorf("got %+v", e)
	}
	if e, _ := c.Entry("gpt-4o"); e.Date != "2026-12-01" || len(e.Changes) != 0 {
		t.Errorf("got %+v", e)
	}
	if e, _ := catalog.Default().Entry("claude-opus-5-5"); len(e.Changes) != 0 || e.Model.Window != builtIn.Model.Window {
		t.Errorf("the built-in catalogue has changed: %+v", e)
	}
}

func TestMerge(t *testing.T) {
	user := parse(t, "user.yaml", `
models:
  - id: claude-sonnet-4.5        # by another spelling
    prices: {input: 2.5}
    aliases: [house-model]
  - id: gpt-5-2031-01-01         # known by a rule: an entry of its own
    window: 500000
  - id: llama-local
    window: 32_768
    aliases: [gpt-4o]            # takes the name over
`)
	c, err := catalog.Default().Merge(user)
	if err != nil {
		t.Fatal(err)
	}
	old, _ := catalog.Default().Lookup("claude-sonnet-4-5")
	for _, name := range []string{"claude-sonnet-4-5", "house-model", "anthropic/claude-sonnet-4.5"} {
		m, ok := c.Lookup(name)
		if !ok || m.Prices.Input != 2.5 || m.Prices.Output != old.Prices.Output || m.Window != old.Window || m.Caching != old.Caching {
			t.Errorf("%s: got %+v, want the built-in entry with another input price", name, m)
		}
	}
	if m, _ := c.Lookup("gpt-5-2031-01-01"); m.Window != 500_000 || m.Prices.Input != 1.25 {
		t.Errorf("the dated model: window %d at %v, want 500000 at 1.25", m.Window, m.Prices.Input)
	}
	if m, _ := c.Lookup("gpt-5"); m.Window != 400_000 {
		t.Errorf("gpt-5 itself: window %d, want it unchanged", m.Window)
	}
	if m, _ := c.Lookup("gpt-4o"); m.ID != "llama-local" || m.Window != 32_768 || price.Known(m.Prices) {
		t.Errorf("the name in both files: %+v", m)
	}
	if e, _ := c.Entry("llama-local"); e.Source != "user.yaml" || e.Where != "user.yaml:8" {
		t.Errorf("source %q, where %q; want the user's file", e.Source, e.Where)
	}
	if m, _ := catalog.Default().Lookup("claude-sonnet-4-5"); !reflect.DeepEqual(m, old) {
		t.Error("merging changed the built-in catalogue")
	}
}

// The combination of a user's file and a built-in entry is checked too.
func TestMergeChecksTheResult(t *testing.T) {
	_, err := catalog.Default().Merge(parse(t, "user.yaml", "models:\n  - id: gpt-5\n    prices: {cache_read: 9}\n"))
	want := `user.yaml: invalid prices of "gpt-5" (line 2): cache_read 9 is above input 1.25; swap or correct them`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "models.yaml")
	if err := os.WriteFile(path, []byte("models: [{id: a-model, window: 1000}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := c.Lookup("A-Model"); !ok || m.Window != 1000 || m.Format != furl.FormatChat {
		t.Errorf("got %+v, %v", m, ok)
	}
	if _, err := catalog.Load(path + ".gone"); err == nil || !strings.Contains(err.Error(), path+".gone") {
		t.Errorf("a missing file: got %v, want an error that names it", err)
	}
}

func TestNames(t *testing.T) {
	names := catalog.Default().Names()
	for i, n := range names {
		if i > 0 && names[i-1] >= n {
			t.Fatalf("%q after %q", n, names[i-1])
		}
		if _, ok := catalog.Default().Lookup(n); !ok {
			t.Errorf("%q is a name and is not found", n)
		}
	}
}

func parse(t *testing.T, name, text string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
