package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/internal/sessionlist"
	"github.com/furlhq/furl/internal/usage"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// Target is the session that a command works on.
type Target struct {
	*session.Session
	All   *session.Sessions
	Store storage.Store
	// File is the name of the recording, "" for a session of the store. Changes
	// to a recording are discarded when the command ends.
	File string
	// Shared reports that a chat has the session and the store open, and ChatModel is the
	// chat's model; "": that of the latest request.
	Shared    bool
	ChatModel string
	// Compactor writes summaries, nil if no model can be asked.
	Compactor operation.Compactor
	// preamble has the recorded instructions and tools, if any.
	preamble []furl.Block
}

// openKey is the key of the open session of a chat in the context of a command.
type openKey struct{}

// WithOpen makes commands that name the session of a target work on it, and not on the
// store.
func WithOpen(ctx context.Context, t *Target) context.Context {
	return context.WithValue(ctx, openKey{}, t)
}

// Close closes the store of the session. If the command had no error, that of closing
// becomes its error.
func (t *Target) Close(err *error) {
	if !t.Shared {
		workspace.CloseStore(t.Store, err)
	}
}

// Name is the name of the session in messages.
func (t *Target) Name() string {
	if t.File != "" {
		return Label(t.File)
	}
	return string(t.ID())
}

// Wire returns the session for exporters and replay.
func (t *Target) Wire() *transcript.Session {
	meta := t.Meta()
	// A later import of the export sets these.
	meta.Imported, meta.Recorded = 0, time.Time{}
	s := &transcript.Session{ID: string(t.ID()), Title: meta.Title, Model: meta.Model, Wire: meta.Format, Meta: meta, Preamble: t.preamble, Log: furl.NewLog()}
	s.Windows = make(map[string]int)
	for _, r := range t.Records(0) {
		switch b := r.Body.(type) {
		case *furl.Exchange:
			if _, known := s.Windows[b.Model]; !known {
				s.Windows[b.Model] = t.Model(b.Model).Window
			}
		case *furl.Message:
			s.Messages++
		case *furl.Reduction:
			s.Compactions++
		}
	}
	// The log is a copy. Changes to it do not affect the session.
	if err := s.Log.Load(t.Records(0)); err != nil {
		panic(err) // the session was loaded from the same records
	}
	return s
}

// Target finds the session with a name: a recording's file, "-" for standard input, or
// the id of a session of the store, the beginning of its id, its title, or
// session.Latest.
func (f *StoreFlags) Target(cmd *cobra.Command, name, within string) (*Target, error) {
	ctx := cmd.Context()
	if t, ok := ctx.Value(openKey{}).(*Target); ok && name == string(t.ID()) {
		return t, nil
	}
	if f.Place == "" && IsRecording(name) {
		return f.openRecording(cmd, name, within)
	}
	if within != "" {
		return nil, BadUsage("--session works only with a recording's file, and %s is not a file", name)
	}
	membudget.SoftLimit(membudget.CommandMemory)
	store, err := f.Existing(ctx)
	if err != nil {
		return nil, err
	}
	t, err := f.Stored(ctx, store, name)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return t, nil
}

// Stored finds a session of the store, of the tenant that the command line names.
func (f *StoreFlags) Stored(ctx context.Context, store storage.Store, name string) (*Target, error) {
	all, err := f.Sessions(store)
	if err != nil {
		return nil, err
	}
	whose, err := f.Whose(ctx, store)
	if err != nil {
		return nil, err
	}
	all = all.For(whose)
	s, err := all.Find(ctx, name)
	if ambiguous := (*session.AmbiguousError)(nil); errors.As(err, &ambiguous) {
		return nil, usage.Wrap(ListAmbiguous(ambiguous))
	}
	if errors.Is(err, storage.ErrNoSession) {
		return nil, fmt.Errorf("%w; furl sessions lists the sessions of the store", err)
	}
	if err != nil {
		return nil, err
	}
	f.Program.Audited.Found(s.ID())
	return &Target{Session: s, All: all, Store: store}, nil
}

// ListAmbiguous returns the error with a line for each session: what identifies it
// among them, its title and age.
func ListAmbiguous(e *session.AmbiguousError) error {
	var lines strings.Builder
	list := slices.Clone(e.Sessions)
	slices.SortStableFunc(list, func(a, b storage.SessionInfo) int { return b.Newest().Compare(a.Newest()) })
	short := sessionlist.ShortIDs(list)
	t := NewTable(&lines, Text(""), Text(""), Text(""))
	for _, info := range list {
		t.Add("  "+short[info.Session], Truncate(info.Title, 44), numbers.ShortAgo(time.Now(), info.Newest()))
	}
	t.Print()
	return fmt.Errorf("ambiguous session name %q: it matches several sessions, newest first:\n%s", e.Name, strings.TrimRight(lines.String(), "\n"))
}

// IsRecording reports whether a name is that of a file: it exists, or looks like a file
// name.
func IsRecording(name string) bool {
	if name == "-" {
		return true
	}
	fi, err := os.Stat(name)
	if err == nil {
		return !fi.IsDir()
	}
	return errors.Is(err, fs.ErrNotExist) && (strings.ContainsRune(name, os.PathSeparator) || strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".json"))
}

// openRecording reads a file into a temporary store in memory.
func (f *StoreFlags) openRecording(cmd *cobra.Command, name, within string) (*Target, error) {
	rec, err := ReadRecording(cmd, name)
	if err != nil {
		return nil, err
	}
	s, err := recorded.Pick(rec, name, within)
	if err != nil {
		return nil, err
	}
	store := inmem.New()
	im := &recorded.Importer{Store: store}
	line, err := im.Session(cmd.Context(), rec, s)
	if err != nil {
		return nil, err
	}
	t, err := f.Stored(cmd.Context(), store, string(line.Session))
	if err != nil {
		return nil, err
	}
	t.File, t.preamble = name, s.Preamble
	return t, nil
}

// ReadRecording reads a file, or standard input for "-".
func ReadRecording(cmd *cobra.Command, name string) (*transcript.Recording, error) {
	membudget.SoftLimit(membudget.CommandMemory)
	reader := transcript.Reader{Counter: token.O200k(), Bodies: true}
	if name == "-" {
		return reader.Read(recorded.Stdin, cmd.InOrStdin())
	}
	rec, err := reader.ReadFile(name)
	if err != nil {
		return nil, recorded.NoFile(err)
	}
	return rec, nil
}

// OnlyStored returns an error if the command would change a recording.
func (t *Target) OnlyStored(cmd *cobra.Command) error {
	if t.File == "" {
		return nil
	}
	return BadUsage("recordings are never changed: import it with furl import %s, or use --dry-run if %s has it", t.Name(), cmd.CommandPath())
}
