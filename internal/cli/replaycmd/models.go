package replaycmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// ModelsCommand returns furl models.
func ModelsCommand(p cmdline.Program) *cobra.Command {
	f := cmdline.NewStoreFlags(p)
	cmd := &cobra.Command{
		Use:   "models [MODEL…]",
		Short: "Show what furl knows and assumes about models",
		Long: `Shows the context window, the prices and the rules of models, and where each comes
from: the configuration, a catalogue file of your own (key catalog), the provider's
models API, furl's catalogue, or similar models if the catalogue lacks a model. For
the models that you name, it also prints an entry for a catalogue file, with which you
can correct them. Without names, it lists the models of the store and of the catalogue.`,
		Example: "  furl models\n  furl models claude-opus-5-5 my-own-model\n  furl models deepseek-flash --json",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return catalog.Default().Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			store, err := maybeExisting(&f, cmd.Context())
			if err != nil {
				return err
			}
			defer workspace.CloseStore(store, &err)
			c, file, err := config.Load(f.Config, f.Program.Policies)
			if err != nil {
				return err
			}
			o, err := f.SessionOptions(c, file)
			if err != nil {
				return err
			}
			all, err := session.New(store, o)
			if err != nil {
				return err
			}
			seen, err := modelsSeen(cmd.Context(), store)
			if err != nil {
				return err
			}
			names := args
			if len(names) == 0 {
				names = listedModels(cmp.Or(o.Catalog, catalog.Default()), seen)
			}
			list := make([]jsonModel, len(names))
			for i, name := range names {
				list[i] = describeModel(all, name, seen[name])
			}
			w := cmd.OutOrStdout()
			switch {
			case f.Json:
				return cmdline.PrintJSON(w, map[string]any{"models": list})
			case len(args) == 0:
				printModels(w, list)
			default:
				for i := range list {
					if i > 0 {
						fmt.Fprintln(w)
					}
					list[i].print(w)
				}
			}
			return nil
		},
	}
	f.Add(cmd)
	return cmd
}

// maybeExisting opens the store, or an empty one if it does not exist.
func maybeExisting(f *cmdline.StoreFlags, ctx context.Context) (storage.Store, error) {
	place, err := f.Where()
	if err != nil {
		return nil, err
	}
	if !workspace.IsDatabase(place) {
		if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) {
			return inmem.New(), nil
		}
	}
	return f.Existing(ctx)
}

