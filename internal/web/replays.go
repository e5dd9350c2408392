package web

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/furlhq/furl"
)

// Bounds on replays in the background.
const (
	maxReplaying = 2                // that compute at the same time
	maxReplays   = 16               // that compute or wait
	maxOfTenant  = 8                // of these, of one of several tenants
	maxReplayed  = 16               // results in memory
	maxReplayMem = 32 << 20         // bytes of these results
	patience     = 60 * time.Second // without a browser that asks, after which a replay is canceled
)

// replays are the replays of sessions that were asked for, and their newest results.
type replays struct {
	mu      sync.Mutex
	running map[furl.SessionKey]*replaying // one for each session
	slots   chan struct{}
	results []*replayed // most recently used first
	log     *slog.Logger
}

func newReplays(log *slog.Logger) *replays {
	return &replays{log: log, running: make(map[furl.SessionKey]*replaying), slots: make(chan struct{}, maxReplaying)}
}

// replayOf names a replay: a session, and the policies to compare, as a list with commas.
type replayOf struct {
	session  furl.SessionKey
	policies string
}

// replaying is a replay that has not finished, or that has failed.
type replaying struct {
	of     replayOf
	cancel context.CancelFunc
	leave  *time.Timer // cancels it

	mu          sync.Mutex
	started     bool // it has a slot
	done, total int  // of its runs
	err         error
}

// replayed is the result of a replay.
type replayed struct {
	of      replayOf
	Records furl.Seq // of the session when it was replayed
	At      time.Time
	HTML    []byte
	Choices []replayChoice
}

// replayChoice is a policy that was replayed and can be applied.
type replayChoice struct {
	Policy  string
	Outcome string // what it would have changed
	Best    bool
}

// errBusy is why no replay can be started.
var errBusy = errors.New("too many replays are waiting: try again when one has finished")

// errOther is why a replay cannot be started: one of the same session computes.
var errOther = errors.New("another replay of this session is running: wait for it or cancel it")

// start computes a replay in the background, unless it computes already. run gets a
// function that reports its progress.
func (r *replays) start(of replayOf, run func(context.Context, func(done, total int)) (*replayed, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.running[of.session]; old != nil && old.failure() == nil {
		if old.of == of {
			return nil
		}
		return errOther
	} else if old != nil {
		old.leave.Stop()
		delete(r.running, of.session)
	}
	if len(r.running) >= maxReplays {
		r.dropFailed()
		if len(r.running) >= maxReplays {
			return errBusy
		}
	}
	if of.session.Tenant != "" && r.ofTenant(of.session.Tenant) >= maxOfTenant {
		return errBusy
	}
	ctx, cancel := context.WithCancel(context.Background())
	job := &replaying{of: of, cancel: cancel}
	job.leave = time.AfterFunc(patience, func() { r.drop(job) })
	r.running[of.session] = job
	go func() {
		defer cancel()
		defer func() {
			if x := recover(); x != nil { // nothing else would catch it, and the gateway would end
				r.log.Error("a replay panicked", "session", of.session.Session, "error", x, "stack", string(debug.Stack()))
				r.finish(job, nil, errors.New("internal error; furl's log has the reason"))
			}
		}()
		result, err := r.compute(ctx, job, run)
		r.finish(job, result, err)
	}()
	return nil
}

// compute waits for a slot and runs a replay.
func (r *replays) compute(ctx context.Context, job *replaying, run func(context.Context, func(done, total int)) (*replayed, error)) (*replayed, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r.slots <- struct{}{}:
	}
	defer func() { <-r.slots }()
	job.progress(0, 0)
	return run(ctx, job.progress)
}

// finish keeps the result of a replay, or its error. A canceled one leaves nothing.
func (r *replays) finish(job *replaying, result *replayed, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[job.of.session] != job {
		return // canceled
	}
	if err != nil {
		job.mu.Lock()
		job.err = err
		job.mu.Unlock()
		return // until somebody sees it, or for the rest of its time
	}
	job.leave.Stop()
	delete(r.running, job.of.session)
	result.of = job.of
	r.results = slices.DeleteFunc(r.results, func(old *replayed) bool { return old.of == job.of })
	r.results = append([]*replayed{result}, r.results...)
	size := 0
	for i, kept := range r.results {
		if size += len(kept.HTML); i > 0 && (i == maxReplayed || size > maxReplayMem) {
			clear(r.results[i:])
			r.results = r.results[:i]
			break
		}
	}
}

// ofTenant returns the number of replays of a tenant that compute or wait.
func (r *replays) ofTenant(tenant furl.Tenant) (n int) {
	for key, job := range r.running {
		if key.Tenant == tenant && job.failure() == nil {
			n++
		}
	}
	return n
}

// dropFailed forgets replays that have failed.
func (r *replays) dropFailed() {
	for key, job := range r.running {
		if job.failure() != nil {
			job.leave.Stop()
			delete(r.running, key)
		}
	}
}

// cancel ends a replay.
func (r *replays) cancel(of replayOf) {
	r.mu.Lock()
	job := r.running[of.session]
	r.mu.Unlock()
	if job != nil && job.of == of {
		r.drop(job)
	}
}

// drop ends a replay, unless another one has taken its place.
func (r *replays) drop(job *replaying) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running[job.of.session] == job {
		job.leave.Stop()
		job.cancel()
		delete(r.running, job.of.session)
	}
}

// forget cancels the replay of a session and drops its results.
func (r *replays) forget(session furl.SessionKey) {
	r.mu.Lock()
	job := r.running[session]
	r.results = slices.DeleteFunc(r.results, func(old *replayed) bool { return old.of.session == session })
	r.mu.Unlock()
	if job != nil {
		r.drop(job)
	}
}

// ask returns what there is of a replay: its result, or the replay of its session that
// computes or has failed, which may be of other policies. It lets that continue.
func (r *replays) ask(of replayOf) (*replayed, *replaying) {
	r.mu.Lock()
	defer r.mu.Unlock()
	job := r.running[of.session]
	if job != nil {
		job.leave.Reset(patience)
	}
	for i, kept := range r.results {
		if kept.of == of {
			copy(r.results[1:i+1], r.results[:i])
			r.results[0] = kept
			return kept, job
		}
	}
	return nil, job
}

// progress notes that done of total runs have finished.
func (j *replaying) progress(done, total int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.started, j.done, j.total = true, done, total
}

// failure is the error of a replay that has failed.
func (j *replaying) failure() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// State returns the progress of a replay: whether it computes, and how many of its runs
// have finished.
func (j *replaying) State() (started bool, done, total int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.started, j.done, j.total
}
