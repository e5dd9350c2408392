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

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/models"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/workspace"
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
		RunE: func(cmd *cobra.Command, args []string) error { return listModels(&f, cmd, args) },
	}
	f.Add(cmd)
	return cmd
}

// listModels is furl models.
func listModels(f *cmdline.StoreFlags, cmd *cobra.Command, args []string) (err error) {
	store, err := maybeExisting(f, cmd.Context())
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
	seen, err := models.Seen(cmd.Context(), store)
	if err != nil {
		return err
	}
	names := args
	if len(names) == 0 {
		names = models.Listed(cmp.Or(o.Catalog, catalog.Default()), seen)
	}
	list := make([]models.Model, len(names))
	for i, name := range names {
		list[i] = models.Describe(all, name, seen[name])
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
			printModel(&list[i], w)
		}
	}
	return nil
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

func printModels(w io.Writer, list []models.Model) {
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
		case m.Known == models.KnownFamily:
			from = "like " + m.Like
		case m.Known == models.KnownNot:
			from = models.KnownNot
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
	if slices.ContainsFunc(list, func(m models.Model) bool { return m.WindowAssumed }) {
		cmdline.PrintWrapped(w, "* assumed from similar models.", cmdline.Width(w))
	}
	if timed {
		cmdline.PrintWrapped(w, "+ other prices for long prompts, or at some times: furl models MODEL.", cmdline.Width(w))
	}
	cmdline.PrintWrapped(w, "Prices are US dollars per million tokens.", cmdline.Width(w))
}

func printModel(m *models.Model, w io.Writer) {
	cols := cmdline.Width(w)
	line := func(name, text string) {
		cmdline.PrintWrapped(w, fmt.Sprintf("%-10s%s", name, cmdline.Label(text)), cols)
	}
	head := m.Name
	switch m.Known {
	case models.KnownCatalogue:
		if m.ID != m.Name {
			head += " is " + m.ID
		}
	case models.KnownFamily:
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
		source := catalog.Origin(m.Origin).String()
		if m.Known == models.KnownFamily {
			source = m.Like + ": " + source
		}
		line("source", source)
	}
	for _, c := range m.Changes {
		line("changed", strings.Join(c.Keys, ", ")+": "+catalog.Origin(c.Origin).String())
	}
	if m.AskedAt != nil {
		line("asked", fmt.Sprintf("%s at %s", m.API, m.AskedAt.Format("2006-01-02 15:04 MST")))
	}
	cmdline.PrintWrapped(w, "To correct this, put what differs into a file, and its name into the configuration (catalog: models.yaml):", cols)
	for l := range strings.Lines(m.Entry) {
		fmt.Fprint(w, "  "+l)
	}
}
