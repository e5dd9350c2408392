package storecmd

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// searchFlags are the flags of furl search.
type searchFlags struct {
	cmdline.StoreFlags
	session             string
	hidden              bool
	scope               string
	roles, tools, kinds []string
	since, before       string
	limit, excerpt      int
	context             bool
}

var searchScopes = map[string]session.Scope{
	"hidden": session.Hidden, "visible": session.Visible, "path": session.Path, "branches": session.OffPath, "everywhere": session.Everywhere,
}

// SearchCommand returns furl search.
func SearchCommand(p cmdline.Program) *cobra.Command {
	f := searchFlags{StoreFlags: cmdline.NewStoreFlags(p)}
	cmd := &cobra.Command{
		Use:   "search [SESSION|FILE --] WORDS...",
		Short: "Search sessions for words, identifiers and paths",
		Long: `Finds text, tool calls and results, best matches first. It matches words,
identifiers and paths, whole or by their parts. Each hit has a handle for furl get,
which prints the original.

It searches all of each session in the store: what the model still sees, what is
hidden, and other branches. Hits that the model no longer sees are marked hidden or
other branch. With a session or a file before "--", it searches only that.`,
		Example: `  furl search rate limit
  furl search parseConfig --tool Read --since 7d
  furl search latest --hidden -- config.go
  furl search session.jsonl --kind result -- exit status`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() == 1 {
				f.session, args = args[0], args[1:]
			}
			if strings.TrimSpace(strings.Join(args, " ")) == "" {
				return cmdline.BadUsage("empty search: expected words to find")
			}
			return cmdline.Positive(cmd, "limit", f.limit)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() == 1 {
				args = args[1:]
			}
			return f.run(cmd, args)
		},
	}
	f.Add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.session, "session", "", "search only this `session`: id, its beginning, title, latest, or a file")
	fl.BoolVar(&f.hidden, "hidden", false, "search only what is hidden from the model")
	fl.StringVar(&f.scope, "in", "", "`part` of each session: hidden, visible, path (both), branches (abandoned ones), everywhere (default everywhere)")
	fl.StringSliceVar(&f.roles, "role", nil, "only messages of these `roles`: user, assistant, tool, system")
	fl.StringSliceVar(&f.tools, "tool", nil, "only calls of these `tools` and their results")
	fl.StringSliceVar(&f.kinds, "kind", nil, "only blocks of these `kinds`: text, thinking, call, result")
	fl.StringVar(&f.since, "since", "", "only records since this `time`, such as 7d or 2026-01-31")
	fl.StringVar(&f.before, "before", "", "only records before this `time`")
	fl.IntVar(&f.limit, "limit", 10, "at most this `number` of hits")
	fl.BoolVarP(&f.context, "context", "C", false, "print the messages before and after each hit")
	fl.IntVar(&f.excerpt, "excerpt", 240, "about this `number` of characters for each hit")
	cmdline.Complete(cmd, "in", func() []string { return []string{"hidden", "visible", "path", "branches", "everywhere"} })
	cmdline.Complete(cmd, "role", func() []string { return []string{"user", "assistant", "tool", "system"} })
	cmdline.Complete(cmd, "kind", func() []string { return []string{"text", "thinking", "call", "result", "image", "document"} })
	_ = cmd.RegisterFlagCompletionFunc("session", func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		ids, _ := cmdline.CompleteSessions(&f.StoreFlags)(cmd, nil, begun)
		return ids, cobra.ShellCompDirectiveDefault
	})
	return cmd
}

func (f *searchFlags) run(cmd *cobra.Command, args []string) (err error) {
	o, err := f.options(time.Now())
	if err != nil {
		return err
	}
	in, err := f.scopeOf(cmd)
	if err != nil {
		return err
	}
	if !in.shared {
		defer workspace.CloseStore(in.store, &err)
	}
	query := strings.Join(args, " ")
	hits, err := in.search(cmd.Context(), query, o)
	if err != nil {
		return err
	}
	if f.Json {
		return cmdline.PrintJSON(cmd.OutOrStdout(), map[string]any{"hits": append([]session.Hit{}, hits...)})
	}
	if len(hits) == 0 {
		return f.printNone(cmd, query, args[0], in)
	}
	return in.print(cmd.Context(), cmd.OutOrStdout(), query, hits)
}

