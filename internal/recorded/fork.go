package recorded

import (
	"context"
	"errors"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// maxOriginals bounds the stored sessions that are compared with one of a recording.
const maxOriginals = 8

// fork notes in the metadata of a session of a recording which stored session it is a fork of, and
// up to which of its records. The recording names that session, or else the replies
// are in a stored one. A named session that is not stored is noted without a record: see adopt.
func (im *Importer) fork(ctx context.Context, key furl.SessionKey, s *transcript.Session, meta *storage.Meta) error {
	if _, ok := im.Store.(*inmem.Store); ok { // a recording that a command reads
		return nil
	}
	names := []string{s.ForkOf, s.Parent}
	for i, name := range names {
		if name == "" {
			continue
		}
		original := SessionID(&transcript.Session{ID: name})
		if original == key.Session {
			continue
		}
		log, err := im.stored(ctx, furl.SessionKey{Tenant: key.Tenant, Session: original})
		if err != nil {
			return err
		}
		if log == nil && i > 0 {
			continue
		}
		at := furl.Seq(0)
		if log != nil {
			at = copiedRecords(s.Log, log)
		}
		if log == nil || at > 0 {
			meta.ForkOf, meta.ForkAt = original, at
			return nil
		}
	}
	if s.ForkOf != "" {
		return nil
	}
	return im.copyOf(ctx, key, s, meta)
}

// copyOf looks for a stored session that has replies of a session, although that names none.
func (im *Importer) copyOf(ctx context.Context, key furl.SessionKey, s *transcript.Session, meta *storage.Meta) error {
	own := make(map[transcript.ReplyID]bool)
	for _, id := range s.Replies() {
		own[id] = true
	}
	var first furl.Digest
	for _, r := range s.Log.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok && m.Role == furl.RoleAssistant && !r.Chain.IsZero() {
			first = r.Chain
			break
		}
	}
	if len(own) == 0 || first.IsZero() {
		return nil
	}
	found, err := im.Store.Match(ctx, key.Tenant, []furl.Digest{first}, maxOriginals)
	if err != nil {
		return err
	}
	best := furl.Seq(0)
	for _, f := range found {
		if cycle, err := im.isForkOf(ctx, furl.SessionKey{Tenant: key.Tenant, Session: f.Session}, key.Session); cycle || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		log, err := im.stored(ctx, furl.SessionKey{Tenant: key.Tenant, Session: f.Session})
		if err != nil {
			return err
		}
		if log == nil || !hasReply(&transcript.Session{ID: string(f.Session), Log: log}, own) {
			continue
		}
		if at := copiedRecords(s.Log, log); at > best {
			best, meta.ForkOf, meta.ForkAt = at, f.Session, at
		}
	}
	return nil
}

// isForkOf reports whether a stored session is another one, or a fork of it or of its forks.
func (im *Importer) isForkOf(ctx context.Context, key furl.SessionKey, of furl.SessionID) (bool, error) {
	for range maxOriginals {
		if key.Session == of {
			return true, nil
		}
		info, err := im.Info(ctx, key)
		if errors.Is(err, storage.ErrNoSession) || err == nil && info.ForkOf == "" {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		key.Session = info.ForkOf
	}
	return true, nil
}

func hasReply(s *transcript.Session, ids map[transcript.ReplyID]bool) bool {
	for _, id := range s.Replies() {
		if ids[id] {
			return true
		}
	}
	return false
}

// copiedRecords returns how many records of a log, from the first, have no message that another log
// lacks. It is 0 if no reply is among them.
func copiedRecords(log, original *furl.Log) furl.Seq {
	has := make(map[furl.Digest]bool)
	for _, r := range original.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok {
			has[m.Digest] = true
		}
	}
	at, replied := furl.Seq(0), false
	for _, r := range log.Records(0) {
		m, ok := r.Body.(*furl.Message)
		if !ok || m.Digest.IsZero() { // thinking alone has no digest
			continue
		}
		if !has[m.Digest] {
			break
		}
		at, replied = r.Seq, replied || m.Role == furl.RoleAssistant
	}
	if !replied {
		return 0
	}
	return at
}

// stored returns the log of a stored session, nil if there is none.
func (im *Importer) stored(ctx context.Context, key furl.SessionKey) (*furl.Log, error) {
	log, err := im.read(ctx, key)
	if errors.Is(err, storage.ErrNoSession) {
		return nil, nil
	}
	return log, err
}

// adopt completes the forks of a new session that were imported before it.
func (im *Importer) adopt(ctx context.Context, key furl.SessionKey, log *furl.Log, meta *storage.Meta) error {
	if _, ok := im.Store.(*inmem.Store); ok {
		return nil
	}
	if err := im.findOrphans(ctx); err != nil {
		return err
	}
	im.addOrphan(key, meta)
	for fork := range im.orphans[key] {
		had, err := im.stored(ctx, fork)
		if err != nil {
			return err
		}
		delete(im.orphans[key], fork)
		at := furl.Seq(0)
		if had != nil {
			at = copiedRecords(had, log)
		}
		if at == 0 {
			continue
		}
		for try := 1; ; try++ {
			info, err := im.Info(ctx, fork)
			if err != nil {
				return err
			}
			now := info.Meta.Clone()
			now.ForkAt = at
			err = im.Store.Append(ctx, fork, storage.Batch{Meta: &now, MetaWas: &info.Meta})
			if !errors.Is(err, furl.ErrConflict) || try == 3 {
				if err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// findOrphans reads which stored forks wait for the session that they are forks of.
func (im *Importer) findOrphans(ctx context.Context) error {
	if im.orphans != nil {
		return nil
	}
	im.orphans = make(map[furl.SessionKey]map[furl.SessionKey]bool)
	for info, err := range im.Store.Sessions(ctx, "", storage.SessionQuery{}) {
		if err != nil {
			return err
		}
		im.addOrphan(info.SessionKey, &info.Meta)
	}
	return nil
}

func (im *Importer) addOrphan(key furl.SessionKey, meta *storage.Meta) {
	if meta.ForkOf == "" || meta.ForkAt > 0 || im.orphans == nil {
		return
	}
	of := furl.SessionKey{Tenant: key.Tenant, Session: meta.ForkOf}
	if im.orphans[of] == nil {
		im.orphans[of] = make(map[furl.SessionKey]bool)
	}
	im.orphans[of][key] = true
}
