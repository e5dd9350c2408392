package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/recall/embeddings"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// storeFlags say which store a command works on.
type storeFlags struct {
	program program
	place   string
	config  string
	json    bool
	log     *slog.Logger     // hears of a database that is away; nil: nothing is logged
	notes   func() io.Writer // where to write notes for people, without a log
}

func (f *storeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.place, "store", "", "`file` or postgres:// address of the store (default $FURL_STORE, else what the configuration says)")
	addConfig(cmd.Flags(), &f.config)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	f.notes = cmd.ErrOrStderr
}

// where gives the place of the store: the flag, the environment, the
// configuration, the default.
func (f *storeFlags) where() (string, error) {
	place := cmp.Or(f.place, os.Getenv("FURL_STORE"))
	if place == "" {
		c, _, err := config.Load(f.config, f.program.policies)
		if err != nil {
			return "", err
		}
		if place, err = c.StorePlace(); err != nil {
			return "", err
		}
	}
	return place, checkPlace(place)
}

// checkPlace refuses the address of a database that furl does not know, which
// would be a strange name of a file. It may hold a password.
func checkPlace(place string) error {
	if scheme, _, address := strings.Cut(place, "://"); address && !isDatabase(place) {
		return fmt.Errorf("the store: a file or a postgres:// address is expected, not one that begins with %s://", scheme)
	}
	return nil
}

// isDatabase reports whether the place is an address and not a file.
func isDatabase(place string) bool {
	return strings.HasPrefix(place, "postgres://") || strings.HasPrefix(place, "postgresql://")
}

// open opens the store, making a file that does not exist.
func (f *storeFlags) open(ctx context.Context) (storage.Store, error) {
	place, err := f.where()
	if err != nil {
		return nil, err
	}
	var store storage.Store
	if isDatabase(place) {
		store, err = postgres.Open(ctx, place, &postgres.Options{Logger: f.log})
	} else {
		store, err = sqlite.Open(place, nil)
	}
	if err != nil {
		return nil, err
	}
	f.tellRenamed(store)
	return store, nil
}

// tellRenamed says which sessions have got another id as the store was opened.
func (f *storeFlags) tellRenamed(store storage.Store) {
	r, ok := store.(storage.Renamer)
	if !ok {
		return
	}
	for _, r := range r.Renamed() {
		if f.log != nil {
			f.log.Warn("a session was renamed: its id is reserved now", "was", r.Was, "is", r.Is)
			continue
		}
		if f.notes == nil {
			continue
		}
		fmt.Fprintf(f.notes(), "furl: note: session %s is now %s: the id %[1]s is reserved\n", r.Was, r.Is)
	}
}

// existing opens the store for a command that only makes sense on one that is
// there already.
func (f *storeFlags) existing(ctx context.Context) (storage.Store, error) {
	place, err := f.where()
	if err != nil {
		return nil, err
	}
	if !isDatabase(place) {
		if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no store at %s: furl import creates one from recordings", place)
		}
	}
	store, err := f.open(ctx)
	if err == nil || isDatabase(place) || errors.Is(err, record.ErrNewerFormat) {
		return store, err
	}
	// Somebody else's file, or one that is protected, can still be looked at;
	// what would change it says that it cannot.
	readable, err := sqlite.Open(place, &sqlite.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return readable, nil
}

// sessions gives the sessions of a store, with the policies and models of the
// configuration.
func (f *storeFlags) sessions(store storage.Store) (*session.Sessions, error) {
	c, file, err := config.Load(f.config, f.program.policies)
	if err != nil {
		return nil, err
	}
	o, err := f.sessionOptions(c, file)
	if err != nil {
		return nil, err
	}
	o.LastWindow, o.MaxMemory = true, sessionMemory
	if _, ok := store.(*inmem.Store); ok {
		o.MaxMemory = math.MaxInt64 // its recording has been read within limits
	}
	if o.Vectors, err = vectorsOf(store, c); err != nil {
		return nil, err
	}
	return session.New(store, o)
}

// vectorsOf gives what finds by meaning, nil where the configuration names no
// endpoint.
func vectorsOf(store storage.Store, c *config.Config) (*recall.Vectors, error) {
	e := c.Embeddings
	if e.URL == "" {
		return nil, nil
	}
	key := ""
	if e.KeyEnv != "" {
		if key = os.Getenv(e.KeyEnv); key == "" {
			return nil, fmt.Errorf("embeddings.key_env: $%s holds no key", e.KeyEnv)
		}
	}
	return recall.NewVectors(store, embeddings.New(e.URL, e.Model, &embeddings.Options{Key: key}), nil)
}

// sessionOptions is what a configuration says about sessions.
func (f *storeFlags) sessionOptions(c *config.Config, file string) (*session.Options, error) {
	o := &session.Options{Policy: c.Policy, Policies: c.SetByModel(), Settings: c.Settings()}
	if c.Catalog != "" {
		name := c.Catalog
		if !filepath.IsAbs(name) { // it is beside the file
			name = filepath.Join(filepath.Dir(file), name)
		}
		var err error
		if o.Catalog, err = catalog.Load(name); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// closing closes a store at the end of a command, whose error it may become.
func closing(store storage.Store, err *error) {
	if e := store.Close(); e != nil && *err == nil {
		*err = fmt.Errorf("close the store: %w", e)
	}
}

// names reports whether words name a session: the beginning of its id, or part
// of its title, whatever the case.
func names(info storage.SessionInfo, words string) bool {
	return strings.HasPrefix(string(info.Session), words) ||
		strings.Contains(strings.ToLower(info.Title), strings.ToLower(words))
}

// atMost refuses more than n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return badUsage("%s takes %s at most, not %d; quote words that belong together", cmd.CommandPath(), plural(n, "argument"), len(args))
		}
		return nil
	}
}

// completeSessions offers the ids of the store's sessions, with their titles,
// and files where the command takes one.
func completeSessions(f *storeFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		files := cobra.ShellCompDirectiveNoFileComp
		if strings.Contains(cmd.Use, "|FILE") {
			files = cobra.ShellCompDirectiveDefault
		}
		if len(args) > 0 && !strings.Contains(cmd.Use, "[SESSION]...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		store, err := f.existing(cmd.Context())
		if err != nil {
			return nil, files
		}
		defer store.Close()
		var ids []string
		if strings.HasPrefix(session.Latest, begun) {
			ids = append(ids, session.Latest+"\tthe newest")
		}
		for info, err := range store.Sessions(cmd.Context(), localTenant, storage.SessionQuery{Prefix: begun, Limit: 200}) {
			if err != nil {
				break
			}
			ids = append(ids, string(info.Session)+"\t"+truncate(info.Title, 60))
		}
		return ids, files
	}
}
