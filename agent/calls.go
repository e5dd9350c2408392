package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/tool"
)

// Texts of results that no tool returned.
const (
	notRun      = "Interrupted before the call ran. It had no effect."
	interrupted = "Interrupted while the call ran. It may have had an effect; check before repeating it."
	unfinished  = "The program ended before the result of this call was recorded. It may have had an effect; check before repeating it."
)

func callsOf(reply *protocol.Reply) (calls []Call) {
	for _, m := range reply.Messages {
		for i := range m.Blocks {
			if b := &m.Blocks[i]; b.Kind == furl.KindCall {
				calls = append(calls, Call{ID: b.ID, Name: b.Name, Input: b.Args})
			}
		}
	}
	return calls
}

// finishStep gives results to the calls that have none because the process ended.
func (r *run) finishStep(ctx context.Context) error {
	var calls []Call
	r.s.Internal().Read(func(c *open.Change) {
		st := c.Log().State()
		ids := st.OpenCalls()
		for i := st.Len() - 1; i >= 0 && len(calls) < len(ids); i-- {
			_, m := st.Message(i)
			for j := len(m.Blocks) - 1; j >= 0; j-- {
				if b := &m.Blocks[j]; b.Kind == furl.KindCall && slices.Contains(ids, b.ID) {
					calls = append(calls, Call{ID: b.ID, Name: b.Name, Input: b.Args})
				}
			}
		}
	})
	slices.Reverse(calls)
	return r.runCalls(ctx, calls, func(t *tool.Tool) string {
		if r.o.Rerun == RerunAll || r.o.Rerun == RerunReads && t != nil && !t.Changes {
			return ""
		}
		return unfinished
	})
}

// finished is a call with its result.
type finished struct {
	result tool.Result
	took   time.Duration
}

// runCalls runs calls and records their results in the order of the calls, each as
// soon as those before it have theirs. If refuse returns a text, that is the result of
// a failed call instead. An interruption does not end runCalls: calls without a result
// get one that says so, because the transcript would not be valid otherwise.
func (r *run) runCalls(ctx context.Context, calls []Call, refuse func(*tool.Tool) string) error {
	events := make(chan Event)
	done := make([]chan finished, len(calls))
	for i := range done {
		done[i] = make(chan finished, 1)
	}
	r.countRecall(calls)
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { r.schedule(ctx, calls, refuse, events, done) })
	var failed error
	for next := 0; next < len(calls); {
		select {
		case e := <-events:
			r.emit(e)
		case f := <-done[next]:
			if failed == nil { // else the calls end without being recorded
				failed = r.record(ctx, calls[next], f)
			}
			if failed != nil {
				r.cancel()
			}
			next++
		}
	}
	if failed == nil && ctx.Err() != nil {
		return interruption(ctx)
	}
	return failed
}

// schedule runs calls: those that change nothing at the same time, the others alone.
func (r *run) schedule(ctx context.Context, calls []Call, refuse func(*tool.Tool) string, events chan<- Event, done []chan finished) {
	var reads sync.WaitGroup
	defer reads.Wait()
	slots := make(chan struct{}, r.o.Parallel)
	recalls := 0
	for i, c := range calls {
		t := r.toolNamed(c.Name)
		text := ""
		if refuse != nil {
			text = refuse(t)
		}
		switch {
		case text != "":
			done[i] <- finished{result: failure(text)}
		case ctx.Err() != nil:
			done[i] <- finished{result: failure(notRun)}
		case t == nil:
			done[i] <- finished{result: tool.Failed(fmt.Errorf("unknown tool %q", c.Name))}
		case t.Changes:
			reads.Wait()
			done[i] <- r.ask(ctx, t, c, events)
		default:
			run := runTool
			if r.isRecall(c.Name) {
				n := recalls
				recalls++
				run = func(ctx context.Context, _ *tool.Tool, c Call, events chan<- Event) finished {
					return r.runRecall(ctx, c, n, events)
				}
			}
			slots <- struct{}{}
			reads.Go(func() {
				done[i] <- run(ctx, t, c, events)
				<-slots
			})
		}
	}
}

// ask runs a call if it is approved.
func (r *run) ask(ctx context.Context, t *tool.Tool, c Call, events chan<- Event) finished {
	var p tool.Preview
	if t.Preview != nil {
		var err error
		if p, err = t.Preview(ctx, c.Input); err != nil {
			return finished{result: tool.Failed(err)}
		}
	}
	d := Decision{Reason: "the program cannot ask for approval"}
	if r.o.Approve != nil {
		events <- ApprovalNeeded{Call: c, Preview: p}
		d = r.o.Approve(ctx, c, p)
	}
	switch {
	case ctx.Err() != nil:
		return finished{result: failure(notRun)}
	case !d.Allow && d.Reason == "":
		return finished{result: failure("The user refused the call. It had no effect.")}
	case !d.Allow:
		return finished{result: failure("The call was refused and had no effect. Reason: " + d.Reason)}
	}
	return runTool(ctx, t, c, events)
}

// runTool runs a call.
func runTool(ctx context.Context, t *tool.Tool, c Call, events chan<- Event) finished {
	events <- CallStarted{Call: c}
	began := time.Now()
	result, err := guarded(ctx, t, c.Input)
	switch {
	case err != nil && ctx.Err() != nil:
		result = failure(interrupted)
	case err != nil:
		result = tool.Failed(err)
	}
	return finished{result, time.Since(began)}
}

// guarded returns a panic of a tool as an error: the other calls and the session are
// not affected by it.
func guarded(ctx context.Context, t *tool.Tool, input json.RawMessage) (result tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the tool panicked: %v", p)
		}
	}()
	if !json.Valid(input) {
		return result, errors.New("the input is not valid JSON")
	}
	return t.Run(ctx, input)
}

func failure(text string) tool.Result {
	return tool.Result{Parts: []tool.Part{{Text: text}}, Error: true}
}

// record appends the result of a call.
func (r *run) record(ctx context.Context, c Call, f finished) error {
	m, err := r.resultMessage(c, f.result)
	if err != nil {
		return fmt.Errorf("result of %s: %w", c.Name, err)
	}
	lasting, done := lasting(ctx)
	defer done()
	if r.isRecall(c.Name) {
		err = r.recordRecall(lasting, m, c, f.result.Error)
	} else {
		_, err = r.s.Append(lasting, m)
	}
	if err != nil {
		return fmt.Errorf("record the result of %s: %w", c.Name, err)
	}
	if err := r.follow(); err != nil {
		return err
	}
	r.emit(CallResult{Call: c, Result: f.result, Took: f.took})
	return nil
}

// resultMessage returns the message of a result. A text has no bytes of a format, so
// it is sent the same way to every model.
func (r *run) resultMessage(c Call, result tool.Result) (*furl.Message, error) {
	if slices.ContainsFunc(result.Parts, func(p tool.Part) bool { return p.Type != "" }) {
		r.mu.Lock()
		api := r.provider.api
		r.mu.Unlock()
		return api.ResultMessage(furl.Block{ID: c.ID, Name: c.Name}, partsOf(result.Parts), result.Error)
	}
	text := result.Text()
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	m := &furl.Message{Role: furl.RoleTool, Blocks: []furl.Block{{Kind: furl.KindResult, ID: c.ID, Text: text, Error: result.Error}}}
	m.Seal()
	return m, nil
}
