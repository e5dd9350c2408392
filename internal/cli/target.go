package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// localTenant is the tenant of sessions without a tenant.
const localTenant = furl.Tenant("")

// target is the session that a command works on.
type target struct {
	*session.Session
	all   *session.Sessions
	store storage.Store
	// file is the name of the recording, "" for a session of the store. Changes
	// to a recording are discarded when the command ends.
	file string
	// shared reports that a chat has the session and the store open, and model is the
	// chat's model; "": that of the latest request.
	shared bool
	model  string
	// compactor writes summaries, nil if no model can be asked.
	compactor operation.Compactor
	// preamble has the recorded instructions and tools, if any.
	preamble []furl.Block
}

func (t *target) close(err *error) {
	if !t.shared {
		closing(t.store, err)
	}
}

// name is the name of the session in messages.
func (t *target) name() string {
	if t.file != "" {
		return label(t.file)
	}
	return string(t.ID())
}

// wire returns the session for exporters and replay.
func (t *target) wire() *transcript.Session {
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

// target finds the session with a name: a recording's file, "-" for standard input, or
// the id of a session of the store, the beginning of its id, its title, or
// session.Latest.
func (f *storeFlags) target(cmd *cobra.Command, name, within string) (*target, error) {
	ctx := cmd.Context()
	if c := openConversation(ctx); c != nil && name == string(c.session().ID()) {
		return c.target(), nil
	}
	if f.place == "" && isRecording(name) {
		return f.openRecording(cmd, name, within)
	}
	if within != "" {
		return nil, badUsage("--session works only with a recording's file, and %s is not a file", name)
	}
	softLimit(commandMemory)
	store, err := f.existing(ctx)
	if err != nil {
		return nil, err
	}
	t, err := f.stored(ctx, store, name)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return t, nil
}

// stored finds a session of the store, of the tenant that the command line names.
func (f *storeFlags) stored(ctx context.Context, store storage.Store, name string) (*target, error) {
	all, err := f.sessions(store)
	if err != nil {
		return nil, err
	}
	whose, err := f.whose(ctx, store)
	if err != nil {
		return nil, err
	}
	all = all.For(whose)
	s, err := all.Find(ctx, name)
	if ambiguous := (*session.AmbiguousError)(nil); errors.As(err, &ambiguous) {
		return nil, usageError{listAmbiguous(ambiguous)}
	}
	if errors.Is(err, storage.ErrNoSession) {
		return nil, fmt.Errorf("%w; furl sessions lists the sessions of the store", err)
	}
	if err != nil {
		return nil, err
	}
	f.program.audited.found(s.ID())
	return &target{Session: s, all: all, store: store}, nil
}

// listAmbiguous returns the error with a line for each session: what identifies it
// among them, its title and age.
func listAmbiguous(e *session.AmbiguousError) error {
	var lines strings.Builder
	list := slices.Clone(e.Sessions)
	slices.SortStableFunc(list, func(a, b storage.SessionInfo) int { return b.Newest().Compare(a.Newest()) })
	short := shortIDs(list)
	t := newTable(&lines, text(""), text(""), text(""))
	for _, info := range list {
		t.add("  "+short[info.Session], truncate(info.Title, 44), shortAgo(time.Now(), info.Newest()))
	}
	t.print()
	return fmt.Errorf("ambiguous session name %q: it matches several sessions, newest first:\n%s", e.Name, strings.TrimRight(lines.String(), "\n"))
}

// isRecording reports whether a name is that of a file: it exists, or looks like a file
// name.
func isRecording(name string) bool {
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
func (f *storeFlags) openRecording(cmd *cobra.Command, name, within string) (*target, error) {
	rec, err := readRecording(cmd, name)
	if err != nil {
		return nil, err
	}
	s, err := pick(rec, name, within)
	if err != nil {
		return nil, err
	}
	store := inmem.New()
	im := &importer{store: store}
	line, err := im.session(cmd.Context(), rec, s)
	if err != nil {
		return nil, err
	}
	t, err := f.stored(cmd.Context(), store, string(line.Session))
	if err != nil {
		return nil, err
	}
	t.file, t.preamble = name, s.Preamble
	return t, nil
}

func readRecording(cmd *cobra.Command, name string) (*transcript.Recording, error) {
	softLimit(commandMemory)
	reader := transcript.Reader{Counter: token.O200k()}
	if name == "-" {
		return reader.Read(stdin, cmd.InOrStdin())
	}
	return reader.ReadFile(name)
}

// pick finds a session of a recording by its id, the beginning of its id, or its
// number.
func pick(rec *transcript.Recording, name, within string) (*transcript.Session, error) {
	if len(rec.Sessions) == 0 {
		return nil, fmt.Errorf("%s has no session", name)
	}
	if within == "" {
		return rec.Sessions[0], nil
	}
	if n, err := strconv.Atoi(within); err == nil && n >= 1 && n <= len(rec.Sessions) {
		return rec.Sessions[n-1], nil
	}
	var ids []string
	for i, s := range rec.Sessions {
		if s.ID != "" && strings.HasPrefix(s.ID, within) {
			return s, nil
		}
		ids = append(ids, fmt.Sprintf("%d %s", i+1, s.ID))
	}
	return nil, badUsage("no session %q in %s: choose one of %s", within, name, strings.Join(ids, ", "))
}

// onlyStored returns an error if the command would change a recording.
func (t *target) onlyStored(cmd *cobra.Command) error {
	if t.file == "" {
		return nil
	}
	return badUsage("recordings are never changed: import it with furl import %s, or use --dry-run if %s has it", t.name(), cmd.CommandPath())
}
