package recorded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// NewestOf returns the time of the newest record, or zero if no record has a time.
func NewestOf(records []furl.Record) (newest time.Time) {
	for _, r := range records {
		if r.At.After(newest) {
			newest = r.At
		}
	}
	return newest
}

// Results of importing a session.
const (
	ImportedNew     = "imported"
	ImportedMore    = "updated"
	ImportedNothing = "unchanged"
	ImportedNot     = "differs"
	ImportedDry     = "would import"
)

// Imported is the result of importing one session, and one line of furl import --json.
type Imported struct {
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
	// ForkOf is the session whose records this one begins with.
	ForkOf furl.SessionID `json:"fork_of,omitempty"`

	Tenant furl.Tenant `json:"-"`
	Same   bool        `json:"-"` // the stored session has the records of the recording and no others
}

// Importer imports recorded sessions into a store.
type Importer struct {
	Store      storage.Store
	Again, Dry bool
	// Project, if not empty, is the folder of sessions that an agent recorded elsewhere.
	Project  string
	Merge    bool                             // add to sessions that were changed in the store
	Recorded map[string][]storage.SessionInfo // by the gateway, by the agent's id
	Tenants  []furl.Tenant                    // changed, besides the local one
	// Appended, if not nil, is called after each append. Then appends are small.
	Appended func(context.Context, furl.SessionKey) error

	projects map[projectID]string // of the store's sessions that are folders here, "" if several are

	orphans map[furl.SessionKey]map[furl.SessionKey]bool // forks in the store, by the session that they wait for
}

// Session imports a session, or its new records.
func (im *Importer) Session(ctx context.Context, rec *transcript.Recording, s *transcript.Session) (Imported, error) {
	line := Imported{
		Session: SessionID(s), Title: s.Title, File: rec.File, Format: rec.Format,
		Records: s.Log.Len(), Messages: MessagesIn(s.Log),
	}
	known := rec.Meta(s)
	meta := &known
	if abs, err := filepath.Abs(rec.File); err == nil && (meta.Source == rec.File || meta.Source == "") {
		meta.Source = abs
	}
	records := s.Log.Records(0)
	meta.Imported, meta.Recorded = furl.Seq(len(records)), NewestOf(records)
	if meta.Recorded.IsZero() { // without times, use that of the file
		meta.Recorded = ChangedAt(rec.File)
	}
	if meta.Title == "" {
		meta.Title = session.Title(records)
		line.Title = meta.Title
	}
	if err := im.findRecorded(ctx); err != nil {
		return line, err
	}
	meta.Project = cmp.Or(im.Project, im.projectHere(ProjectOf(s, meta.Project), meta.Title))
	if done, err := im.joinRecorded(ctx, rec, s, meta, &line); done || err != nil {
		return line, err
	}
	for n := 1; ; n++ {
		var was *storage.Meta
		key := furl.SessionKey{Tenant: line.Tenant, Session: line.Session}
		common, stored, err := Common(ctx, im.Store, key, records)
		if err != nil {
			return line, err
		}
		switch {
		case stored == 0:
			line.Result = ImportedNew
			if err := im.fork(ctx, key, s, meta); err != nil {
				return line, err
			}
			line.ForkOf = meta.ForkOf
		case common == len(records):
			// The store has all of its records, and perhaps more.
			line.Same = stored == common
			return line, im.describe(ctx, key, s, meta, session.Title(records), &line)
		case common == stored:
			if line.Result = ImportedMore; !im.Dry {
				info, err := im.Info(ctx, key)
				if err != nil {
					return line, err
				}
				was = &info.Meta
				updated := describedBy(info.Meta, *meta, session.Title(records))
				updated.Source, updated.Imported, updated.Recorded = meta.Source, meta.Imported, meta.Recorded
				updated.Model, updated.Format = meta.Model, meta.Format
				meta = &updated
			}
		case im.Again && n < 1000:
			line.Session = furl.SessionID(fmt.Sprintf("%s.%d", SessionID(s), n+1))
			continue
		default:
			if joined, err := im.join(ctx, key, s, meta, &line, !im.Merge); joined || err != nil {
				return line, err
			}
			line.Result = ImportedNot
			return line, nil
		}
		line.Added = len(records) - stored
		if im.Dry {
			line.Result = ImportedDry
			return line, nil
		}
		im.changed(key.Tenant)
		line.Same = true
		if err := im.Add(ctx, key, meta, was, records[stored:], rebuild.ByDigest(s.Contents)); err != nil || stored > 0 {
			return line, err
		}
		return line, im.adopt(ctx, key, s.Log, meta)
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

// Add appends records with the contents that they refer to. was is the session's metadata
// that meta was made from, nil for a new session.
func (im *Importer) Add(ctx context.Context, key furl.SessionKey, meta, was *storage.Meta, records []furl.Record, read rebuild.Contents) error {
	if store, ok := im.Store.(*inmem.Store); ok { // a recording that a command reads
		contents, err := rebuild.ContentsOf(records, read)
		if err != nil {
			return err
		}
		return store.Share(ctx, key, storage.Batch{Records: records, Contents: contents, Meta: meta, MetaWas: was})
	}
	most, mostBytes := importBatch, importBatchBytes
	if im.Appended != nil {
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
		if err := im.Store.Append(ctx, key, storage.Batch{Records: records[:n], Contents: contents, Meta: meta, MetaWas: was}); err != nil {
			return err
		}
		if im.Appended != nil {
			if err := im.Appended(ctx, key); err != nil {
				return err
			}
		}
		records, meta = records[n:], nil
	}
	return nil
}

// Common returns the number of records that the stored session has, and how many of
// them, from the first, equal the given ones.
func Common(ctx context.Context, store storage.Store, key furl.SessionKey, records []furl.Record) (common, stored int, err error) {
	same := true
	for r, err := range store.Read(ctx, key, 0) {
		if errors.Is(err, storage.ErrNoSession) {
			return 0, 0, nil
		}
		if err != nil {
			return 0, 0, err
		}
		if same = same && stored < len(records) && EqualRecords(r, records[stored]); same {
			common++
		}
		stored++
	}
	return common, stored, nil
}

// EqualRecords compares records without token counts. Messages are equal if their
// bytes on the wire are.
func EqualRecords(a, b furl.Record) bool {
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

// SessionID returns the session's id in the recording if it is valid, else a digest of
// the session's start, which is the same for each import.
func SessionID(s *transcript.Session) furl.SessionID {
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

// MessagesIn counts messages as the store does. Records of the recording may be parts
// of messages.
func MessagesIn(log *furl.Log) int {
	n := 0
	for _, r := range log.Records(0) {
		if _, ok := r.Body.(*furl.Message); ok {
			n++
		}
	}
	return n
}

// ProjectOf returns the folder that a recorded session's agent worked in: the known
// one, or else that which the first messages name; "" if there is none.
func ProjectOf(s *transcript.Session, known string) string {
	if folder := agents.Folder(known); folder != "" {
		return folder
	}
	return agents.WorkingFolder(firstTexts(s.Preamble, s.Log.Records(0)))
}

// ChangedAt returns when a file was changed, or zero if that is not known.
func ChangedAt(file string) time.Time {
	fi, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime().UTC()
}
