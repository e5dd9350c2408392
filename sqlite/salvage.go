package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/storage"
)

// Salvaged reports what Salvage saved, and what was lost.
type Salvaged struct {
	// Pages counts the pages of the file, Unread those that are unreadable.
	Pages, Unread int64
	// Sessions are all sessions of which any data was found, by tenant and
	// id.
	Sessions []SalvagedSession
}

// SalvagedSession reports what was saved of one session.
type SalvagedSession struct {
	furl.SessionKey // in the new store
	// NameLost reports that the session's id was lost, TenantLost that its
	// tenant was.
	NameLost, TenantLost bool
	// Saved is the number of records in the new store. Lost lists the missing
	// records, as far as their numbers are known.
	Saved int
	Lost  []SeqRange
}

// SeqRange is a range of records, First and Last included.
type SeqRange struct{ First, Last furl.Seq }

func (r SeqRange) String() string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Salvage reads the damaged store in the file from, with its write-ahead log,
// and writes everything readable to a new store in the file to, which must
// not exist. The damaged file is not changed; no process should have it open
// for writing. Progress, if set, is called with the number of pages read.
//
// A record is saved if its checksum matches. A lost record is replaced by a
// Head without effect, so that the other records keep their numbers. A record
// that followed a lost one follows the one before that instead, and messages
// from there on are not matched with requests. Records that depend on a lost
// record, such as a reduction of it, are lost too. The search index and the
// vectors are not saved: they can be rebuilt.
func Salvage(ctx context.Context, from, to string, progress func(done, total int64)) (*Salvaged, error) {
	done, err := salvage(ctx, from, to, progress)
	if err != nil {
		return nil, fmt.Errorf("salvage store %s: %w", from, err)
	}
	return done, nil
}

func salvage(ctx context.Context, from, to string, progress func(done, total int64)) (_ *Salvaged, err error) {
	p, err := openPages(from)
	if err != nil {
		return nil, err
	}
	defer p.close()
	found, err := scan(ctx, p, progress)
	if err != nil {
		return nil, err
	}
	if len(found.sessions) == 0 {
		return nil, errors.New("no furl session found in it")
	}
	if _, err := os.Lstat(to); err == nil {
		return nil, fmt.Errorf("%s exists: choose another output file", to)
	}
	store, err := Open(to, nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, store.Close())
		if err != nil {
			_ = os.Remove(to) // the error says more
		}
	}()
	done := &Salvaged{Pages: p.count, Unread: found.unread}
	// The most recently used session is written last.
	order := slices.SortedFunc(maps.Keys(found.sessions), func(a, b int64) int {
		return cmp.Or(cmp.Compare(found.sessions[a].updated, found.sessions[b].updated), cmp.Compare(a, b))
	})
	taken := make(map[furl.SessionKey]bool)
	for _, id := range order {
		s, err := found.save(ctx, store, id, taken)
		if err != nil {
			return nil, err
		}
		done.Sessions = append(done.Sessions, s)
	}
	slices.SortFunc(done.Sessions, func(a, b SalvagedSession) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Session, b.Session))
	})
	return done, nil
}

// place is the position of a row.
type place struct{ page, at int64 }

// found is what was found in a damaged file: small rows, and the positions of
// large ones.
type found struct {
	pages    *pages
	unread   int64
	tenants  map[int64]furl.Tenant
	sessions map[int64]*foundSession
	bodies   map[int64]place
	digests  map[bodyKey]int64 // of bodies
}

// bodyKey is what a body is found by.
type bodyKey struct {
	tenant int64
	digest furl.Digest
}

type foundSession struct {
	named            bool // its row was found
	tenant           int64
	name             furl.SessionID
	count            int64 // number of records according to the row
	created, updated int64
	meta             *storage.Meta
	records          map[int64]place
}

// scan reads all pages and collects the rows of furl's tables. Tables are
// recognised by their columns, because the schema may be lost.
func scan(ctx context.Context, p *pages, progress func(done, total int64)) (*found, error) {
	f := &found{pages: p, tenants: make(map[int64]furl.Tenant), sessions: make(map[int64]*foundSession), bodies: make(map[int64]place), digests: make(map[bodyKey]int64)}
	buf := make([]byte, p.size)
	for page := int64(1); page <= p.count; page++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if progress != nil {
			progress(page, p.count)
		}
		if p.read(page, buf) != nil {
			f.unread++
			continue
		}
		for _, at := range p.cells(page, buf) {
			if id, values, err := p.row(buf, at); err == nil {
				f.note(id, values, place{page, at})
			}
		}
	}
	return f, nil
}

