package recorded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/join"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// sourceGateway is the Source of sessions that earlier versions of the gateway have
// recorded. Newer ones have none.
const sourceGateway = "gateway"

// joinRecorded adds a session of a recording to the one that the gateway has recorded
// of the same conversation. It reports false if there is none: then the session is
// imported, that of a sub-agent into the tenant of the session that started it.
func (im *Importer) joinRecorded(ctx context.Context, rec *transcript.Recording, s *transcript.Session, meta *storage.Meta, line *Imported) (bool, error) {
	if _, ok := im.Store.(*inmem.Store); ok || s.ID == "" || rec.Format == "furl" {
		return false, nil
	}
	if err := im.findRecorded(ctx); err != nil {
		return false, err
	}
	found := im.Recorded[s.ID]
	if s.Parent != "" {
		found = slices.Concat(found, im.Recorded[s.Parent+"/"+s.ID], im.Recorded[s.Parent])
	}
	if len(found) == 0 && s.Parent == "" {
		var err error
		if found, err = im.recordedWithoutID(ctx, rec, s, meta); err != nil {
			return false, err
		}
	}
	for _, info := range found {
		if joined, err := im.join(ctx, info.SessionKey, s, meta, line, false); joined || err != nil {
			if info.Hint == "" {
				im.identified(info, s.ID)
			}
			return joined, err
		}
	}
	if of := im.Recorded[s.Parent]; s.Parent != "" && len(of) > 0 {
		line.Tenant = of[0].Tenant
	}
	return false, nil
}

// findRecorded reads which sessions of the store the gateway has recorded.
func (im *Importer) findRecorded(ctx context.Context) error {
	if im.Recorded != nil {
		return nil
	}
	im.Recorded = make(map[string][]storage.SessionInfo)
	tenants := []furl.Tenant{""}
	if lister, ok := im.Store.(storage.TenantLister); ok {
		all, err := lister.Tenants(ctx)
		if err != nil {
			return err
		}
		tenants = append(tenants, slices.DeleteFunc(all, func(t furl.Tenant) bool { return t == "" })...)
	}
	for _, tenant := range tenants {
		for info, err := range im.Store.Sessions(ctx, tenant, storage.SessionQuery{}) {
			if err != nil {
				return err
			}
			im.noteProject(&info.Meta)
			if info.Source == "" && (info.Hint != "" || info.Imported == 0) || info.Source == sourceGateway {
				im.Recorded[info.Hint] = append(im.Recorded[info.Hint], info)
			}
		}
	}
	return nil
}

const (
	// apart is how far the clocks of an agent and of the gateway may differ.
	apart = time.Minute
	// maxCompared is how many sessions without an id are read to find that of a recording.
	maxCompared = 50
)

// recordedWithoutID returns the session that the gateway has recorded of an agent that sends no id of its
// sessions: the one with the most replies of the recording, by the ids of responses or calls.
func (im *Importer) recordedWithoutID(ctx context.Context, rec *transcript.Recording, s *transcript.Session, meta *storage.Meta) ([]storage.SessionInfo, error) {
	records := s.Log.Records(0)
	from, to := oldestOf(records), NewestOf(records)
	var found []storage.SessionInfo
	most, compared := 0, 0
	for _, info := range slices.Backward(im.Recorded[""]) {
		if agents.Name(info.Client) != agents.Name(rec.Agent) || info.Project != "" && meta.Project != "" && info.Project != meta.Project ||
			info.Created.After(to.Add(apart)) || info.Updated.Before(from.Add(-apart)) {
			continue
		}
		if compared++; compared > maxCompared {
			break
		}
		log, err := im.read(ctx, info.SessionKey)
		if err != nil {
			return nil, err
		}
		if same := join.Compare(log, s.Log); same.KnownByID > 0 && same.Known > most {
			found, most = []storage.SessionInfo{info}, same.Known
		}
	}
	return found, nil
}

// identified notes the agent's id of a session that was recorded without one.
func (im *Importer) identified(info storage.SessionInfo, id string) {
	im.Recorded[""] = slices.DeleteFunc(im.Recorded[""], func(o storage.SessionInfo) bool { return o.SessionKey == info.SessionKey })
	im.Recorded[id] = append(im.Recorded[id], info)
}

// oldestOf returns the time of the oldest record, zero if there is none.
func oldestOf(records []furl.Record) (oldest time.Time) {
	for _, r := range records {
		if !r.At.IsZero() && (oldest.IsZero() || r.At.Before(oldest)) {
			oldest = r.At
		}
	}
	return oldest
}

