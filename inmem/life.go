package inmem

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Format is the version that Stats reports; this store has no file format.
const Format = 1

// Delete implements storage.Deleter.
func (s *Store) Delete(ctx context.Context, key furl.SessionKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	ses, err := s.session(key)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	t := s.tenants[key.Tenant]
	for _, r := range ses.records {
		places := slices.DeleteFunc(t.chains[r.chain], func(p place) bool { return p.session == key.Session })
		if t.chains[r.chain] = places; len(places) == 0 {
			delete(t.chains, r.chain)
		}
	}
	for k := range ses.vectors {
		if t.vectors[k].sessions--; t.vectors[k].sessions == 0 {
			delete(t.vectors, k)
		}
	}
	if delete(t.sessions, key.Session); len(t.sessions) == 0 {
		delete(s.tenants, key.Tenant)
	}
	s.notify(key)
	return nil
}

// watcher is one call of Watch. Its channel has room for one value: a reader
// that has not received it yet will see all changes when it does.
type watcher struct {
	key furl.SessionKey
	ch  chan struct{}
}

// Watch implements storage.Watcher. Deleting a session sends a value too.
// Closing the store closes the channels.
func (s *Store) Watch(ctx context.Context, key furl.SessionKey) (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	w := &watcher{key: key, ch: make(chan struct{}, 1)}
	s.watchers[w] = struct{}{}
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unwatch(w)
	})
	return w.ch, nil
}

func (s *Store) unwatch(w *watcher) {
	if _, ok := s.watchers[w]; ok {
		delete(s.watchers, w)
		close(w.ch)
	}
}

func (s *Store) notify(key furl.SessionKey) {
	for w := range s.watchers {
		if w.key.Tenant != key.Tenant || w.key.Session != "" && w.key.Session != key.Session {
			continue
		}
		select {
		case w.ch <- struct{}{}:
		default: // a value is already pending
		}
	}
}

// Check implements storage.Checker. Data in memory does not decay, so a problem
// is a bug.
func (s *Store) Check(ctx context.Context, mend bool) iter.Seq2[storage.Problem, error] {
	return func(yield func(storage.Problem, error) bool) {
		s.mu.RLock()
		err := s.ready(ctx)
		var all []*session
		for _, t := range s.tenants {
			for _, ses := range t.sessions {
				all = append(all, ses)
			}
		}
		s.mu.RUnlock()
		if err != nil {
			yield(storage.Problem{}, fmt.Errorf("check: %w", err))
			return
		}
		for _, ses := range all {
			next := furl.Seq(0)
			for r, err := range s.Read(ctx, ses.key, 0) {
				next++
				if ctx.Err() != nil {
					yield(storage.Problem{}, ctx.Err())
					return
				}
				if errors.Is(err, storage.ErrNoSession) {
					break // deleted meanwhile
				}
				text := ""
				if err != nil {
					text = err.Error()
				} else if r.Seq != next {
					text = fmt.Sprintf("record number %d: expected %d", r.Seq, next)
				}
				if text != "" && !yield(storage.Problem{Session: ses.key, Seq: next, Text: text}, nil) {
					return
				}
			}
		}
	}
}

// Stats implements storage.Checker. Bodies counts the bytes of messages and
// contents.
func (s *Store) Stats(ctx context.Context) (storage.Stats, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return storage.Stats{}, fmt.Errorf("stats: %w", err)
	}
	st := storage.Stats{Format: Format, Place: "memory"}
	for _, t := range s.tenants {
		st.Sessions += int64(len(t.sessions))
		for _, ses := range t.sessions {
			st.Records += int64(len(ses.records))
			st.Messages += int64(ses.messages)
			st.MessageBytes += ses.bytes
			for _, r := range ses.records {
				body := len(r.body)
				if r.shared != nil {
					body = r.size
				}
				st.Bodies += int64(body)
				st.Total += int64(len(r.head) + body)
			}
			for _, c := range ses.contents {
				st.Bodies += int64(len(c))
				st.Total += int64(len(c))
			}
			for _, p := range ses.pages {
				st.Index += int64(len(p))
			}
		}
		for _, v := range t.vectors {
			st.Vectors += int64(len(v.data))
		}
	}
	st.Total += st.Index + st.Vectors
	return st, nil
}