// modelsSeen returns the models of the sessions of all tenants with the formats of their
// requests.
func modelsSeen(ctx context.Context, store storage.Store) (map[string]furl.Format, error) {
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

// listedModels returns the models of the store that the catalogue lacks, and then those of
// the catalogue.
func listedModels(c *catalog.Catalog, seen map[string]furl.Format) []string {
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

// jsonModel is a model of furl models --json.
type jsonModel struct {
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
	Prices   []jsonPrices `json:"prices,omitempty"`
	Caching  string       `json:"caching"`
	Thinking string       `json:"thinking"`
	// Where the facts in the catalogue come from, except those in Changes.
	jsonOrigin
	// Changes are the facts that the user's catalogue file has changed.
	Changes []jsonChange `json:"changes,omitempty"`
	// API is the models API that was asked, and when.
	API     string     `json:"models_api,omitempty"`
	AskedAt *time.Time `json:"models_api_asked,omitempty"`
	// Entry is an entry for a file of the key catalog.
	Entry string `json:"catalog_entry"`
}

// jsonOrigin is where facts come from: their source, when they were looked up, and in
// which file and line they are.
type jsonOrigin struct {
	Date   string `json:"date,omitempty"`
	Source string `json:"source,omitempty"`
	Where  string `json:"where,omitempty"`
}

// jsonChange is a change by an entry of a catalogue file.
type jsonChange struct {
	Keys []string `json:"keys"` // of the entry, such as window
	jsonOrigin
}

// jsonPrices are prices in US dollars per million tokens.
type jsonPrices struct {
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
	knownCatalogue = "catalogue"
	knownFamily    = "assumed"
	knownNot       = "unknown"
)

func describeModel(all *session.Sessions, name string, format furl.Format) jsonModel {
	facts := all.Facts(name, format)
	m := &facts.Model
	out := jsonModel{
		Name: name, Known: knownNot, Like: m.Like, Provider: m.Provider, Window: m.Window, WindowAssumed: m.WindowAssumed, WindowFrom: facts.WindowFrom, MaxOutput: m.MaxOutput,
		Prices: pricesOf(m), Caching: cachingText(m), Thinking: thinkingText(m), jsonOrigin: jsonOrigin(facts.Entry.Origin), API: facts.Reported.From,
	}
	for _, c := range facts.Entry.Changes {
		out.Changes = append(out.Changes, jsonChange{c.Keys, jsonOrigin(c.Origin)})
	}
	switch {
	case facts.Known:
		out.Known, out.ID = knownCatalogue, m.ID
	case m.Like != "":
		out.Known = knownFamily
	default:
		out.Caching, out.Thinking = "unknown", "unknown"
	}
	if !facts.Reported.At.IsZero() {
		out.AskedAt = &facts.Reported.At
	}
	out.Entry = catalogEntry(cmp.Or(out.ID, name), m)
	return out
}

func pricesOf(m *furl.Model) (list []jsonPrices) {
	add := func(when string, above int, p furl.Prices) {
		if price.Known(p) {
			list = append(list, jsonPrices{when, above, p.Input, p.CacheRead, p.CacheWrite, p.CacheWrite1h, p.Output})
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
	return fmt.Sprintf("%q", cmdline.Label(s))
}

func yamlPrices(before string, p *furl.Prices) string {
	return fmt.Sprintf("{%sinput: %v, cache_read: %v, cache_write: %v, cache_write_1h: %v, output: %v}", before, p.Input, p.CacheRead, p.CacheWrite, p.CacheWrite1h, p.Output)
}

func printModels(w io.Writer, list []jsonModel) {
	t := cmdline.NewTable(w, cmdline.Text("model"), cmdline.Number("window"), cmdline.Number("max output"), cmdline.Number("input"), cmdline.Number("cache read"), cmdline.Number("output"), cmdline.Text("known from"))
	timed := false
	for i := range list {
		m := &list[i]
		window, input, read, output := "unknown", "", "", ""
		if m.Window > 0 {
			window = numbers.Thousands(m.Window)
		}
		if m.WindowAssumed {
			window += " *"
		}
		if len(m.Prices) > 0 {
			p := &m.Prices[0]
			input, read, output = numbers.Money(p.Input), numbers.Money(p.CacheRead), numbers.Money(p.Output)
			if len(m.Prices) > 1 {
				input, timed = input+" +", true
			}
		}
		from := m.Date
		switch {
		case m.Known == knownFamily:
			from = "like " + m.Like
		case m.Known == knownNot:
			from = knownNot
		case len(m.Changes) > 0:
			from = m.Changes[len(m.Changes)-1].Where
		case m.Date == "":
			from = m.Where
		}
		maxOutput := ""
		if m.MaxOutput > 0 {
			maxOutput = numbers.Thousands(m.MaxOutput)
		}
		t.Add(m.Name, window, maxOutput, input, read, output, from)
	}
	t.Print()
	fmt.Fprintln(w)
	if slices.ContainsFunc(list, func(m jsonModel) bool { return m.WindowAssumed }) {
		cmdline.PrintWrapped(w, "* assumed from similar models.", cmdline.Width(w))
	}
	if timed {
		cmdline.PrintWrapped(w, "+ other prices for long prompts, or at some times: furl models MODEL.", cmdline.Width(w))
	}
	cmdline.PrintWrapped(w, "Prices are US dollars per million tokens.", cmdline.Width(w))
}

func (m *jsonModel) print(w io.Writer) {
	cols := cmdline.Width(w)
	line := func(name, text string) {
		cmdline.PrintWrapped(w, fmt.Sprintf("%-10s%s", name, cmdline.Label(text)), cols)
	}
	head := m.Name
	switch m.Known {
	case knownCatalogue:
		if m.ID != m.Name {
			head += " is " + m.ID
		}
	case knownFamily:
		head += " is not in the catalogue: assumed to be like " + m.Like
	default:
		head += " is not in the catalogue, and of no known family: nothing is hidden until its window is known"
	}
	cmdline.PrintWrapped(w, cmdline.Label(head), cols)
	if m.Window > 0 {
		line("window", fmt.Sprintf("%s tokens; from: %s", numbers.Thousands(m.Window), m.WindowFrom))
	} else {
		line("window", "unknown")
	}
	if m.MaxOutput > 0 {
		line("output", fmt.Sprintf("up to %s tokens", numbers.Thousands(m.MaxOutput)))
	}
	if len(m.Prices) == 0 {
		line("prices", "unknown")
	}
	for i := range m.Prices {
		p, name := &m.Prices[i], "prices"
		if i > 0 {
			name = ""
		}
		line(name, p.String())
	}
	line("caching", m.Caching)
	line("thinking", m.Thinking)
	if m.Source != "" {
		source := catalog.Origin(m.jsonOrigin).String()
		if m.Known == knownFamily {
			source = m.Like + ": " + source
		}
		line("source", source)
	}
	for _, c := range m.Changes {
		line("changed", strings.Join(c.Keys, ", ")+": "+catalog.Origin(c.jsonOrigin).String())
	}
	if m.AskedAt != nil {
		line("asked", fmt.Sprintf("%s at %s", m.API, m.AskedAt.Format("2006-01-02 15:04 MST")))
	}
	cmdline.PrintWrapped(w, "To correct this, put what differs into a file, and its name into the configuration (catalog: models.yaml):", cols)
	for l := range strings.Lines(m.Entry) {
		fmt.Fprint(w, "  "+l)
	}
}

// String returns prices on one line.
func (p *jsonPrices) String() string {
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
