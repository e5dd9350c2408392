// Package models says what furl knows and assumes about models, and which it has a key for.
package models

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// Seen returns the models of the sessions of all tenants with the formats of their
// requests.
func Seen(ctx context.Context, store storage.Store) (map[string]furl.Format, error) {
	seen := make(map[string]furl.Format)
	if _, ok := store.(*inmem.Store); ok {
		return seen, nil
	}
	tenants, err := tenants.All(ctx, store)
	if err != nil {
		return nil, err
	}
	for _, tenant := range tenants {
		for info, err := range store.Sessions(ctx, tenant, storage.SessionQuery{}) {
			if err != nil {
				return nil, err
			}
			if info.Model != "" {
				seen[info.Model] = info.Format
			}
		}
	}
	return seen, nil
}

// Listed returns the models of the store that the catalogue lacks, and then those of
// the catalogue.
func Listed(c *catalog.Catalog, seen map[string]furl.Format) []string {
	var names []string
	for name := range seen {
		if _, ok := c.Lookup(name); !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, e := range c.Entries() {
		names = append(names, e.Model.ID)
	}
	return names
}

// Model is a model of furl models --json.
type Model struct {
	Name string `json:"name"`
	// Known is catalogue, assumed or unknown. ID is the model's in the catalogue, Like
	// the one whose rules are assumed.
	Known    string `json:"known"`
	ID       string `json:"id,omitempty"`
	Like     string `json:"like,omitempty"`
	Provider string `json:"provider,omitempty"`
	// Window and MaxOutput are in tokens; 0: unknown.
	Window        int    `json:"window,omitempty"`
	WindowAssumed bool   `json:"window_assumed,omitempty"`
	WindowFrom    string `json:"window_from,omitempty"`
	MaxOutput     int    `json:"max_output,omitempty"`
	// Prices are the usual ones first; empty: unknown.
	Prices   []Prices `json:"prices,omitempty"`
	Caching  string   `json:"caching"`
	Thinking string   `json:"thinking"`
	// Where the facts in the catalogue come from, except those in Changes.
	Origin
	// Changes are the facts that the user's catalogue file has changed.
	Changes []Change `json:"changes,omitempty"`
	// API is the models API that was asked, and when.
	API     string     `json:"models_api,omitempty"`
	AskedAt *time.Time `json:"models_api_asked,omitempty"`
	// Entry is an entry for a file of the key catalog.
	Entry string `json:"catalog_entry"`
}

// Origin is where facts come from: their source, when they were looked up, and in
// which file and line they are.
type Origin struct {
	Date   string `json:"date,omitempty"`
	Source string `json:"source,omitempty"`
	Where  string `json:"where,omitempty"`
}

// Change is a change by an entry of a catalogue file.
type Change struct {
	Keys []string `json:"keys"` // of the entry, such as window
	Origin
}

// Prices are prices in US dollars per million tokens.
type Prices struct {
	When           string  `json:"when,omitempty"`  // empty: at other times
	Above          int     `json:"above,omitempty"` // for prompts of more tokens
	Input          float64 `json:"input"`
	CacheRead      float64 `json:"cache_read"`
	CacheWrite     float64 `json:"cache_write"`
	CacheWriteLong float64 `json:"cache_write_long"` // entries of the longer lifetime
	Output         float64 `json:"output"`
}

// The values of jsonModel.Known.
const (
	KnownCatalogue = "catalogue"
	KnownFamily    = "assumed"
	KnownNot       = "unknown"
)

// Describe returns what the sessions assume of a model.
func Describe(all *session.Sessions, name string, format furl.Format) Model {
	facts := all.Facts(name, format)
	m := &facts.Model
	out := Model{
		Name: name, Known: KnownNot, Like: m.Like, Provider: m.Provider, Window: m.Window, WindowAssumed: m.WindowAssumed, WindowFrom: facts.WindowFrom, MaxOutput: m.MaxOutput,
		Prices: pricesOf(m), Caching: cachingText(m), Thinking: thinkingText(m), Origin: Origin(facts.Entry.Origin), API: facts.Reported.From,
	}
	for _, c := range facts.Entry.Changes {
		out.Changes = append(out.Changes, Change{c.Keys, Origin(c.Origin)})
	}
	switch {
	case facts.Known:
		out.Known, out.ID = KnownCatalogue, m.ID
	case m.Like != "":
		out.Known = KnownFamily
	default:
		out.Caching, out.Thinking = "unknown", "unknown"
	}
	if !facts.Reported.At.IsZero() {
		out.AskedAt = &facts.Reported.At
	}
	out.Entry = catalogEntry(cmp.Or(out.ID, name), m)
	return out
}

func pricesOf(m *furl.Model) (list []Prices) {
	add := func(when string, above int, p furl.Prices) {
		if price.Known(p) {
			list = append(list, Prices{when, above, p.Input, p.CacheRead, p.CacheWrite, p.CacheWrite1h, p.Output})
		}
	}
	add("", 0, m.Prices)
	add("", m.LongAbove, m.LongPrices)
	for i := range m.TimedPrices {
		t := &m.TimedPrices[i]
		add(catalog.DescribeTimes(t), 0, t.Prices)
		add(catalog.DescribeTimes(t), m.LongAbove, t.LongPrices)
	}
	return list
}

func cachingText(m *furl.Model) string {
	c := &m.Caching
	if c.Lifetime == 0 {
		return "prompts are not cached"
	}
	how := "any shared beginning"
	if c.Explicit {
		how = "at the client's breakpoints"
	}
	out := fmt.Sprintf("%s, from %s tokens on, for %s", how, numbers.Thousands(c.MinPrefix), shortDuration(c.Lifetime))
	if long := price.LongLifetime(m); (c.Explicit || c.Extended > 0) && long > c.Lifetime {
		out += ", or for " + shortDuration(long) + " if the request asks for it"
	}
	return out
}

// shortDuration writes 5m0s as 5m.
func shortDuration(d time.Duration) string {
	s := d.String() // 30m0s, 12h0m0s
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func thinkingText(m *furl.Model) string {
	var parts []string
	if m.Thinking.Binds {
		parts = append(parts, "bound to the prompt before it, so furl leaves it out where that prompt has changed")
	}
	if m.Thinking.LastOnly {
		parts = append(parts, "only that since the last message of the user counts")
	}
	if m.Thinking.Required {
		parts = append(parts, "required at the start of the newest reply while tools are running")
	}
	if m.Thinking.Removable {
		parts = append(parts, "old thinking may be left out")
	}
	if len(parts) == 0 {
		return "stays as the client sends it"
	}
	return strings.Join(parts, "; ")
}

// catalogEntry returns an entry for a catalogue file with the facts that people correct
// most.
func catalogEntry(id string, m *furl.Model) string {
	var b strings.Builder
	fmt.Fprintf(&b, "models:\n  - id: %s\n", yamlWord(id))
	if m.Window > 0 {
		fmt.Fprintf(&b, "    window: %d\n", m.Window)
	} else {
		b.WriteString("    # window: 200000  # in tokens\n")
	}
	if m.MaxOutput > 0 {
		fmt.Fprintf(&b, "    max_output: %d\n", m.MaxOutput)
	}
	if !price.Known(m.Prices) {
		b.WriteString("    # prices: {input: 3, cache_read: 0.3, cache_write: 3.75, output: 15}  # dollars per million tokens\n")
	} else {
		fmt.Fprintf(&b, "    prices: %s\n", yamlPrices("", &m.Prices))
		if m.LongAbove > 0 {
			fmt.Fprintf(&b, "    long_prompts: %s\n", yamlPrices(fmt.Sprintf("above: %d, ", m.LongAbove), &m.LongPrices))
		}
	}
	for i := range m.TimedPrices {
		if i == 0 {
			b.WriteString("    timed_prices:\n")
		}
		t := &m.TimedPrices[i]
		long := ""
		if m.LongAbove > 0 {
			long = "long_prompts: " + yamlPrices("", &t.LongPrices) + ", "
		}
		fmt.Fprintf(&b, "      - %s\n", yamlPrices(catalog.TimesYAML(t)+long, &t.Prices))
	}
	th := &m.Thinking
	fmt.Fprintf(&b, "    thinking: {binds: %t, last_only: %t, removable: %t, required: %t}\n", th.Binds, th.LastOnly, th.Removable, th.Required)
	return b.String()
}

// yamlWord quotes a name that is not a plain word of YAML. Names come from requests.
func yamlWord(s string) string {
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_' || r == '/')
	})
	if plain && strings.Contains(s, "-") && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z') {
		return s
	}
	return fmt.Sprintf("%q", visible.Line(s))
}

func yamlPrices(before string, p *furl.Prices) string {
	return fmt.Sprintf("{%sinput: %v, cache_read: %v, cache_write: %v, cache_write_1h: %v, output: %v}", before, p.Input, p.CacheRead, p.CacheWrite, p.CacheWrite1h, p.Output)
}

// String returns prices on one line.
func (p *Prices) String() string {
	out := fmt.Sprintf("input %s, cache read %s, cache write %s", numbers.Money(p.Input), numbers.Money(p.CacheRead), numbers.Money(p.CacheWrite))
	if p.CacheWriteLong != p.CacheWrite {
		out += fmt.Sprintf(" (longer lifetime %s)", numbers.Money(p.CacheWriteLong))
	}
	out += ", output " + numbers.Money(p.Output)
	if p.Above > 0 {
		out += fmt.Sprintf("; prompts above %s tokens", numbers.Thousands(p.Above))
	}
	if p.When != "" {
		out += "; " + p.When
	}
	return out
}
