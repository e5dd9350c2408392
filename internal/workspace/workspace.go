// Package workspace opens what a configuration names on this machine: the store with its keys,
// sessions with their policies and models, and the files of furl's data folder.
package workspace

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

	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/encrypted"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/postgres"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/recall/embeddings"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
)

// Workspace is the store, the policies and the models that a configuration names.
type Workspace struct {
	Policies *policy.Set      // that the configuration can name besides its own; nil: the presets
	Place    string           // of the store, as on the command line; "": that of the environment or the configuration
	Config   string           // file, as on the command line; "": the usual one
	Log      *slog.Logger     // for connection errors of a database; nil: nothing is logged
	Notes    func() io.Writer // where to write notes without a log; nil: nowhere
}

// Where returns the place of the store: that of the flag, the environment, the
// configuration, or the default.
func (w *Workspace) Where() (string, error) {
	place := cmp.Or(w.Place, os.Getenv("FURL_STORE"))
	if place == "" {
		c, _, err := config.Load(w.Config, w.Policies)
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
func (w *Workspace) Open(ctx context.Context) (storage.Store, error) {
	place, err := w.Where()
	if err != nil {
		return nil, err
	}
	var store storage.Store
	if IsDatabase(place) {
		store, err = postgres.Open(ctx, place, &postgres.Options{Logger: w.Log})
	} else {
		store, err = sqlite.Open(place, nil)
	}
	if err != nil {
		return nil, err
	}
	w.tellRenamed(store)
	return w.Encrypted(store)
}

// Encrypted returns the store with the encryption of the configuration. Without a
// master key it still returns a clear error for what is encrypted.
func (w *Workspace) Encrypted(store storage.Store) (_ storage.Store, err error) {
	defer func() {
		if err != nil {
			store.Close()
		}
	}()
	inner, ok := store.(encrypted.Inner)
	if !ok {
		return nil, errors.New("this store does not support encryption")
	}
	master, err := w.Master()
	if err != nil {
		return nil, err
	}
	return encrypted.New(inner, master), nil
}

// Master returns the master keys of the configuration, nil if it has none.
func (w *Workspace) Master() (encrypted.Master, error) {
	c, file, err := config.Load(w.Config, w.Policies)
	if err != nil {
		return nil, err
	}
	return masterOf(c, file)
}

// tellRenamed reports the sessions that were renamed when the store was opened.
func (w *Workspace) tellRenamed(store storage.Store) {
	r, ok := store.(storage.Renamer)
	if !ok {
		return
	}
	for _, r := range r.Renamed() {
		if w.Log != nil {
			w.Log.Warn("session renamed because its id is reserved", "was", r.Was, "is", r.Is)
			continue
		}
		if w.Notes == nil {
			continue
		}
		fmt.Fprintf(w.Notes(), "furl: note: session %s is now %s: the id %[1]s is reserved\n", r.Was, r.Is)
	}
}

// Existing opens the store, and returns an error if it does not exist.
func (w *Workspace) Existing(ctx context.Context) (storage.Store, error) {
	place, err := w.Where()
	if err != nil {
		return nil, err
	}
	if !IsDatabase(place) {
		if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w at %s: furl import creates one from recordings", ErrNoStore, place)
		}
	}
	store, err := w.Open(ctx)
	if err == nil || IsDatabase(place) || errors.Is(err, record.ErrNewerFormat) {
		return store, err
	}
	// A file without write permission can still be read. Commands that write
	// return an error later.
	readable, err := sqlite.Open(place, &sqlite.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return w.Encrypted(readable)
}

// Sessions returns the sessions of a store, with the policies and models of the
// configuration.
func (w *Workspace) Sessions(store storage.Store) (*session.Sessions, error) {
	c, file, err := config.Load(w.Config, w.Policies)
	if err != nil {
		return nil, err
	}
	o, err := w.SessionOptions(c, file)
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
func (w *Workspace) SessionOptions(c *config.Config, file string) (*session.Options, error) {
	o := &session.Options{Policy: c.Policy, Policies: c.SetByModel(), Settings: c.Settings(), AskFirst: c.AskFirst, Commands: c.Gateway.Commands, Reported: reported(c), Deleted: DeleteCopies, Redacted: RedactCopies}
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

// ErrNoStore is the error of a command that reads a store that does not exist.
var ErrNoStore = errors.New("no store")
