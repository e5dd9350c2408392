package cli

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// newestOf returns the time of the newest record, or zero if no record has a time.
func newestOf(records []furl.Record) (newest time.Time) {
	for _, r := range records {
		if r.At.After(newest) {
			newest = r.At
		}
	}
	return newest
}

// Results of importing a session.
const (
	importedNew     = "imported"
	importedMore    = "updated"
	importedNothing = "unchanged"
	importedNot     = "differs"
	importedDry     = "would import"
)

// jsonImported is one line of furl import --json.
type jsonImported struct {
	Session  furl.SessionID `json:"session"`
	Title    string         `json:"title"`
	File     string         `json:"file"`
	Format   string         `json:"format"`
	Result   string         `json:"result"`
	Records  int            `json:"records"`
	Added    int            `json:"added"`
	Messages int            `json:"messages"`
	Notes    []string       `json:"notes,omitempty"`
	Skipped  int            `json:"skipped,omitempty"`

	tenant furl.Tenant
	same   bool // the stored session has the records of the recording and no others
}

func importCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	var again, dry, strict bool
	cmd := &cobra.Command{
		Use:   "import [FILE|FOLDER]...",
		Short: "Import recorded sessions",
		Long: `Imports the sessions of recordings into the store, where you can search, show,
reduce, rewind and fork them. Formats: ` + strings.Join(transcript.Formats(), ", ") + `.
The format is detected from the content. Without arguments, it imports the
sessions of the agents on this machine.

Importing a recording again adds its new records. A session that the gateway has
recorded stays one session: it gets what only the recording has. A session is skipped
if it was changed in the store, or if the recording no longer starts with the same
records; --again imports it as a new session. Recordings are never changed.`,
		Example: `  furl import                           all sessions on this machine
  furl import session.jsonl other.json
  furl import ~/.claude/projects --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if args = agents.Folders(); len(args) == 0 {
					return errors.New("no recordings of agents found on this machine; name files or folders to import")
				}
			}
			return f.imports(cmd, args, again, dry, strict)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&again, "again", false, "import sessions that differ from the store's as new sessions")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list what would be imported, change nothing")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with code 1 if a recording has unreadable records")
	return cmd
}

func (f *storeFlags) imports(cmd *cobra.Command, paths []string, again, dry, strict bool) (err error) {
	softLimit(commandMemory)
	ctx := cmd.Context()
	store, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer closing(store, &err)
	progress := newBar(cmd.ErrOrStderr(), f.json)
	defer progress.clear()
	im := &importer{store: store, again: again, dry: dry}
	var faults []error
	var skipped []string // files of folders that are not recordings
	var done []jsonImported
	var damage []string // a line for each damaged file
	files, unreadable := 0, 0
	reader := transcript.Reader{Counter: token.O200k()}
	for rec, err := range reader.Walk(paths...) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if others := (*transcript.UnknownFilesError)(nil); errors.As(err, &others) {
			skipped = append(skipped, others.Files...)
			continue
		}
		if err != nil {
			faults = append(faults, noFile(err))
			continue
		}
		files++
		progress.say(fmt.Sprintf("file %d, %s", files, label(filepath.Base(rec.File))))
		if d := rec.Damage(); d != "" {
			damage = append(damage, label(rec.File)+": "+printable(d))
			unreadable += rec.Unreadable()
		}
		for i, s := range rec.Sessions {
			line, err := im.session(ctx, rec, s)
			if err != nil {
				return fmt.Errorf("import %s: %w", rec.File, err)
			}
			if i == 0 { // they are the file's, not each session's
				line.Skipped, line.Notes = rec.Unreadable(), rec.Notes
			}
			done = append(done, line)
		}
	}
	if !dry {
		progress.say("indexing")
		for _, tenant := range append([]furl.Tenant{localTenant}, im.tenants...) {
			if err := recall.NewIndexer(store, nil).CatchupTenant(ctx, tenant); err != nil {
				return err
			}
		}
		if err := f.embed(ctx, store); err != nil {
			faults = append(faults, err) // the sessions are imported nevertheless
		}
	}
	progress.clear()
	if f.json {
		if done == nil {
			done = []jsonImported{}
		}
		err = printJSON(cmd.OutOrStdout(), map[string]any{"imported": done})
	} else {
		printImported(cmd.OutOrStdout(), done)
		for _, d := range damage {
			fmt.Fprintf(cmd.ErrOrStderr(), "furl: note: %s\n", d)
		}
		if len(done)+len(faults) == 0 {
			fmt.Fprintln(cmd.OutOrStdout(), "No recordings found.")
		}
		if n := len(skipped); n > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "furl: note: skipped %s in unknown formats, such as %s\n", numbers.Count(n, "file"), label(skipped[0]))
		}
	}
	if strict {
		faults = append(faults, strictly(unreadable))
	}
	return errors.Join(append(faults, err)...)
}

// strictly is the error of --strict for unreadable records, nil if there are none.
func strictly(unreadable int) error {
	if unreadable == 0 {
		return nil
	}
	return fmt.Errorf("%s, and --strict is set", numbers.Count(unreadable, "unreadable record"))
}

// embed computes the vectors of new messages if the configuration has embeddings.
func (f *storeFlags) embed(ctx context.Context, store storage.Store) error {
	c, _, err := config.Load(f.config, f.program.policies)
	if err != nil {
		return err
	}
	v, err := vectorsOf(store, c)
	if v == nil || err != nil {
		return err
	}
	return v.CatchupTenant(ctx, localTenant)
}

// importer imports recorded sessions into a store.
type importer struct {
	store      storage.Store
	again, dry bool
	merge      bool                             // add to sessions that were changed in the store
	recorded   map[string][]storage.SessionInfo // by the gateway, by the agent's id
	tenants    []furl.Tenant                    // changed, besides the local one
	// appended, if not nil, is called after each append. Then appends are small.
	appended func(context.Context, furl.SessionKey) error
}

// session imports a session, or its new records.
func (im *importer) session(ctx context.Context, rec *transcript.Recording, s *transcript.Session) (jsonImported, error) {
	line := jsonImported{
		Session: sessionID(s), Title: s.Title, File: rec.File, Format: rec.Format,
		Records: s.Log.Len(), Messages: messagesIn(s.Log),
	}
	known := rec.Meta(s)
	meta := &known
	if abs, err := filepath.Abs(rec.File); err == nil && (meta.Source == rec.File || meta.Source == "") {
		meta.Source = abs
	}
	records := s.Log.Records(0)
	meta.Imported, meta.Recorded = furl.Seq(len(records)), newestOf(records)
	if meta.Recorded.IsZero() { // without times, use that of the file
		meta.Recorded = changedAt(rec.File)
	}
	if meta.Title == "" {
		meta.Title = session.Title(records)
		line.Title = meta.Title
	}
	meta.Project = projectOf(s, meta.Project)
	if done, err := im.joinRecorded(ctx, rec, s, meta, &line); done || err != nil {
		return line, err
	}
	for n := 1; ; n++ {
		var was *storage.Meta
		key := furl.SessionKey{Tenant: line.tenant, Session: line.Session}
		common, stored, err := shared(ctx, im.store, key, records)
		if err != nil {
			return line, err
		}
		switch {
		case stored == 0:
			line.Result = importedNew
		case common == len(records):
			// The store has all of its records, and perhaps more.
			line.same = stored == common
			return line, im.describe(ctx, key, meta, session.Title(records), &line)
		case common == stored:
			if line.Result = importedMore; !im.dry {
				info, err := im.info(ctx, key)
				if err != nil {
					return line, err
				}
				was = &info.Meta
				updated := describedBy(info.Meta, *meta, session.Title(records))
				updated.Source, updated.Imported, updated.Recorded = meta.Source, meta.Imported, meta.Recorded
				updated.Model, updated.Format = meta.Model, meta.Format
				meta = &updated
			}
		case im.again && n < 1000:
			line.Session = furl.SessionID(fmt.Sprintf("%s.%d", sessionID(s), n+1))
			continue
		default:
			if joined, err := im.join(ctx, key, s, meta, &line, !im.merge); joined || err != nil {
				return line, err
			}
			line.Result = importedNot
			return line, nil
		}
		line.Added = len(records) - stored
		if im.dry {
			line.Result = importedDry
			return line, nil
		}
		im.changed(key.Tenant)
		line.same = true
		return line, im.add(ctx, key, meta, was, records[stored:], rebuild.ByDigest(s.Contents))
	}
}

// firstTexts yields the instructions and the first texts that are not of a model.
func firstTexts(preamble []furl.Block, records []furl.Record) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range preamble {
			if b := &preamble[i]; b.Kind == furl.KindText && !yield(b.Text) {
				return
			}
		}
		for _, r := range records[:min(len(records), 16)] {
			m, ok := r.Body.(*furl.Message)
			if !ok || m.Role == furl.RoleAssistant || m.Role == furl.RoleTool {
				continue
			}
			for i := range m.Blocks {
				if m.Blocks[i].Kind == furl.KindText && !yield(m.Blocks[i].Text) {
					return
				}
			}
		}
	}
}

// Limits of one append, in records and bytes.
const (
	importBatch      = 1000
	importBatchBytes = 8 << 20
	smallBatch       = 200
	smallBatchBytes  = 256 << 10
)

// add appends records with the contents that they refer to. was is the session's metadata
// that meta was made from, nil for a new session.
func (im *importer) add(ctx context.Context, key furl.SessionKey, meta, was *storage.Meta, records []furl.Record, read rebuild.Contents) error {
	if store, ok := im.store.(*inmem.Store); ok { // a recording that a command reads
		contents, err := rebuild.ContentsOf(records, read)
		if err != nil {
			return err
		}
		return store.Share(ctx, key, storage.Batch{Records: records, Contents: contents, Meta: meta, MetaWas: was})
	}
	most, mostBytes := importBatch, importBatchBytes
	if im.appended != nil {
		most, mostBytes = smallBatch, smallBatchBytes
	}
	for len(records) > 0 {
		n, size := 0, 0
		for n < len(records) && n < most && size < mostBytes {
			if m, ok := records[n].Body.(*furl.Message); ok {
				size += len(m.Raw)
			}
			n++
		}
		contents, err := rebuild.ContentsOf(records[:n], read)
		if err != nil {
			return err
		}
		if err := im.store.Append(ctx, key, storage.Batch{Records: records[:n], Contents: contents, Meta: meta, MetaWas: was}); err != nil {
			return err
		}
		if im.appended != nil {
			if err := im.appended(ctx, key); err != nil {
				return err
			}
		}
		records, meta = records[n:], nil
	}
	return nil
}

// shared returns the number of records that the stored session has, and how many of
// them, from the first, equal the given ones.
func shared(ctx context.Context, store storage.Store, key furl.SessionKey, records []furl.Record) (common, stored int, err error) {
	same := true
	for r, err := range store.Read(ctx, key, 0) {
		if errors.Is(err, storage.ErrNoSession) {
			return 0, 0, nil
		}
		if err != nil {
			return 0, 0, err
		}
		if same = same && stored < len(records) && equalRecords(r, records[stored]); same {
			common++
		}
		stored++
	}
	return common, stored, nil
}

// equalRecords compares records without token counts. Messages are equal if their
// bytes on the wire are.
func equalRecords(a, b furl.Record) bool {
	if a.Seq != b.Seq || a.Parent != b.Parent || a.By != b.By || !a.At.Equal(b.At) {
		return false
	}
	m, ok := a.Body.(*furl.Message)
	n, also := b.Body.(*furl.Message)
	if ok && also && m.Raw != nil {
		return bytes.Equal(m.Raw, n.Raw)
	}
	headA, bodyA, errA := record.Encode(a)
	headB, bodyB, errB := record.Encode(b)
	return errA == nil && errB == nil && bytes.Equal(headA, headB) && bytes.Equal(bodyA, bodyB)
}

// sessionID returns the session's id in the recording if it is valid, else a digest of
// the session's start, which is the same for each import.
func sessionID(s *transcript.Session) furl.SessionID {
	if id := furl.SessionID(s.ID); storage.ValidID(id) {
		return id
	}
	seed := []byte(s.ID)
	if s.ID == "" {
		for _, r := range s.Log.Records(0) {
			if m, ok := r.Body.(*furl.Message); ok {
				seed = append(seed, m.Digest[:]...)
				break
			}
		}
		seed = s.Start().AppendFormat(seed, "2006-01-02T15:04:05.999999999Z07:00")
	}
	digest := furl.DigestOf(seed)
	return furl.SessionID("s" + hex.EncodeToString(digest[:8]))
}

// messagesIn counts messages as the store does. Records of the recording may be parts
// of messages.
func messagesIn(log *furl.Log) int {
	n := 0
	for _, r := range log.Records(0) {
		if _, ok := r.Body.(*furl.Message); ok {
			n++
		}
	}
	return n
}

func printImported(w io.Writer, done []jsonImported) {
	t := newTable(w, text("session"), text("title"), text("result"), number("messages"), number("new records"))
	counts := map[string]int{}
	for _, l := range done {
		counts[l.Result]++
		if l.Result == importedNothing && len(done) > 20 {
			continue
		}
		result := l.Result
		if result == importedNot {
			result = "skipped"
		}
		t.add(string(l.Session), truncate(l.Title, 40), result, numbers.Thousands(l.Messages), numbers.Thousands(l.Added))
	}
	t.shrink("title", 12)
	t.shrink("session", 12)
	if len(t.rows) > 0 {
		t.print()
	}
	if len(done) > 0 {
		printWrapped(w, importedWords(len(done), counts), width(w))
	}
}

// importedWords says how many sessions were imported, updated and skipped.
func importedWords(n int, counts map[string]int) string {
	var parts []string
	for _, r := range []struct{ result, words string }{
		{importedNew, "imported"}, {importedDry, "would be imported or updated"}, {importedMore, "updated"}, {importedNothing, "unchanged"}, {importedNot, "skipped"},
	} {
		switch of := counts[r.result]; of {
		case 0:
		case n:
			parts = append(parts, r.words)
		default:
			parts = append(parts, numbers.Thousands(of)+" "+r.words)
		}
	}
	sep := ": "
	if len(parts) == 1 {
		sep = " "
	}
	words := numbers.Count(n, "session") + sep + strings.Join(parts, ", ")
	switch counts[importedNot] {
	case 0:
		return words
	case 1:
		return words + ", because it differs from the store's; --again imports it as a new session"
	}
	return words + ", because they differ from the store's; --again imports them as new sessions"
}
