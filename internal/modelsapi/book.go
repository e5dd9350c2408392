// Package modelsapi keeps what the models APIs of providers say about models, in a file.
//
// The file has no secrets: addresses of providers, names of models in requests, and sizes.
// Facts belong to a provider's address, not to the tenant whose credential was used: a
// window is the same for all who use the model there, and only who names a model gets its
// window. The list of models that a provider returns is not kept.
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

// Fact is what a provider has said about a model.
type Fact struct {
	// Provider is the base URL, Model the model's name in requests.
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Window and MaxOutput are in tokens; 0: not said.
	Window    int `json:"window,omitempty"`
	MaxOutput int `json:"max_output,omitempty"`
	// From is the URL that said it, and At when. Both are empty if nothing was said.
	From string    `json:"from,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Asked is when the provider was asked last. Failed is why it did not say
	// anything then.
	Asked  time.Time `json:"asked"`
	Failed string    `json:"failed,omitempty"`
}

// Limits of the file.
const (
	maxFacts     = 1000
	maxModelName = 200
	maxFile      = 4 << 20
	// maxTokens bounds the sizes that a provider can say.
	maxTokens = 1_000_000_000
)

type key struct{ provider, model string }

// Book has the facts of a file. It is safe for concurrent use; several processes may use
// one file.
type Book struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	mu    sync.Mutex
	facts map[key]Fact

	asking sync.WaitGroup
	slots  chan struct{}
	done   chan struct{} // closed by Close
}

// Open returns the facts of a file, which need not exist. An unreadable file counts as
// empty, and is replaced: everything in it can be asked again. With an empty path, facts
// are kept in memory only. If log is nil, nothing is logged; if now is nil, it is time.Now.
func Open(path string, log *slog.Logger, now func() time.Time) *Book {
	b := &Book{path: path, log: log, now: now, facts: make(map[key]Fact), slots: make(chan struct{}, maxAsking), done: make(chan struct{})}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.now == nil {
		b.now = time.Now
	}
	facts, err := read(path)
	if err != nil {
		b.log.Warn("what providers said about their models could not be read; they are asked again", "error", err)
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

// merge adds facts, except those that are older than the known ones, and drops the oldest beyond
// the limit.
func (b *Book) merge(facts []Fact) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range facts {
		k := key{f.Provider, f.Model}
		if was, ok := b.facts[k]; f.Model == "" || len(f.Model) > maxModelName || ok && !f.Asked.After(was.Asked) {
			continue
		}
		f.Window, f.MaxOutput = inRange(f.Window), inRange(f.MaxOutput)
		b.facts[k] = f
	}
	if len(b.facts) <= maxFacts {
		return
	}
	list := slices.SortedFunc(maps.Values(b.facts), func(x, y Fact) int { return x.Asked.Compare(y.Asked) })
	for _, f := range list[:len(list)-maxFacts] {
		delete(b.facts, key{f.Provider, f.Model})
	}
}

// inRange returns a size that a provider has said, 0 if it cannot be one.
func inRange(n int) int {
	if n < 0 || n > maxTokens {
		return 0
	}
	return n
}

// Fact returns what the provider at a base URL has said about a model; false: nothing.
func (b *Book) Fact(provider, model string) (Fact, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.facts[key{provider, model}]
	return f, ok && !f.At.IsZero()
}

// Facts returns all facts, by provider and model, failures included.
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

// save writes the file, with what other processes have added meanwhile.
func (b *Book) save() error {
	if b.path == "" {
		return nil
	}
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
	_, err = w.Write(append(data, '\n'))
	if err := errors.Join(err, w.Close()); err != nil {
		return errors.Join(err, os.Remove(w.Name()))
	}
	return os.Rename(w.Name(), b.path)
}
