package storage

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/furlhq/furl"
)

// InfoReader is the ability to read a session and its description at once. In a fleet each
// request may have to read what another process has recorded, so it should not take several
// statements.
type InfoReader interface {
	// ReadInfo returns the description of a session, and its records with numbers above
	// after, as Store.Read does. Only the first records, up to about 1 MB, are read before
	// it returns, so that the caller can decide by the description whether to read the
	// others. A session that does not exist is an error wrapping ErrNoSession.
	ReadInfo(ctx context.Context, key furl.SessionKey, after furl.Seq) (SessionInfo, iter.Seq2[furl.Record, error], error)
}

// ReadInfo is InfoReader.ReadInfo for any store.
func ReadInfo(ctx context.Context, s Store, key furl.SessionKey, after furl.Seq) (SessionInfo, iter.Seq2[furl.Record, error], error) {
	if r, ok := s.(InfoReader); ok {
		return r.ReadInfo(ctx, key, after)
	}
	for info, err := range s.Sessions(ctx, key.Tenant, SessionQuery{Prefix: string(key.Session)}) {
		if err != nil {
			return SessionInfo{}, nil, err
		}
		if info.Session == key.Session {
			return info, s.Read(ctx, key, after), nil
		}
	}
	return SessionInfo{}, nil, fmt.Errorf("read session %.140q: %w", key.Session, ErrNoSession)
}

// Info returns the description of a session, by ReadInfo without records. On a store that is
// divided over servers it asks one of them, where Sessions asks all. A session that does not
// exist is an error wrapping ErrNoSession.
func Info(ctx context.Context, s Store, key furl.SessionKey) (SessionInfo, error) {
	info, _, err := ReadInfo(ctx, s, key, math.MaxInt64)
	return info, err
}
