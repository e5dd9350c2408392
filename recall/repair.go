package recall

import (
	"context"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// damageError says that pages of a session are damaged.
type damageError struct {
	key furl.SessionKey
	err error
}

func (d *damageError) Error() string {
	return fmt.Sprintf("search index of session %s: %v", d.key.Session, d.err)
}

func (d *damageError) Unwrap() error { return d.err }

// damaged adds the session to an error that is about the bytes of pages.
func damaged(key furl.SessionKey, err error) error {
	if errors.Is(err, errDamaged) {
		return &damageError{key, err}
	}
	return err
}

// damageCounts counts for each session how often a search found damaged pages.
// The search starts again each time.
type damageCounts map[furl.SessionKey]int

// maxDamage is the count at which the search reads a session without its index.
const maxDamage = 3

func (d damageCounts) skipIndex(key furl.SessionKey) bool { return d[key] >= maxDamage }

// repair rebuilds the index of a session with damaged pages. If that fails, as
// in a store that is read-only, the search reads the session without its index.
//
// key is the scope of the search. In a search of all sessions, the indexes of another
// version are rebuilt together.
func (s *Searcher) repair(ctx context.Context, key furl.SessionKey, d *damageError, counts damageCounts, out *Result) {
	counts[d.key]++
	oldVersion := errors.Is(d.err, errVersion)
	if counts[d.key] == 1 && !oldVersion {
		return // another process may be writing these pages
	}
	if oldVersion {
		s.log.Info("rebuilding a search index of another version", "session", d.key.Session)
	} else {
		s.log.Warn("rebuilding a search index", "session", d.key.Session, "err", d.err)
	}
	text := d.Error() + "; the index was rebuilt"
	if oldVersion && key.Session == "" {
		// All at once: after each session, the search starts again.
		failed, err := s.indexer.rebuildOld(ctx, key)
		for key := range failed {
			counts[key] = maxDamage
		}
		if err == nil && failed[d.key] == nil {
			return
		}
	}
	if err := s.indexer.Rebuild(ctx, d.key); err != nil && !errors.Is(err, storage.ErrNoSession) {
		counts[d.key] = maxDamage
		out.Warnings = append(out.Warnings, unrepaired(d, err))
		return
	} else if oldVersion {
		return
	}
	out.Warnings = append(out.Warnings, furl.Warning{Code: WarnIndex, Text: text})
}

func unrepaired(d *damageError, err error) furl.Warning {
	return furl.Warning{Code: WarnIndex, Text: fmt.Sprintf("%v; the messages were read instead, because the index cannot be rebuilt: %v", d, err)}
}
