package cmdline

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

// StoreFlags are the flags of commands that use a store.
type StoreFlags struct {
	Program Program
	Place   string
	Config  string
	Tenant  string // whose sessions, as on the command line; "": local
	Json    bool
	Log     *slog.Logger     // for connection errors of a database; nil: nothing is logged
	notes   func() io.Writer // where to write notes without a log
}

// Add adds the flags to a command.
func (f *StoreFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Place, "store", "", "`file` or postgres:// URL of the store (default $FURL_STORE, else that of the configuration)")
	AddConfig(cmd.Flags(), &f.Config)
	cmd.Flags().BoolVar(&f.Json, "json", false, "print JSON")
	f.notes = cmd.ErrOrStderr
}

// Given returns the flags that choose the store and the configuration as they were given
// on the command line, for another command of furl.
func (f *StoreFlags) Given() (args []string) {
	if f.Config != "" {
		args = append(args, "--config="+f.Config)
	}
	if f.Place != "" {
		args = append(args, "--store="+f.Place)
	}
	return args
}

// AddTenant adds the flag for the sessions of a tenant.
func (f *StoreFlags) AddTenant(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Tenant, "tenant", LocalName, "use the sessions of this `tenant` of a gateway (see furl tenants)")
}

// Whose returns the tenant that the command line names.
func (f *StoreFlags) Whose(ctx context.Context, store storage.Store) (furl.Tenant, error) {
	tenant, err := TenantNamed(ctx, store, cmp.Or(f.Tenant, LocalName))
	if err == nil && f.Tenant != "" {
		f.Program.Audited.FoundTenant(tenant)
	}
	return tenant, err
}

// Where returns the place of the store: that of the flag, the environment, the
// configuration, or the default.
func (f *StoreFlags) Where() (string, error) {
	place := cmp.Or(f.Place, os.Getenv("FURL_STORE"))
	if place == "" {
		c, _, err := config.Load(f.Config, f.Program.Policies)
		if err != nil {
			return "", err
		}
		if place, err = c.StorePlace(); err != nil {
			return "", err
		}
	}
	return place, CheckPlace(place)
}

// CheckPlace returns an error for the URL of an unsupported database. The error does
// not contain the URL, which may have a password.
func CheckPlace(place string) error {
	if scheme, _, address := strings.Cut(place, "://"); address && !IsDatabase(place) {
		return fmt.Errorf("invalid store %s://…: expected a file or a postgres:// URL", scheme)
	}
	return nil
}

// IsDatabase reports whether the place is a URL and not a file.
func IsDatabase(place string) bool {
	return strings.HasPrefix(place, "postgres://") || strings.HasPrefix(place, "postgresql://")
}

// Open opens the store. It creates a file that does not exist.
func (f *StoreFlags) Open(ctx context.Context) (storage.Store, error) {
	place, err := f.Where()
	if err != nil {
		return nil, err
	}
	var store storage.Store
	if IsDatabase(place) {
		store, err = postgres.Open(ctx, place, &postgres.Options{Logger: f.Log})
	} else {
		store, err = sqlite.Open(place, nil)
	}
	if err != nil {
		return nil, err
	}
	f.tellRenamed(store)
	return f.Encrypted(store)
}

// Encrypted returns the store with the encryption of the configuration. Without a
// master key it still returns a clear error for what is encrypted.
func (f *StoreFlags) Encrypted(store storage.Store) (_ storage.Store, err error) {
	defer func() {
		if err != nil {
			store.Close()
		}
	}()
	inner, ok := store.(encrypted.Inner)
	if !ok {
		return nil, errors.New("this store does not support encryption")
	}
	master, err := f.Master()
	if err != nil {
		return nil, err
	}
	return encrypted.New(inner, master), nil
}

// Master returns the master keys of the configuration, nil if it has none.
func (f *StoreFlags) Master() (encrypted.Master, error) {
	c, file, err := config.Load(f.Config, f.Program.Policies)
	if err != nil {
		return nil, err
	}
	return masterOf(c, file)
}