// note records a row.
func (f *found) note(id int64, v []any, at place) {
	switch {
	case like(v, "-b"): // tenants
		f.tenants[id] = furl.Tenant(v[1].([]byte))
	case like(v, "-isiiiiii??"): // sessions
		f.noteSession(id, v)
	case like(v, "-ibiib") && len(v[2].([]byte)) == len(furl.Digest{}): // bodies
		f.bodies[id] = at
		f.digests[bodyKey{v[1].(int64), furl.Digest(v[2].([]byte))}] = id
	case like(v, "-ib????") && id > 0: // records
		if seq := id & maxSeq; seq > 0 {
			f.session(id >> seqBits).records[seq] = at
		}
	}
}

// like reports whether a row has values of these types: i an integer, b
// bytes, s text, - NULL, as which an integer primary key is stored, ?
// anything.
func like(values []any, kinds string) bool {
	if len(values) != len(kinds) {
		return false
	}
	for i, v := range values {
		ok := true
		switch kinds[i] {
		case 'i':
			_, ok = v.(int64)
		case 'b':
			_, ok = v.([]byte)
		case 's':
			_, ok = v.(string)
		case '-':
			ok = v == nil
		}
		if !ok {
			return false
		}
	}
	return true
}

func (f *found) session(id int64) *foundSession {
	s := f.sessions[id]
	if s == nil {
		s = &foundSession{records: make(map[int64]place)}
		f.sessions[id] = s
	}
	return s
}

func (f *found) noteSession(id int64, v []any) {
	name := furl.SessionID(v[2].(string))
	if storage.ReservedID(name) {
		name = storage.UnreservedID(name, 0)
	}
	count := v[3].(int64)
	if !storage.ValidID(name) || count < 0 || count > maxSeq {
		return
	}
	s := f.session(id)
	if s.named && s.count > count {
		return // an older copy of the row
	}
	s.named, s.tenant, s.name, s.count, s.created, s.updated = true, v[1].(int64), name, count, v[6].(int64), v[7].(int64)
	text, ok := v[9].([]byte)
	meta := &storage.Meta{}
	if ok && json.Unmarshal(text, meta) == nil {
		s.meta = meta
	}
}

// save writes a session to the new store and adds its id to taken.
func (f *found) save(ctx context.Context, store *Store, id int64, taken map[furl.SessionKey]bool) (SalvagedSession, error) {
	s := f.sessions[id]
	records, told := f.restore(id, s)
	told.NameLost = !s.named
	told.Session = cmp.Or(s.name, furl.SessionID(fmt.Sprintf("recovered-%d", id)))
	if told.Tenant, told.TenantLost = f.tenantOf(s); told.TenantLost {
		told.Tenant = furl.Tenant(fmt.Sprintf("unknown-%d", s.tenant))
	}
	for try := 1; taken[told.SessionKey]; try++ {
		told.Session = storage.UnreservedID(told.Session, try)
	}
	if len(records) == 0 {
		return told, nil
	}
	taken[told.SessionKey] = true
	meta := s.meta
	if meta == nil {
		meta = &storage.Meta{}
	}
	if storage.ReservedID(meta.ForkOf) {
		meta.ForkOf = storage.UnreservedID(meta.ForkOf, 0)
	}
	for len(records) > 0 {
		n := min(len(records), chunkRecords)
		b := storage.Batch{Records: records[:n], Meta: meta, Contents: f.contentsOf(s, records[:n])}
		if err := store.Append(ctx, told.SessionKey, b); err != nil {
			return told, err
		}
		records = records[n:]
	}
	if !s.named {
		return told, nil
	}
	err := store.do(ctx, &job{do: func(w *writer) error {
		ses, err := w.existing(told.SessionKey)
		if err != nil {
			return err
		}
		delete(w.sessions, told.SessionKey)
		return w.exec("UPDATE sessions SET created = ?, updated = ? WHERE id = ?", s.created, s.updated, ses.id)
	}})
	return told, err
}

// tenantOf returns the tenant of a session. If it is lost and the store had
// several tenants, the session is assigned to none of them, because tenants
// are isolated.
func (f *found) tenantOf(s *foundSession) (tenant furl.Tenant, lost bool) {
	if t, ok := f.tenants[s.tenant]; ok && s.named {
		return t, false
	}
	ids := make(map[int64]bool)
	for id := range f.tenants {
		ids[id] = true
	}
	for _, other := range f.sessions {
		if other.named {
			ids[other.tenant] = true
		}
	}
	if len(ids) > 1 {
		return "", true
	}
	for id := range ids {
		tenant = f.tenants[id] // "" if it is lost, the tenant of single-user stores
	}
	return tenant, false
}

