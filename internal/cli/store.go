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

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/recall/embeddings"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// storeFlags are the flags of commands that use a store.
type storeFlags struct {
	program program
	place   string
	config  string
	tenant  string // whose sessions, as on the command line; "": local
	json    bool
	log     *slog.Logger     // for connection errors of a database; nil: nothing is logged
	notes   func() io.Writer // where to write notes without a log
}

func (f *storeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.place, "store", "", "`file` or postgres:// URL of the store (default $FURL_STORE, else that of the configuration)")
	addConfig(cmd.Flags(), &f.config)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	f.notes = cmd.ErrOrStderr
}

// given returns the flags that choose the store and the configuration as they were given
// on the command line, for another command of furl.
func (f *storeFlags) given() (args []string) {
	if f.config != "" {
		args = append(args, "--config="+f.config)
	}
	if f.place != "" {
		args = append(args, "--store="+f.place)
	}
	return args
}

// addTenant adds the flag for the sessions of a tenant.
func (f *storeFlags) addTenant(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.tenant, "tenant", localName, "use the sessions of this `tenant` of a gateway (see furl tenants)")
}

// whose returns the tenant that the command line names.
func (f *storeFlags) whose(ctx context.Context, store storage.Store) (furl.Tenant, error) {
	tenant, err := tenantNamed(ctx, store, cmp.Or(f.tenant, localName))
	if err == nil && f.tenant != "" {
		f.program.audited.foundTenant(tenant)
	}
	return tenant, err
}

// where returns the place of the store: that of the flag, the environment, the
// configuration, or the default.
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

// checkPlace returns an error for the URL of an unsupported database. The error does
// not contain the URL, which may have a password.
func checkPlace(place string) error {
	if scheme, _, address := strings.Cut(place, "://"); address && !isDatabase(place) {
		return fmt.Errorf("invalid store %s://…: expected a file or a postgres:// URL", scheme)
	}
	return nil
}

// isDatabase reports whether the place is a URL and not a file.
func isDatabase(place string) bool {
	return strings.HasPrefix(place, "postgres://") || strings.HasPrefix(place, "postgresql://")
}

// open opens the store. It creates a file that does not exist.
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
	return f.encrypted(store)
}

// encrypted returns the store with the encryption of the configuration. Without a
// master key it still returns a clear error for what is encrypted.
func (f *storeFlags) encrypted(store storage.Store) (_ storage.Store, err error) {
	defer func() {
		if err != nil {
			store.Close()
		}
	}()
	inner, ok := store.(encrypted.Inner)
	if !ok {
		return nil, errors.New("this store does not support encryption")
	}
	master, err := f.master()
	if err != nil {
		return nil, err
	}
	return encrypted.New(inner, master), nil
}

// master returns the master keys of the configuration, nil if it has none.
func (f *storeFlags) master() (encrypted.Master, error) {
	c, file, err := config.Load(f.config, f.program.policies)
	if err != nil {
		return nil, err
	}
	return masterOf(c, file)
}

// tellRenamed reports the sessions that were renamed when the store was opened.
func (f *storeFlags) tellRenamed(store storage.Store) {
	r, ok := store.(storage.Renamer)
	if !ok {
		return
	}
	for _, r := range r.Renamed() {
		if f.log != nil {
			f.log.Warn("session renamed because its id is reserved", "was", r.Was, "is", r.Is)
			continue
		}
		if f.notes == nil {
			continue
		}
		fmt.Fprintf(f.notes(), "furl: note: session %s is now %s: the id %[1]s is reserved\n", r.Was, r.Is)
	}
}

// existing opens the store, and returns an error if it does not exist.
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
	// A file without write permission can still be read. Commands that write
	// return an error later.
	readable, err := sqlite.Open(place, &sqlite.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return f.encrypted(readable)
}

// sessions returns the sessions of a store, with the policies and models of the
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
	// A session of any size can be shown, exported and deleted: a command opens one or few.
	o.LastWindow, o.MaxMemory = true, math.MaxInt64
	if o.Vectors, err = vectorsOf(store, c); err != nil {
		return nil, err
	}
	return session.New(store, o)
}

// vectorsOf returns the index of embeddings, or nil if the configuration has no
// embeddings.
func vectorsOf(store storage.Store, c *config.Config) (*recall.Vectors, error) {
	e := c.Embeddings
	if e.URL == "" {
		return nil, nil
	}
	key := ""
	if e.KeyEnv != "" {
		if key = os.Getenv(e.KeyEnv); key == "" {
			return nil, fmt.Errorf("embeddings.key_env: $%s has no key; set it where furl runs", e.KeyEnv)
		}
	}
	return recall.NewVectors(store, embeddings.New(e.URL, e.Model, &embeddings.Options{Key: key}), nil)
}

// sessionOptions returns the session options of a configuration.
func (f *storeFlags) sessionOptions(c *config.Config, file string) (*session.Options, error) {
	o := &session.Options{Policy: c.Policy, Policies: c.SetByModel(), Settings: c.Settings(), AskFirst: c.AskFirst, Commands: c.Gateway.Commands, Reported: reported(c), Deleted: deleteCopies}
	if c.Catalog != "" {
		name := c.Catalog
		if !filepath.IsAbs(name) { // relative to the configuration file
			name = filepath.Join(filepath.Dir(file), name)
		}
		own, err := catalog.Load(name)
		if err != nil {
			return nil, err
		}
		if o.Catalog, err = catalog.Default().Merge(own); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// closing closes a store at the end of a command. If the command had no error, the
// error of closing becomes its error.
func closing(store storage.Store, err *error) {
	if e := store.Close(); e != nil && *err == nil {
		*err = fmt.Errorf("close the store: %w", e)
	}
}

// names reports whether the id of a session or the agent's own id of it starts with
// words, or its title contains them, ignoring case.
func names(info storage.SessionInfo, words string) bool {
	return strings.HasPrefix(string(info.Session), words) || strings.HasPrefix(agents.OwnID(info.Hint, words), words) ||
		strings.Contains(strings.ToLower(info.Title), strings.ToLower(words))
}

// completeSessions completes ids of sessions, with their titles, and file names for
// commands that take files.
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
		whose, err := f.whose(cmd.Context(), store)
		if err != nil {
			return nil, files
		}
		var ids []string
		if strings.HasPrefix(session.Latest, begun) {
			ids = append(ids, session.Latest+"\tthe newest session")
		}
		for info, err := range store.Sessions(cmd.Context(), whose, storage.SessionQuery{Prefix: begun, Limit: 200}) {
			if err != nil {
				break
			}
			ids = append(ids, string(info.Session)+"\t"+truncate(info.Title, 60))
		}
		return ids, files
	}
}
