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
	// Log holds the session up to the request: the recording's records with
	// the policy's reductions in between. View is what would be sent.
	Log  *furl.Log
	View *furl.View
	// Plan is what the policy decided for this request.
	Plan *furl.Plan
	// Budget is what it had to go by; Budget.Size is the size it had.
	Budget furl.Budget
	// Recorded maps records of Log to those of the recording, 0 for the
	// policy's own.
	Recorded []furl.Seq
}

// errStop ends a run at the request that was asked for.
var errStop = errors.New("stop")

// Inspect plays a session under a policy up to its request number at, from 1;
// 0 is the last. It errs where there is no such request.
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
		return nil, errors.New("the session has no requests: it holds no reply of a model")
	}
	if at == 0 {
		at = len(s.requests)
	}
	if at < 1 || at > len(s.requests) {
		return nil, fmt.Errorf("the session has %d requests, there is no number %d", len(s.requests), at)
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