// maxHole bounds the run of missing records that a damaged number can cause.
const maxHole = 1 << 16

// restore reads the records of a session and makes a valid log of them.
func (f *found) restore(id int64, s *foundSession) ([]furl.Record, SalvagedSession) {
	var told SalvagedSession
	lose := func(first, last furl.Seq) {
		if n := len(told.Lost); n > 0 && told.Lost[n-1].Last == first-1 {
			told.Lost[n-1].Last = last
		} else {
			told.Lost = append(told.Lost, SeqRange{first, last})
		}
	}
	sound := make(map[furl.Seq]furl.Record)
	for seq := range s.records {
		if r, err := f.record(id, s, seq); err == nil {
			sound[r.Seq] = r
		}
	}
	log := furl.NewLog()
	instead := make(map[furl.Seq]furl.Seq) // the record that a lost one followed
	after := make(map[furl.Seq]bool)       // records that follow a lost one
	var holes []furl.Record
	next := furl.Seq(1)
	for _, seq := range slices.Sorted(maps.Keys(sound)) {
		if seq-next > maxHole {
			break
		}
		for ; next <= seq; next++ {
			r, ok := sound[next]
			if to, lost := instead[r.Parent]; lost && ok {
				r.Parent, after[next] = to, true
			}
			if after[next] = after[next] || after[r.Parent]; after[next] {
				r.Chain = furl.Digest{}
			}
			if n := len(holes); n > 0 && ok {
				holes[n-1].Parent = r.Parent // it may have been a rewind
			}
			if ok && log.Load(append(slices.Clone(holes), r)) == nil {
				holes = holes[:0]
				told.Saved++
				continue
			}
			instead[next] = log.Head()
			holes = append(holes, furl.Record{Seq: next, Parent: log.Head(), By: furl.Furl, Body: &furl.Head{From: log.Head()}})
			lose(next, next)
		}
	}
	last := furl.Seq(s.count)
	for seq := range s.records {
		if seq := furl.Seq(seq); seq > last && seq < next+maxHole {
			last = seq
		}
	}
	if next <= last {
		lose(next, last)
	}
	return log.Records(0), told
}

// record reads a record and its body.
func (f *found) record(id int64, s *foundSession, seq int64) (furl.Record, error) {
	at, ok := s.records[seq]
	if !ok {
		return furl.Record{}, errCell
	}
	_, v, err := f.row(at)
	if err != nil || !like(v, "-ib????") {
		return furl.Record{}, errCell
	}
	r := fetched{id: recordID(id, seq), sum: v[1].(int64), head: v[2].([]byte)}
	codec, size, data := v[3], v[4], v[5]
	if big, ok := v[6].(int64); ok {
		_, b, err := f.row(f.bodies[big])
		if err != nil || !like(b, "-ibiib") {
			return furl.Record{}, errCell
		}
		codec, size, data = b[3], b[4], b[5]
	}
	if codec != nil {
		n, ok := codec.(int64)
		m, also := size.(int64)
		if !ok || !also {
			return furl.Record{}, errCell
		}
		r.body.codec.Int64, r.body.codec.Valid = n, true
		r.body.size.Int64, r.body.size.Valid = m, true
		r.body.data, _ = data.([]byte)
	}
	return r.open(seq)
}

// contentsOf returns the contents that records of a session refer to, as far as
// they are readable.
func (f *found) contentsOf(s *foundSession, records []furl.Record) (contents [][]byte) {
	content := func(d furl.Digest) ([]byte, error) {
		id, ok := f.digests[bodyKey{s.tenant, d}]
		if !ok {
			return nil, storage.ErrNoContent
		}
		_, v, err := f.row(f.bodies[id])
		if err != nil || !like(v, "-ibiib") {
			return nil, storage.ErrNoContent
		}
		body, err := unpack(v[3].(int64), v[4].(int64), v[5].([]byte))
		if err != nil || furl.DigestOf(body) != d || len(body) > storage.MaxContent {
			return nil, storage.ErrNoContent
		}
		return body, nil
	}
	contents, _ = rebuild.ContentsOf(records, content) // what is unreadable is missing
	return contents
}

// row reads a row again.
func (f *found) row(at place) (int64, []any, error) {
	buf := make([]byte, f.pages.size)
	if err := f.pages.read(at.page, buf); err != nil {
		return 0, nil, err
	}
	return f.pages.row(buf, at.at)
}
