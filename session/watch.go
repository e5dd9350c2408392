package session

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/storage"
)

// Events returns the events of the records of the path after a record. limit is the context
// window in tokens.
func (s *Session) Events(after furl.Seq, limit int) ([]event.Moment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return event.Timeline(s.log, after, s.log.Head(), limit)
}

// Watch returns the records with numbers above after, with their effects on the
// context: first the existing ones, then each as it is appended by any process. The
// sequence ends without an error when ctx ends. Continue with the Seq of the last
// record to miss and repeat nothing.
//
// A moment without a record (its Seq is 0) has the warning summary_waiting: a summary
// waits for approval, see DecideSummary. It is yielded once by each Watch, and again
// after the summary has changed.
func (s *Session) Watch(ctx context.Context, after furl.Seq) iter.Seq2[event.Moment, error] {
	return func(yield func(event.Moment, error) bool) {
		var appended <-chan struct{}
		if w, ok := s.all.store.(storage.Watcher); ok {
			ch, err := w.Watch(ctx, s.key)
			if err != nil {
				yield(event.Moment{}, err)
				return
			}
			appended = ch
		}
		var tick <-chan time.Time
		if appended == nil {
			t := time.NewTicker(s.all.o.Poll)
			defer t.Stop()
			tick = t.C
		}
		own := furl.NewLog()     // events depend on the state before a record
		var told json.RawMessage // the waiting summary that was yielded
		for {
			s.mu.Lock()
			changed := s.changed
			limit := s.model(s.meta.Model).Window
			fresh := s.log.Records(furl.Seq(own.Len()))
			waits, waiting := s.waitingEvents(), s.meta.Waiting
			s.mu.Unlock()
			seen := min(len(fresh), max(0, int(after)-own.Len()))
			if err := own.Load(fresh[:seen]); err != nil {
				yield(event.Moment{}, err)
				return
			}
			for _, r := range fresh[seen:] {
				m := event.Moment{Record: r, Events: event.Of(own.State(), r, limit)}
				if err := own.Load([]furl.Record{r}); err != nil {
					yield(event.Moment{}, err)
					return
				}
				if !yield(m, nil) {
					return
				}
			}
			if len(waits) > 0 && !bytes.Equal(waiting, told) && !yield(event.Moment{Events: waits}, nil) {
				return
			}
			told = waiting
			select {
			case <-ctx.Done():
				return
			case <-changed:
				continue
			case _, ok := <-appended:
				if !ok {
					return
				}
			case <-tick:
			}
			if err := s.refresh(ctx); err != nil {
				if ctx.Err() == nil {
					yield(event.Moment{}, err)
				}
				return
			}
		}
	}
}
