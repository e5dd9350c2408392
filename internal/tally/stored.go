package tally

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/storage"
)

// StoredSession is what a stored session was billed, and what the store says of it.
type StoredSession struct {
	billed.Session
	Info storage.SessionInfo
	// Records are its log, if that was asked for.
	Records []furl.Record
}

// Stored reads what the sessions of a tenant that have changed since a time were billed. models describes the models of
// a format, and name gives the agent of a Meta.Client. Sessions whose keys were destroyed are left out. An error
// that has a session is about that one. logs: with their logs.
func Stored(ctx context.Context, store storage.Store, tenant furl.Tenant, since time.Time, models func(furl.Format) billed.Models, name func(client string) string, logs bool) iter.Seq2[StoredSession, error] {
	return func(yield func(StoredSession, error) bool) {
		for info, err := range store.Sessions(ctx, tenant, storage.SessionQuery{Since: since}) {
			if err != nil {
				yield(StoredSession{}, fmt.Errorf("list sessions: %w", err))
				return
			}
			s, err := readStored(ctx, store, info, models(info.Format), logs)
			if errors.Is(err, storage.ErrDestroyed) || errors.Is(err, storage.ErrNoSession) {
				continue
			}
			s.Agent = name(info.Client)
			for i := range s.Entries {
				s.Entries[i].Agent = s.Agent
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

func readStored(ctx context.Context, store storage.Store, info storage.SessionInfo, models billed.Models, logs bool) (StoredSession, error) {
	out := StoredSession{Info: info}
	out.ID, out.Parent, out.Title, out.Project = string(info.Session), info.Parent, info.Title, info.Project
	var records []furl.Record
	for r, err := range store.Read(ctx, info.SessionKey, 0) {
		if err != nil {
			return out, fmt.Errorf("read session %s: %w", info.Session, err)
		}
		if m, ok := r.Body.(*furl.Message); ok && !logs { // its content is not needed
			r.Body = &furl.Message{Role: m.Role}
		}
		records = append(records, r)
	}
	for e := range billed.OfStored(info.Session, &info.Meta, records, models) {
		out.Entries = append(out.Entries, e)
	}
	if logs {
		out.Records = records
	}
	return out, nil
}