// searched is what a search covers: all sessions of a store or of a recording's file,
// or one session.
type searched struct {
	all   *session.Sessions
	store storage.Store
	one   *session.Session // nil: all
	file  string           // name of the recording
	// shared reports that a chat has the store open.
	shared bool
}

func (s *searched) search(ctx context.Context, query string, o session.SearchOptions) ([]session.Hit, error) {
	if s.one != nil {
		return s.one.Search(ctx, query, o)
	}
	return s.all.Search(ctx, query, o)
}

// scopeOf opens the store or the file that is searched.
func (f *searchFlags) scopeOf(cmd *cobra.Command) (*searched, error) {
	switch {
	case f.session == "":
		store, err := f.Existing(cmd.Context())
		if err != nil {
			return nil, err
		}
		all, err := f.Sessions(store)
		if err != nil {
			return nil, errors.Join(err, store.Close())
		}
		return &searched{all: all, store: store}, nil
	case f.Place == "" && cmdline.IsRecording(f.session):
		return openRecordings(cmd, f.session)
	}
	t, err := f.Target(cmd, f.session, "")
	if err != nil {
		return nil, err
	}
	return &searched{all: t.All, store: t.Store, one: t.Session, shared: t.Shared}, nil
}

// openRecordings reads all sessions of a file into a temporary store in memory.
func openRecordings(cmd *cobra.Command, name string) (*searched, error) {
	rec, err := cmdline.ReadRecording(cmd, name)
	if err != nil {
		return nil, err
	}
	if _, err := recorded.Pick(rec, name, ""); err != nil {
		return nil, err
	}
	store := inmem.New()
	im := &recorded.Importer{Store: store}
	for _, s := range rec.Sessions {
		if _, err := im.Session(cmd.Context(), rec, s); err != nil {
			return nil, err
		}
	}
	all, err := session.New(store, &session.Options{MaxMemory: math.MaxInt64}) // reading the recording had a limit already
	if err != nil {
		return nil, err
	}
	in := &searched{all: all, store: store, file: name}
	if len(rec.Sessions) == 1 {
		in.one, err = all.Find(cmd.Context(), session.Latest)
	}
	return in, err
}

func (f *searchFlags) options(now time.Time) (o session.SearchOptions, err error) {
	o = session.SearchOptions{Limit: f.limit, Excerpt: f.excerpt, Tools: f.tools, Scope: session.Everywhere}
	if f.context {
		o.Context = f.excerpt
	}
	if f.limit < 1 || f.limit > 1000 {
		return o, cmdline.BadUsage("invalid --limit %d: expected a number from 1 to 1000", f.limit)
	}
	if f.hidden && f.scope != "" && f.scope != "hidden" {
		return o, cmdline.BadUsage("--hidden and --in %s exclude each other", f.scope)
	}
	if f.hidden {
		f.scope = "hidden"
	}
	if f.scope != "" {
		scope, ok := searchScopes[f.scope]
		if !ok {
			return o, cmdline.BadUsage("invalid --in %q: choose hidden, visible, path, branches or everywhere", f.scope)
		}
		o.Scope = scope
	}
	for _, r := range f.roles {
		if !slices.Contains([]string{"user", "assistant", "tool", "system", "developer"}, r) {
			return o, cmdline.BadUsage("invalid --role %q: choose from user, assistant, tool, system, developer", r)
		}
		o.Roles = append(o.Roles, furl.Role(r))
	}
	for _, name := range f.kinds {
		k := furl.KindText
		for k.String() != name {
			if k++; k > furl.KindOpaque {
				return o, cmdline.BadUsage("invalid --kind %q: choose from text, thinking, call, result, image, document, opaque", name)
			}
		}
		o.Kinds = append(o.Kinds, k)
	}
	if o.Since, err = parseTime(f.since, now); err != nil {
		return o, cmdline.BadUsage("--since %s: %w", f.since, err)
	}
	if o.Before, err = parseTime(f.before, now); err != nil {
		return o, cmdline.BadUsage("--before %s: %w", f.before, err)
	}
	return o, nil
}

// parseTime parses a time, or an age before now.
func parseTime(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if age, err := numbers.ParseAge(s); err == nil {
		return now.Add(-age), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("expected an age such as 7d, or a time such as 2026-01-31 or 2026-01-31T15:04:05Z")
}
