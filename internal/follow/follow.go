// Package follow imports what agents add to their recordings while they work.
//
// It looks at the folders every few seconds, and reads what is new or has changed,
// newest first. It remembers what it has read, across restarts too. Of a large file
// that grows, it reads the end: if the last records of that equal those that it has
// read before, the rest is new. Otherwise it reads the file again.
//
// The last step of a file that has just changed may be incomplete: some agents write a
// reply in parts. It is imported when another step follows, or when the file has not
// changed for a while.
package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// Target is where recordings are imported to.
type Target interface {
	// Import imports the sessions of a recording, or what they have in addition.
	Import(ctx context.Context, rec *transcript.Recording) ([]Imported, error)
	// Append adds records to a session. If the session has other records than those
	// before them, the error wraps furl.ErrConflict.
	Append(ctx context.Context, key furl.SessionKey, records []furl.Record) error
}

// Imported says what became of a session of a recording.
type Imported struct {
	Key furl.SessionKey
	// Same reports whether the session has the records of the recording and no others.
	Same bool
}

// Options are the options of a Follower.
type Options struct {
	// Places returns the folders and databases to follow. Those that do not exist are ignored. It is
	// called each time that the Follower looks for changes.
	Places func() []string
	// State is the file that remembers what was imported, and Lock the file that lets
	// one process at a time follow. If empty, there is none.
	State, Lock string
	// Forget ignores the file State, because the store is new.
	Forget bool
	// Counter measures messages.
	Counter furl.Counter
	// Interval is how often to look for changes. If zero, 2 seconds.
	Interval time.Duration
	// Settle is how long a file must not change until its last step is complete. If
	// zero, 30 seconds.
	Settle time.Duration
	// Pause is how many times as long as reading a file took the Follower waits before
	// it reads the file again, at most a minute. If zero, 20.
	Pause int
	// Logger gets files that cannot be read, without content. If nil, nothing is logged.
	Logger *slog.Logger
}

// Follower imports recordings as they grow.
type Follower struct {
	to    Target
	o     Options
	log   *slog.Logger
	state *state
	hot   map[string]*hotFile
	next  map[string]time.Time // when a file may be read again
	units map[string]unitCheck // folders that store a session in many files

	mu     sync.Mutex
	status Status
}

// Status is what a Follower is doing.
type Status struct {
	// Done and Found are the files that were imported and found at the first look.
	// First reports whether everything that was there at the beginning is imported.
	Done, Found int
	First       bool
	// Elsewhere reports that another process follows.
	Elsewhere bool
}

// New returns a Follower. Run starts it.
func New(to Target, o Options) *Follower {
	o.Interval = cmp.Or(o.Interval, 2*time.Second)
	o.Settle = cmp.Or(o.Settle, 30*time.Second)
	o.Pause = cmp.Or(o.Pause, pauseFactor)
	f := &Follower{to: to, o: o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler))}
	f.hot, f.next, f.units = make(map[string]*hotFile), make(map[string]time.Time), make(map[string]unitCheck)
	return f
}

// Status returns what the Follower is doing.
func (f *Follower) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

func (f *Follower) setStatus(change func(*Status)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.status)
}

// lockEvery is how often to try to follow in place of a process that has ended.
const lockEvery = 5 * time.Second

// Run follows the folders until ctx ends. While another process follows, it waits.
func (f *Follower) Run(ctx context.Context) error {
	for {
		unlock, err := lock(f.o.Lock)
		if err == nil {
			defer unlock()
			break
		}
		if !errors.Is(err, errLocked) {
			return fmt.Errorf("follow: %w", err)
		}
		f.setStatus(func(s *Status) { s.Elsewhere = true })
		if !sleep(ctx, lockEvery) {
			return nil
		}
	}
	f.setStatus(func(s *Status) { s.Elsewhere = false })
	f.state = loadState(f.o.State, f.o.Forget, f.log)
	defer f.state.save()
	for first := true; ; first = false {
		if err := f.look(ctx, first); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			f.log.Warn("cannot import recordings; trying again", "error", err)
			if !sleep(ctx, lockEvery) {
				return nil
			}
		}
		f.state.saveSometimes()
		if !sleep(ctx, f.o.Interval) {
			return nil
		}
	}
}

// sleep waits, and reports false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// maxFailed is how many files in a row may fail before the look is ended.
const maxFailed = 4

// look imports what has changed. The error is one of the target.
func (f *Follower) look(ctx context.Context, first bool) error {
	found := f.changed()
	if first {
		f.setStatus(func(s *Status) { s.Found = len(found) })
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return b.seen.at.Compare(a.seen.at) })
	failed := 0
	for _, c := range found {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := f.read(ctx, c)
		switch {
		case err == nil:
			failed = 0
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			f.next[c.path] = time.Now().Add(maxPause)
			if failed++; failed == maxFailed { // it is the store, and not a file
				return err
			}
			f.log.Warn("cannot import a recording; trying again later", "error", err)
		}
		if first {
			f.setStatus(func(s *Status) { s.Done++ })
			f.state.saveSometimes()
		}
	}
	f.setStatus(func(s *Status) { s.First = true })
	return nil
}
