package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/tool"
)

// run is one call of Agent.Run. Its methods run in the goroutine of the caller.
type run struct {
	*Agent
	yield  func(Event, error) bool
	cancel context.CancelFunc
	left   bool // the caller has left the loop

	rounds     int  // replies in a row that call recall tools
	onlyRecall bool // the last one called no other tools
}

func (r *run) emit(e Event) {
	if !r.left && !r.yield(e, nil) {
		r.left = true
		r.cancel()
	}
}

// work is the loop.
func (r *run) work(ctx context.Context, input []Input) error {
	if err := r.finishStep(ctx); err != nil {
		return err
	}
	if _, err := r.deliver(ctx, input); err != nil {
		return err
	}
	stop := ""
	for step := 0; ; step++ {
		if err := r.deliverPending(ctx); err != nil {
			return err
		}
		due, err := r.requestDue()
		switch {
		case err != nil:
			return err
		case !due || r.o.MaxSteps > 0 && step >= r.o.MaxSteps:
			r.emit(Done{Stop: stop, MaxSteps: due})
			return nil
		}
		if err := r.decideWaiting(ctx); err != nil {
			return err
		}
		x, reply, err := r.exchange(ctx)
		if err != nil {
			return err
		}
		stop = reply.Stop
		refusal := ""
		if stop != "" && !x.provider.api.Continues(stop) {
			refusal = fmt.Sprintf("Not run: the reply ended early (%s), so the call may be incomplete.", stop)
		}
		if err := r.runCalls(ctx, callsOf(reply), func(*tool.Tool) string { return refusal }); err != nil {
			return err
		}
		if err := r.prepareWaiting(ctx, x); err != nil {
			return err
		}
	}
}

// requestDue reports whether the model has something to reply to.
func (r *run) requestDue() (due bool, err error) {
	empty := false
	r.s.Internal().Read(func(c *open.Change) {
		st := c.Log().State()
		if empty = st.Len() == 0; !empty {
			_, last := st.Message(st.Len() - 1)
			due = last.Role != furl.RoleAssistant
		}
	})
	if empty {
		err = errors.New("the session has no messages: call Run with input")
	}
	return due, err
}

// deliverPending delivers what arrived during the run, and keeps what could not be
// delivered for the next run.
func (r *run) deliverPending(ctx context.Context) error {
	list := r.TakePending()
	n, err := r.deliver(ctx, list)
	if n < len(list) {
		r.mu.Lock()
		r.pending = append(list[n:len(list):len(list)], r.pending...)
		r.mu.Unlock()
	}
	return err
}

// deliver appends input of the user, and returns how many were appended.
func (r *run) deliver(ctx context.Context, input []Input) (int, error) {
	for i, in := range input {
		m, err := r.userMessage(in)
		if err != nil {
			return i, err
		}
		if ctx.Err() != nil {
			return i, interruption(ctx)
		}
		lasting, done := lasting(ctx)
		recs, err := r.s.Append(lasting, m)
		done()
		if err != nil {
			return i, fmt.Errorf("record input: %w", err)
		}
		if err := r.follow(); err != nil {
			return i + 1, err
		}
		r.emit(Delivered{Input: in, Record: recs[0].Seq})
	}
	return len(input), nil
}

func (r *run) userMessage(in Input) (*furl.Message, error) {
	if len(in.Media) == 0 {
		return furl.TextMessage(furl.RoleUser, in.Text), nil
	}
	parts := partsOf(in.Media)
	if strings.TrimSpace(in.Text) != "" {
		parts = append(parts, protocol.Part{Text: in.Text})
	}
	r.mu.Lock()
	api := r.provider.api
	r.mu.Unlock()
	m, err := api.UserMessage(parts)
	if err != nil {
		return nil, fmt.Errorf("build message: %w", err)
	}
	return m, nil
}

func partsOf(parts []tool.Part) []protocol.Part {
	list := make([]protocol.Part, len(parts))
	for i, p := range parts {
		list[i] = protocol.Part(p)
	}
	return list
}

// follow emits the events of new records. The first call of an agent reads the records
// so far.
func (r *run) follow() error {
	first := r.log == nil
	if first {
		r.log = furl.NewLog()
	}
	limit := r.s.Model(r.Model().ID).Window
	records := r.s.Records(furl.Seq(r.log.Len()))
	if first {
		return r.log.Load(records)
	}
	for _, rec := range records {
		events := event.Of(r.log.State(), rec, limit)
		if err := r.log.Load([]furl.Record{rec}); err != nil {
			return err
		}
		for _, e := range events {
			if _, ok := e.(event.Compacted); ok {
				r.compacted = true
			}
			r.emit(Context{Record: rec.Seq, Event: e})
		}
	}
	return nil
}

// maxRepair is how long recording the end of an interrupted run may take.
const maxRepair = 10 * time.Second

// lasting returns a context for what must be recorded although the run is interrupted:
// the transcript would be incomplete otherwise.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), maxRepair)
}

// interruption returns the error of a run that was interrupted.
func interruption(ctx context.Context) error {
	return fmt.Errorf("run interrupted: %w", context.Cause(ctx))
}
