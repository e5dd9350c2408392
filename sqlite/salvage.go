package sqlite

import (
	"bytes"
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
	// Sealed is why encrypted records of the session could not be decrypted, nil if all
	// could.
	Sealed error
}

// SalvageOptions are the options of Salvage.
type SalvageOptions struct {
	// Progress, if set, is called with the number of pages read.
	Progress func(done, total int64)
	// Encryption returns the new store with encryption. keys are the wrapped keys of
	// tenants that the damaged store has. If nil, encrypted records are lost.
	Encryption func(store *Store, keys map[furl.Tenant][]byte) (Opener, error)
}

// Opener is a store with encryption that decrypts what a damaged store has. Package
// encrypted implements it.
type Opener interface {
	storage.Store
	// OpenRecord decrypts a record. One that is not encrypted is returned as it is.
	OpenRecord(ctx context.Context, key furl.SessionKey, r furl.Record) (furl.Record, error)
	// OpenMeta decrypts the metadata of a session in place.
	OpenMeta(ctx context.Context, key furl.SessionKey, meta *storage.Meta) error
	// OpenContent returns the content with a digest. It calls read with the digest by
	// which the content is stored.
	OpenContent(ctx context.Context, key furl.SessionKey, digest furl.Digest, read func(id furl.Digest) ([]byte, error)) ([]byte, error)
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
// for writing.
//
// A record is saved if its checksum matches. A lost record is replaced by a
// Head without effect, so that the other records keep their numbers. A record
// that followed a lost one follows the one before that instead, and messages
// from there on are not matched with requests. Records that depend on a lost
// record, such as a reduction of it, are lost too. The search index and the
// vectors are not saved: they can be rebuilt. What was encrypted is decrypted to
// repair the log, and encrypted again with the same keys.
func Salvage(ctx context.Context, from, to string, o *SalvageOptions) (*Salvaged, error) {
	if o == nil {
		o = &SalvageOptions{}
	}
	done, err := salvage(ctx, from, to, o)
	if err != nil {
		return nil, fmt.Errorf("salvage store %s: %w", from, err)
	}
	return done, nil
}

func salvage(ctx context.Context, from, to string, o *SalvageOptions) (_ *Salvaged, err error) {
	p, err := openPages(from)
	if err != nil {
		return nil, err
	}
	defer p.close()
	found, err := scan(ctx, p, o.Progress)
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
	found.store = store
	if o.Encryption != nil {
		if found.opener, err = o.Encryption(store, found.keys); err != nil {
			return nil, err
		}
	}
	done := &Salvaged{Pages: p.count, Unread: found.unread}
	// The most recently used session is written last.
	order := slices.SortedFunc(maps.Keys(found.sessions), func(a, b int64) int {
		return cmp.Or(cmp.Compare(found.sessions[a].updated, found.sessions[b].updated), cmp.Compare(a, b))
	})
	taken := make(map[furl.SessionKey]bool)
	for _, id := range order {
		s, err := found.save(ctx, id, taken)
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
	store    *Store // the new one
	opener   Opener // nil: without encryption
	unread   int64
	tenants  map[int64]furl.Tenant
	sessions map[int64]*foundSession
	bodies   map[int64]place
	digests  map[bodyKey]int64 // of bodies
	keys     map[furl.Tenant][]byte
	indexed  struct { // names in indexes
		tenants  map[int64]furl.Tenant
		sessions map[int64]sessionEntry
	}
}

// sessionEntry is an entry of the index of sessions' names.
type sessionEntry struct {
	tenant int64
	name   furl.SessionID
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
	f := &found{pages: p, tenants: make(map[int64]furl.Tenant), sessions: make(map[int64]*foundSession), bodies: make(map[int64]place), digests: make(map[bodyKey]int64), keys: make(map[furl.Tenant][]byte)}
	f.indexed.tenants, f.indexed.sessions = make(map[int64]furl.Tenant), make(map[int64]sessionEntry)
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
		for _, values := range p.entries(page, buf) {
			f.noteEntry(values)
		}
	}
	for id, name := range f.indexed.tenants {
		if _, ok := f.tenants[id]; !ok {
			f.tenants[id] = name
		}
	}
	for id, e := range f.indexed.sessions {
		if s := f.sessions[id]; s != nil && !s.named {
			s.name, s.tenant = e.name, e.tenant
		}
	}
	return f, nil
}

// noteEntry records an entry of an index, whose bytes are valid until the next page is
// read. Indexes have the names of tenants and
// sessions whose rows are lost, and the keys of tenants.
func (f *found) noteEntry(v []any) {
	switch {
	case like(v, "bb"): // tenant_keys
		if keys := v[1].([]byte); json.Valid(keys) {
			f.keys[furl.Tenant(v[0].([]byte))] = bytes.Clone(keys)
		}
	case like(v, "bi"): // names of tenants
		f.indexed.tenants[v[1].(int64)] = furl.Tenant(v[0].([]byte))
	case like(v, "isi"): // names of sessions
		if name := furl.SessionID(v[1].(string)); storage.ValidID(name) && !storage.ReservedID(name) {
			f.indexed.sessions[v[2].(int64)] = sessionEntry{v[0].(int64), name}
		}
	}
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
func (f *found) save(ctx context.Context, id int64, taken map[furl.SessionKey]bool) (SalvagedSession, error) {
	s := f.sessions[id]
	was := furl.SessionKey{Session: s.name}
	told := SalvagedSession{NameLost: s.name == ""}
	if was.Tenant, told.TenantLost = f.tenantOf(s); told.TenantLost {
		was.Tenant = furl.Tenant(fmt.Sprintf("unknown-%d", s.tenant))
	}
	records := f.restore(ctx, id, s, was, &told)
	told.SessionKey = was
	told.Session = cmp.Or(told.Session, furl.SessionID(fmt.Sprintf("recovered-%d", id)))
	for try := 1; taken[told.SessionKey]; try++ {
		told.Session = storage.UnreservedID(told.Session, try)
	}
	if len(records) == 0 {
		return told, nil
	}
	taken[told.SessionKey] = true
	meta := &storage.Meta{}
	if s.meta != nil && f.openMeta(ctx, was, s.meta) == nil {
		meta = s.meta
	}
	if storage.ReservedID(meta.ForkOf) {
		meta.ForkOf = storage.UnreservedID(meta.ForkOf, 0)
	}
	for len(records) > 0 {
		n := min(len(records), chunkRecords)
		b := storage.Batch{Records: records[:n], Meta: meta, Contents: f.contentsOf(ctx, s, was, records[:n])}
		if err := f.target().Append(ctx, told.SessionKey, b); err != nil {
			return told, err
		}
		records = records[n:]
	}
	if !s.named {
		return told, nil
	}
	err := f.store.do(ctx, &job{do: func(w *writer) error {
		ses, err := w.existing(told.SessionKey)
		if err != nil {
			return err
		}
		delete(w.sessions, told.SessionKey)
		return w.exec("UPDATE sessions SET created = ?, updated = ? WHERE id = ?", s.created, s.updated, ses.id)
	}})
	return told, err
}

// target is what the sessions are written to.
func (f *found) target() storage.Store {
	if f.opener != nil {
		return f.opener
	}
	return f.store
}

// errSealed is why an encrypted record is lost without an Opener.
var errSealed = errors.New("it is encrypted")

func (f *found) openMeta(ctx context.Context, key furl.SessionKey, meta *storage.Meta) error {
	switch {
	case f.opener != nil:
		return f.opener.OpenMeta(ctx, key, meta)
	case meta.Sealed != nil:
		return errSealed
	}
	return nil
}

// tenantOf returns the tenant of a session. If it is lost and the store had
// several tenants, the session is assigned to none of them, because tenants
// are isolated.
func (f *found) tenantOf(s *foundSession) (tenant furl.Tenant, lost bool) {
	if t, ok := f.tenants[s.tenant]; ok && s.name != "" {
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

// restore reads the records of a session and makes a valid log of them. key is that of
// the damaged store.
func (f *found) restore(ctx context.Context, id int64, s *foundSession, key furl.SessionKey, told *SalvagedSession) []furl.Record {
	lose := func(first, last furl.Seq) {
		if n := len(told.Lost); n > 0 && told.Lost[n-1].Last == first-1 {
			told.Lost[n-1].Last = last
		} else {
			told.Lost = append(told.Lost, SeqRange{first, last})
		}
	}
	sound := make(map[furl.Seq]furl.Record)
	for seq := range s.records {
		r, err := f.record(id, s, seq)
		if err != nil {
			continue
		}
		if r, err = f.openRecord(ctx, key, r); err != nil {
			told.Sealed = err
			continue
		}
		sound[r.Seq] = r
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
	return log.Records(0)
}

func (f *found) openRecord(ctx context.Context, key furl.SessionKey, r furl.Record) (furl.Record, error) {
	if f.opener != nil {
		return f.opener.OpenRecord(ctx, key, r)
	}
	if _, ok := r.Body.(*furl.Sealed); ok {
		return r, errSealed
	}
	return r, nil
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
func (f *found) contentsOf(ctx context.Context, s *foundSession, key furl.SessionKey, records []furl.Record) (contents [][]byte) {
	stored := func(d furl.Digest) ([]byte, error) {
		id, ok := f.digests[bodyKey{s.tenant, d}]
		if !ok {
			return nil, storage.ErrNoContent
		}
		_, v, err := f.row(f.bodies[id])
		if err != nil || !like(v, "-ibiib") {
			return nil, storage.ErrNoContent
		}
		codec := v[3].(int64)
		body, err := unpack(codec, v[4].(int64), v[5].([]byte))
		if err != nil || codec != codecSealed && furl.DigestOf(body) != d || len(body) > storage.MaxContent+storage.MaxSealed {
			return nil, storage.ErrNoContent
		}
		return body, nil
	}
	content := func(d furl.Digest) ([]byte, error) {
		if f.opener == nil {
			return stored(d)
		}
		body, err := f.opener.OpenContent(ctx, key, d, stored)
		if err != nil {
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
