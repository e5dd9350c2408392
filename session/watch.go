package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/storage"
)

// Events returns the events of the records of the path after a record. limit is the context
// window in tokens.
func (s *Session) Events(after furl.Seq, limit int) (list []event.Moment, err error) {
	s.Internal().Read(func(c *open.Change) { list, err = event.Timeline(c.Log(), after, c.Log().Head(), limit) })
	return list, err
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
		if w, ok := s.store().(storage.Watcher); ok {
			ch, err := w.Watch(ctx, s.Internal().Key())
			if err != nil {
				yield(event.Moment{}, err)
				return
			}
			appended = ch
		}
		var tick <-chan time.Time
		if appended == nil {
			t := time.NewTicker(s.Internal().All().Options().Poll)
			defer t.Stop()
			tick = t.C
		}
		own := furl.NewLog()     // events depend on the state before a record
		var told json.RawMessage // the waiting summary that was yielded
		for {
			var changed <-chan struct{}
			var limit int
			var fresh []furl.Record
			var waits []event.Event
			var waiting json.RawMessage
			s.Internal().Read(func(c *open.Change) {
				changed, limit = c.Changed(), c.Model(c.Meta().Model).Window
				fresh = c.Log().Records(furl.Seq(own.Len()))
				waits, waiting = waitingEvents(c.Waiting()), c.Meta().Waiting
			})
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
			if err := s.Internal().Refresh(ctx); err != nil {
				if ctx.Err() == nil {
					yield(event.Moment{}, err)
				}
				return
			}
		}
	}
}

// codeWaiting is the code of the warning event about a summary that waits.
const codeWaiting = "summary_waiting"

// waitingEvents returns the event about a summary that has started to wait.
func waitingEvents(w *open.PendingSummary) []event.Event {
	if w == nil {
		return nil
	}
	return []event.Event{event.Warning{Code: codeWaiting, Text: fmt.Sprintf(
		"a summary of %d messages waits for approval", w.Red.Summary.Messages)}}
}
