package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// Inspection is one request of a recording as a policy would have sent it.
type Inspection struct {
	// Number of the request, from 1, of Requests in the session.
	Number, Requests int
	// Log is the session up to the request: the records of the recording and
	// the policy's reductions. View is what would be sent.
	Log  *furl.Log
	View *furl.View
	// Plan is the policy's plan for this request.
	Plan *furl.Plan
	// Budget is the input of the plan.
	Budget furl.Budget
	// Recorded maps records of Log to those of the recording. Records that the
	// policy added have 0.
	Recorded []furl.Seq
}

// errStop ends a run at the inspected request.
var errStop = errors.New("stop")

// Inspect replays a session under a policy up to request number at, from 1; 0 is
// the last one. It returns an error if there is no such request.
func Inspect(ctx context.Context, rec *transcript.Session, cand Candidate, window, at int, opts Options) (*Inspection, error) {
	o, err := opts.complete()
	if err != nil {
		return nil, err
	}
	s, err := prepare(ctx, rec, o)
	if err != nil {
		return nil, err
	}
	if len(s.requests) == 0 {
		return nil, errors.New("the session has no requests: it contains no model replies")
	}
	if at == 0 {
		at = len(s.requests)
	}
	if at < 1 || at > len(s.requests) {
		return nil, fmt.Errorf("invalid request number %d: the session has requests 1 to %d", at, len(s.requests))
	}
	r := &run{s: s, o: o, window: window, until: at, stopped: &Inspection{Number: at, Requests: len(s.requests)}}
	if r.policy, err = cand.New(&summarizer{r}); err != nil {
		return nil, err
	}
	if err := r.play(ctx); !errors.Is(err, errStop) {
		return nil, err
	}
	r.stopped.Log, r.stopped.Recorded = r.log, r.old
	return r.stopped, nil
}
