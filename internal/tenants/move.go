package tenants

import (
	"context"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/internal/recorded"
	"github.com/furlhq/furl/internal/usage"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/storage"
)

// Moved is one session of furl tenants move --json.
type Moved struct {
	Session furl.SessionID `json:"session"`
	// As is its id at the new tenant. It differs if that tenant already has a
	// session with the id.
	As       furl.SessionID `json:"as"`
	Title    string         `json:"title"`
	Messages int            `json:"messages"`
}

// Mover moves sessions. It copies a session and then deletes the original.
type Mover struct {
	recorded.Importer
	From, To furl.Tenant
	Moved    func(furl.SessionID) error // called after each
}

// Sessions moves the sessions with these names or beginnings of names, or all, and
// returns those that were moved.
func (m *Mover) Sessions(ctx context.Context, names []string) ([]Moved, error) {
	moved := []Moved{}
	if m.From == m.To {
		return moved, usage.Errorf("source and destination are the same tenant %s", Word(m.From))
	}
	deleter, ok := m.Store.(storage.Deleter)
	if !ok {
		return moved, errors.New("this store does not support deleting, which moving requires")
	}
	infos, err := m.chosen(ctx, names)
	if err != nil {
		return moved, err
	}
	for _, info := range infos {
		one, err := m.session(ctx, deleter, info)
		if err != nil {
			return moved, fmt.Errorf("move session %s: %w", info.Session, err)
		}
		moved = append(moved, one)
		if m.Dry {
			continue
		}
		if err := m.Moved(info.Session); err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// chosen returns the sessions with these names.
func (m *Mover) chosen(ctx context.Context, names []string) (chosen []storage.SessionInfo, err error) {
	if len(names) == 0 {
		names = []string{""}
	}
	seen := make(map[furl.SessionID]bool)
	for _, name := range names {
		var found []storage.SessionInfo
		for info, err := range m.Store.Sessions(ctx, m.From, storage.SessionQuery{Prefix: name}) {
			if err != nil {
				return nil, err
			}
			if string(info.Session) == name {
				found = []storage.SessionInfo{info}
				break
			}
			found = append(found, info)
		}
		if len(found) == 0 {
			if name == "" {
				return nil, fmt.Errorf("tenant %s has no sessions", Word(m.From))
			}
			return nil, fmt.Errorf("tenant %s, session %q: %w", Word(m.From), name, storage.ErrNoSession)
		}
		if name != "" && len(found) > 1 {
			return nil, usage.Errorf("ambiguous session %q: %s start with it", name, numbers.Count(len(found), "session"))
		}
		for _, info := range found {
			if !seen[info.Session] {
				seen[info.Session] = true
				chosen = append(chosen, info)
			}
		}
	}
	return chosen, nil
}

// session moves a session, including records that are appended meanwhile.
func (m *Mover) session(ctx context.Context, deleter storage.Deleter, info storage.SessionInfo) (Moved, error) {
	line := Moved{Session: info.Session, As: info.Session, Title: info.Title, Messages: info.Messages}
	if err := storage.CheckHeld(ctx, m.Store, info.SessionKey); err != nil { // its original would be deleted
		return line, err
	}
	for copied := -1; ; {
		var records []furl.Record
		for r, err := range m.Store.Read(ctx, info.SessionKey, 0) {
			if err != nil {
				return line, err
			}
			records = append(records, r)
		}
		if len(records) == copied {
			if err := deleter.Delete(ctx, info.SessionKey); err != nil {
				return line, err
			}
			return line, workspace.DeleteCopies(info.SessionKey) // furl chat does not continue a session of a tenant
		}
		if err := m.copy(ctx, &line, info, records); err != nil || m.Dry {
			return line, err
		}
		copied = len(records)
	}
}

// contentsIn reads the contents of a session.
func contentsIn(ctx context.Context, store storage.Store, key furl.SessionKey) rebuild.Contents {
	return func(d furl.Digest) ([]byte, error) {
		if c, ok := store.(storage.ContentStore); ok {
			return c.Content(ctx, key, d)
		}
		return nil, storage.ErrNoContent
	}
}

// copy adds the records to a session of the new tenant. It chooses another id if that
// tenant has a different session with this one.
func (m *Mover) copy(ctx context.Context, line *Moved, info storage.SessionInfo, records []furl.Record) error {
	// Keep its time, which retention and lists use.
	meta := info.Meta
	meta.Imported, meta.Recorded = furl.Seq(len(records)), info.Newest()
	for n := 1; ; n++ {
		key := furl.SessionKey{Tenant: m.To, Session: line.As}
		common, stored, err := recorded.Common(ctx, m.Store, key, records)
		switch {
		case err != nil:
			return err
		case common == stored && !m.Dry:
			return m.Add(ctx, key, &meta, nil, records[stored:], contentsIn(ctx, m.Store, info.SessionKey))
		case common == stored, common == len(records):
			return nil
		case n >= 1000:
			return errors.New("too many sessions with that id")
		}
		line.As = furl.SessionID(fmt.Sprintf("%s.%d", info.Session, n+1))
	}
}