// join adds what a stored session lacks of a recording. It reports false, and changes
// nothing, if they have no reply in common, or with onlyLive, if the gateway has
// recorded no part of the session.
func (im *Importer) join(ctx context.Context, key furl.SessionKey, s *transcript.Session, meta *storage.Meta, line *Imported, onlyLive bool) (bool, error) {
	for try := 0; ; try++ {
		log, err := im.read(ctx, key)
		if err != nil {
			return false, err
		}
		if onlyLive && !slices.ContainsFunc(log.Records(0), func(r furl.Record) bool { return r.By == furl.Upstream }) {
			return false, nil
		}
		had := log.Len()
		automatic := session.Title(log.Records(0))
		done := join.Add(log, s.Log)
		if done.Known == 0 {
			return false, nil
		}
		if done.Refused > 0 {
			line.Notes = append(slices.Clone(line.Notes), fmt.Sprintf("%s not added: the session recorded by the gateway has an incomplete step there", numbers.Count(done.Refused, "message")))
		}
		info, err := im.Info(ctx, key)
		if err != nil {
			return false, err
		}
		now := info.Meta.Clone()
		if ownSession(&info, s) {
			now = describedBy(now, *meta, automatic)
		}
		fresh := log.Records(furl.Seq(had))
		if len(fresh) > 0 {
			now.Imported, now.Recorded = furl.Seq(log.Len()), info.Newest()
			if done.Newest.After(now.Recorded) {
				now.Recorded = done.Newest
			}
		}
		line.Session, line.Added, line.Title = key.Session, len(fresh), now.Title
		line.Records, line.Messages, line.Result = log.Len(), MessagesIn(log), ImportedMore
		switch {
		case len(fresh) == 0 && reflect.DeepEqual(now, info.Meta):
			line.Result = ImportedNothing
			return true, nil
		case im.Dry:
			line.Result = ImportedDry
			return true, nil
		case len(fresh) == 0:
			err = im.Store.Append(ctx, key, storage.Batch{Meta: &now, MetaWas: &info.Meta})
		default:
			im.changed(key.Tenant)
			err = im.Add(ctx, key, &now, &info.Meta, fresh, nil)
		}
		if !errors.Is(err, furl.ErrConflict) || try == 3 {
			return true, err
		}
	}
}

// ownSession reports whether a stored session is that of a recording, and not the one
// that started it as a sub-agent.
func ownSession(info *storage.SessionInfo, s *transcript.Session) bool {
	return info.Hint == "" || string(info.Session) == s.ID || info.Hint == s.ID || info.Hint == s.Parent+"/"+s.ID
}

// describe updates the title, project and agent of a session that has all records of a
// recording.
func (im *Importer) describe(ctx context.Context, key furl.SessionKey, s *transcript.Session, meta *storage.Meta, automatic string, line *Imported) error {
	line.Result = ImportedNothing
	if im.Dry {
		return nil
	}
	for try := 1; ; try++ {
		info, err := im.Info(ctx, key)
		if err != nil {
			return err
		}
		now := describedBy(info.Meta, *meta, automatic)
		if s.ForkOf != "" && now.ForkAt == 0 { // imported by an earlier version, or before its original
			if err := im.fork(ctx, key, s, &now); err != nil {
				return err
			}
		}
		line.ForkOf = now.ForkOf
		if reflect.DeepEqual(now, info.Meta) {
			return nil
		}
		line.Result, line.Title = ImportedMore, now.Title
		err = im.Store.Append(ctx, key, storage.Batch{Meta: &now, MetaWas: &info.Meta})
		if !errors.Is(err, furl.ErrConflict) || try == 3 {
			return err
		}
	}
}

// describedBy returns the metadata of a stored session with what a recording tells of
// it. automatic is the title that the session has if nobody gave it one.
func describedBy(stored, recorded storage.Meta, automatic string) storage.Meta {
	m := stored.Clone()
	m.Hint, m.Parent, m.Project = cmp.Or(m.Hint, recorded.Hint), cmp.Or(m.Parent, recorded.Parent), cmp.Or(m.Project, recorded.Project)
	m.Client = agents.Name(cmp.Or(m.Client, recorded.Client))
	// A title that agents insert, or of a greeting, was not given by a person.
	as := furl.Record{Body: furl.TextMessage(furl.RoleUser, m.Title)}
	replaceable := m.Title == "" || m.TitleBy == storage.TitleByAgent || m.TitleBy == "" && (m.Title == automatic || session.Title([]furl.Record{as}) != m.Title)
	if replaceable && recorded.Title != "" && (recorded.TitleBy != "" || m.TitleBy == "") {
		m.Title, m.TitleBy = recorded.Title, recorded.TitleBy
	}
	return m
}

// read returns the log of a stored session.
func (im *Importer) read(ctx context.Context, key furl.SessionKey) (*furl.Log, error) {
	var records []furl.Record
	for r, err := range im.Store.Read(ctx, key, 0) {
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	log := furl.NewLog()
	return log, log.Load(records)
}

// Info returns the store's description of a session.
func (im *Importer) Info(ctx context.Context, key furl.SessionKey) (storage.SessionInfo, error) {
	for info, err := range im.Store.Sessions(ctx, key.Tenant, storage.SessionQuery{Prefix: string(key.Session)}) {
		if err != nil || info.Session == key.Session {
			return info, err
		}
	}
	return storage.SessionInfo{}, fmt.Errorf("read session %s: %w", key.Session, storage.ErrNoSession)
}

// changed notes a tenant whose sessions have new records.
func (im *Importer) changed(tenant furl.Tenant) {
	if tenant != "" && !slices.Contains(im.Tenants, tenant) {
		im.Tenants = append(im.Tenants, tenant)
	}
}
