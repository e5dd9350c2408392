// Package modelsapi asks the models APIs of providers for the sizes of models, and keeps
// the sizes in a file.
//
// The file has no secrets. It has providers' addresses, models' names as requests state
// them, and sizes. A fact belongs to a provider's address and not to the tenant whose
// credential was used: all tenants have the same window there, and a tenant gets the window
// of a model only by its name. The list of models that a provider returns is not kept.
package modelsapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// FileName is the name of the file in the data folder.
const FileName = "models.json"

// Fact is what a provider reports of a model.
type Fact struct {
	// Provider is the base URL. Model is the model's name in requests.
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Window and MaxOutput are in tokens, 0 if the provider does not report them.
	Window    int `json:"window,omitempty"`
	MaxOutput int `json:"max_output,omitempty"`
	// From is the URL that reported the sizes, and At is the time of its response. They are
	// empty if the provider has never reported any.
	From string    `json:"from,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Asked is the time of the last query. Failed is the reason for which that query
	// returned no sizes, "" if it did.
	Asked  time.Time `json:"asked"`
	Failed string    `json:"failed,omitempty"`
}

// Limits of the file.
const (
	maxFacts     = 1000
	maxModelName = 200
	maxFile      = 4 << 20
	// maxTokens is the largest size that is accepted from a provider.
	maxTokens = 1_000_000_000
)

type key struct{ provider, model string }

// Book has the facts of a file. It is safe for concurrent use, and several processes may use
// the same file.
type Book struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	mu    sync.Mutex
	facts map[key]Fact
	busy  map[key]bool // models that are being asked about

	saving sync.Mutex // held while the file is read and replaced

	asking sync.WaitGroup
	slots  chan struct{}
	done   chan struct{} // closed by Close
}

// Open reads the facts of a file, which need not exist. An unreadable file counts as empty
// and is replaced, because furl can ask again for all of it. With an empty path, facts are
// in memory only. If log is nil, nothing is logged; if now is nil, it is time.Now.
func Open(path string, log *slog.Logger, now func() time.Time) *Book {
	b := &Book{
		path: path, log: log, now: now, facts: make(map[key]Fact), busy: make(map[key]bool),
		slots: make(chan struct{}, maxAsking), done: make(chan struct{}),
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.now == nil {
		b.now = time.Now
	}
	facts, err := read(path)
	if err != nil {
		b.log.Warn("cannot read the sizes that providers report of their models: furl asks again", "error", err)
	}
	b.merge(facts)
	return b
}

func read(path string) ([]Fact, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: larger than %d MiB", path, maxFile>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Models []Fact `json:"models"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file.Models, nil
}

// merge adds facts, except those older than the known ones. It ignores facts from the
// future, which a wrong clock has written: no later fact would replace them.
func (b *Book) merge(facts []Fact) {
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range facts {
		k := key{f.Provider, f.Model}
		was, ok := b.facts[k]
		if f.Model == "" || len(f.Model) > maxModelName || f.Asked.After(now) || ok && !f.Asked.After(was.Asked) {
			continue
		}
		f.Window, f.MaxOutput = inRange(f.Window), inRange(f.MaxOutput)
		b.facts[k] = f
	}
	b.trim()
}

// trim removes the oldest facts beyond the limit. b.mu must be locked.
func (b *Book) trim() {
	if len(b.facts) <= maxFacts {
		return
	}
	list := slices.SortedFunc(maps.Values(b.facts), func(x, y Fact) int { return x.Asked.Compare(y.Asked) })
	for _, f := range list[:len(list)-maxFacts] {
		delete(b.facts, key{f.Provider, f.Model})
	}
}

// inRange returns a size that a provider reports, or 0 if it is out of range.
func inRange(n int) int {
	if n < 0 || n > maxTokens {
		return 0
	}
	return n
}

// Fact returns what the provider at a base URL reports of a model, and false if it has
// reported nothing.
func (b *Book) Fact(provider, model string) (Fact, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.facts[key{provider, model}]
	return f, ok && !f.At.IsZero()
}

// Facts returns all facts, failures included, sorted by provider and model.
func (b *Book) Facts() []Fact {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(maps.Values(b.facts), func(x, y Fact) int {
		if c := strings.Compare(x.Provider, y.Provider); c != 0 {
			return c
		}
		return strings.Compare(x.Model, y.Model)
	})
}

// save writes the file, after merging the facts that other processes have added.
func (b *Book) save() error {
	if b.path == "" {
		return nil
	}
	b.saving.Lock()
	defer b.saving.Unlock()
	if others, err := read(b.path); err == nil {
		b.merge(others)
	}
	data, err := json.MarshalIndent(struct {
		Models []Fact `json:"models"`
	}{b.Facts()}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(b.path), 0o700); err != nil {
		return err
	}
	w, err := os.CreateTemp(filepath.Dir(b.path), FileName+".") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(w.Name()) // fails after the rename
	_, err = w.Write(append(data, '\n'))
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return os.Rename(w.Name(), b.path)
}
