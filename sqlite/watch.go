package sqlite

import (
	"context"
	"sync"

	"github.com/furlhq/furl"
)

// watchers are the calls of Watch. Each channel has room for one value: a
// reader that has not received it yet will see all changes when it does.
type watchers struct {
	mu    sync.Mutex
	all   map[*watcher]struct{}
	ended bool
}

type watcher struct {
	key furl.SessionKey
	ch  chan struct{}
}

// Watch implements storage.Watcher. Appends of other processes are noticed after
// at most Options.Poll; they send a value to every watcher, for whichever
// session. Deleting a session sends a value too. Closing the store closes the
// channels.
func (s *Store) Watch(ctx context.Context, key furl.SessionKey) (<-chan struct{}, error) {
	if err := s.ready(ctx); err != nil {
		return nil, s.failed("watch", err)
	}
	w := &watcher{key: key, ch: make(chan struct{}, 1)}
	if !s.watchers.add(w) {
		return nil, s.failed("watch", errClosed)
	}
	if s.write != nil {
		s.write.poll.Store(true)
	}
	context.AfterFunc(ctx, func() { s.watchers.remove(w) })
	return w.ch, nil
}

func (ws *watchers) add(w *watcher) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.ended {
		return false
	}
	if ws.all == nil {
		ws.all = make(map[*watcher]struct{})
	}
	ws.all[w] = struct{}{}
	return true
}

func (ws *watchers) remove(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if _, ok := ws.all[w]; ok {
		delete(ws.all, w)
		close(w.ch)
	}
}

// end closes all channels and refuses new ones.
func (ws *watchers) end() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.ended = true
	for w := range ws.all {
		delete(ws.all, w)
		close(w.ch)
	}
}

// notify notifies the watchers of a session.
func (ws *watchers) notify(key furl.SessionKey) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.all {
		if w.key.Tenant == key.Tenant && (w.key.Session == "" || w.key.Session == key.Session) {
			w.tell()
		}
	}
}

// notifyAll notifies all watchers.
func (ws *watchers) notifyAll() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.all {
		w.tell()
	}
}

func (w *watcher) tell() {
	select {
	case w.ch <- struct{}{}:
	default:
	}
}
