package session

import (
	"context"
	"iter"
	"time"

	"github.com/furlhq/furl"
)

// Watch gives the records above a cursor with what they meant for the context,
// those that are there and then each as it is appended, by whatever process,
// until ctx ends, which ends the sequence without an error. Going on from the
// Seq of the last record that was seen loses nothing and repeats nothing.
func (s *Session) Watch(ctx context.Context, after furl.Seq) iter.Seq2[furl.Moment, error] {
	return func(yield func(furl.Moment, error) bool) {
		var appended <-chan struct{}
		if w, ok := s.all.store.(furl.Watcher); ok {
			ch, err := w.Watch(ctx, s.key)
			if err != nil {
				yield(furl.Moment{}, err)
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
		own := furl.NewLog() // events are told by the state before a record
		for {
			s.mu.Lock()
			changed := s.changed
			limit := s.model(s.meta.Model).Window
			fresh := s.log.Records(furl.Seq(own.Len()))
			s.mu.Unlock()
			seen := min(len(fresh), max(0, int(after)-own.Len()))
			if err := own.Load(fresh[:seen]); err != nil {
				yield(furl.Moment{}, err)
				return
			}
			for _, r := range fresh[seen:] {
				m := furl.Moment{Record: r, Events: furl.Events(own.State(), r, limit)}
				if err := own.Load([]furl.Record{r}); err != nil {
					yield(furl.Moment{}, err)
					return
				}
				if !yield(m, nil) {
					return
				}
			}
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
			if err := s.Refresh(ctx); err != nil {
				if ctx.Err() == nil {
					yield(furl.Moment{}, err)
				}
				return
			}
		}
	}
}