// tellRenamed reports the sessions that were renamed when the store was opened.
func (f *StoreFlags) tellRenamed(store storage.Store) {
	r, ok := store.(storage.Renamer)
	if !ok {
		return
	}
	for _, r := range r.Renamed() {
		if f.Log != nil {
			f.Log.Warn("session renamed because its id is reserved", "was", r.Was, "is", r.Is)
			continue
		}
		if f.notes == nil {
			continue
		}
		fmt.Fprintf(f.notes(), "furl: note: session %s is now %s: the id %[1]s is reserved\n", r.Was, r.Is)
	}
}

// Existing opens the store, and returns an error if it does not exist.
func (f *StoreFlags) Existing(ctx context.Context) (storage.Store, error) {
	place, err := f.Where()
	if err != nil {
		return nil, err
	}
	if !IsDatabase(place) {
		if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no store at %s: furl import creates one from recordings", place)
		}
	}
	store, err := f.Open(ctx)
	if err == nil || IsDatabase(place) || errors.Is(err, record.ErrNewerFormat) {
		return store, err
	}
	// A file without write permission can still be read. Commands that write
	// return an error later.
	readable, err := sqlite.Open(place, &sqlite.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return f.Encrypted(readable)
}

// Sessions returns the sessions of a store, with the policies and models of the
// configuration.
func (f *StoreFlags) Sessions(store storage.Store) (*session.Sessions, error) {
	c, file, err := config.Load(f.Config, f.Program.Policies)
	if err != nil {
		return nil, err
	}
	o, err := f.SessionOptions(c, file)
	if err != nil {
		return nil, err
	}
	// A session of any size can be shown, exported and deleted: a command opens one or few.
	o.LastWindow, o.MaxMemory = true, math.MaxInt64
	if o.Vectors, err = VectorsOf(store, c); err != nil {
		return nil, err
	}
	return session.New(store, o)
}

// VectorsOf returns the index of embeddings, or nil if the configuration has no
// embeddings.
func VectorsOf(store storage.Store, c *config.Config) (*recall.Vectors, error) {
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

// SessionOptions returns the session options of a configuration.
func (f *StoreFlags) SessionOptions(c *config.Config, file string) (*session.Options, error) {
	o := &session.Options{Policy: c.Policy, Policies: c.SetByModel(), Settings: c.Settings(), AskFirst: c.AskFirst, Commands: c.Gateway.Commands, Reported: reported(c), Deleted: DeleteCopies}
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

// CloseStore closes a store at the end of a command. If the command had no error, the
// error of closing becomes its error.
func CloseStore(store storage.Store, err *error) {
	if e := store.Close(); e != nil && *err == nil {
		*err = fmt.Errorf("close the store: %w", e)
	}
}

// NameMatches reports whether the id of a session or the agent's own id of it starts with
// words, or its title contains them, ignoring case.
func NameMatches(info storage.SessionInfo, words string) bool {
	return strings.HasPrefix(string(info.Session), words) || strings.HasPrefix(agents.OwnID(info.Hint, words), words) ||
		strings.Contains(strings.ToLower(info.Title), strings.ToLower(words))
}

// CompleteSessions completes ids of sessions, with their titles, and file names for
// commands that take files.
func CompleteSessions(f *StoreFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		files := cobra.ShellCompDirectiveNoFileComp
		if strings.Contains(cmd.Use, "|FILE") {
			files = cobra.ShellCompDirectiveDefault
		}
		if len(args) > 0 && !strings.Contains(cmd.Use, "[SESSION]...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		store, err := f.Existing(cmd.Context())
		if err != nil {
			return nil, files
		}
		defer store.Close()
		whose, err := f.Whose(cmd.Context(), store)
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
			ids = append(ids, string(info.Session)+"\t"+Truncate(info.Title, 60))
		}
		return ids, files
	}
}
