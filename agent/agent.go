package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/tool"
)

// Options are the options of an Agent. The zero value is useful.
type Options struct {
	// System has the instructions for the model, "" for none.
	System string
	// RebuildSystem, if not nil, returns the instructions to use after a compaction.
	// At other times they stay the same, because a change invalidates the provider's
	// prompt cache.
	RebuildSystem func(ctx context.Context) (string, error)
	// Summaries say who writes the summaries of policies that show them.
	Summaries Summaries
	// WorkingMemory returns texts that the program keeps for the model, such as its
	// plan or a list of files. They follow each summary. It may be nil.
	WorkingMemory func() []string
	// Tools are the tools that the model may call. Calls of one reply run at the same
	// time, except those of tools that change something: such a call runs alone, after
	// those before it and before those after it.
	Tools []tool.Tool
	// Recall adds the tools memory_search and memory_get to a session without requests
	// so far: the model can search what is hidden from it. The agent answers their
	// calls, without approval. A session that has these tools keeps them, also if
	// Recall is not set. A tool is not added if Tools has one of the same name.
	Recall bool
	// Approve decides about a call of a tool that changes something. If nil, such calls
	// are refused. ApproveAll allows all. It is called from another goroutine than
	// the one that reads the events, after the event ApprovalNeeded.
	Approve func(ctx context.Context, c Call, p tool.Preview) Decision
	// Parallel is how many calls run at the same time. If zero, defaults to 8.
	Parallel int
	// Rerun says what happens to calls that have no result because the process
	// ended. If zero, RerunReads.
	Rerun Rerun
	// MaxSteps limits the requests of one Run. If zero, there is no limit.
	MaxSteps int
	// Retries is how often a request is sent again after a temporary failure. If
	// zero, defaults to 6; if negative, never.
	Retries int
	// Playback reports that the replies come from a recording: nothing is hidden from
	// the model and no summary is written.
	Playback bool
	// Transport makes the connections. If nil, http.DefaultTransport.
	Transport http.RoundTripper
	// Logger logs retries and failed summaries, never message content. If nil,
	// nothing is logged.
	Logger *slog.Logger
}

// Rerun selects which calls without results a Run runs again after the process has
// ended in the middle of a step. The others get a result that says that they were
// interrupted.
type Rerun int

const (
	RerunReads Rerun = iota // calls of tools that change nothing
	RerunAll                // all calls; those that change something are approved again
	RerunNone               // no calls
)

// Decision is a decision about a call.
type Decision struct {
	Allow bool
	// Reason tells the model why the call is refused. It may be "".
	Reason string
}

// ApproveAll is an Options.Approve that allows all calls.
func ApproveAll(context.Context, Call, tool.Preview) Decision { return Decision{Allow: true} }

// Input is a message of the user.
type Input struct {
	Text string
	// Media are images and documents.
	Media []tool.Part
}

// Text returns an Input of one text.
func Text(text string) Input { return Input{Text: text} }

// Agent runs the agent loop on one session. It is safe for concurrent use.
type Agent struct {
	s     *session.Session
	o     Options
	tools map[string]*tool.Tool
	// summaryProvider writes the summaries; nil: the conversation's.
	summaryProvider *provider

	mu       sync.Mutex
	provider *provider
	system   string
	pending  []Input
	running  bool

	// Used by the run only.
	log       *furl.Log  // up to the last event
	usage     furl.Usage // of the last request
	compacted bool       // since the instructions were built
	recall    []tool.Tool
}

// New returns an agent that continues a session. The name of a tool must be unique.
func New(s *session.Session, m Model, opts *Options) (*Agent, error) {
	a := &Agent{s: s, tools: make(map[string]*tool.Tool)}
	if opts != nil {
		a.o = *opts
	}
	a.o.Tools = slices.Clone(a.o.Tools)
	for i := range a.o.Tools {
		t := &a.o.Tools[i]
		if t.Name == "" || t.Run == nil || a.tools[t.Name] != nil {
			return nil, fmt.Errorf("tool %d, %q: expected a unique name and a function Run", i, t.Name)
		}
		a.tools[t.Name] = t
	}
	a.o.Parallel = cmp.Or(max(0, a.o.Parallel), 8)
	a.o.Retries = cmp.Or(a.o.Retries, 6)
	if a.o.Transport == nil {
		a.o.Transport = http.DefaultTransport
	}
	if a.o.Logger == nil {
		a.o.Logger = slog.New(slog.DiscardHandler)
	}
	if m := a.o.Summaries.Model; m != nil {
		var err error
		if a.summaryProvider, err = newProvider(*m, a.o.Transport); err != nil {
			return nil, fmt.Errorf("summaries: %w", err)
		}
	}
	a.system = a.o.System
	if err := a.SetModel(m); err != nil {
		return nil, err
	}
	return a, nil
}

// Session returns the agent's session.
func (a *Agent) Session() *session.Session { return a.s }

// Model returns the model of the next request.
func (a *Agent) Model() Model {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.provider.Model
}

// SetModel sets the model from the next request on. The context is made to fit its
// window.
func (a *Agent) SetModel(m Model) error {
	p, err := newProvider(m, a.o.Transport)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.provider = p
	return nil
}

// Send adds input of the user while a run is in progress. It is delivered before the
// next request, once; see Delivered. A run does not end while there is input. Without
// a run, it waits for the next one.
func (a *Agent) Send(input ...Input) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending = append(a.pending, input...)
}

// TakePending returns the input that has not been delivered and removes it.
func (a *Agent) TakePending() []Input {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.pending
	a.pending = nil
	return list
}

// ErrRunning is the error of a Run while another one is in progress.
var ErrRunning = errors.New("the agent is running")

// Run adds input of the user to the session and works until the model ends: it sends
// requests and runs the calls of the replies. Without input it continues where the
// session has stopped; if there is nothing to send, it is Done.
//
// The events come as they happen. An error ends the sequence, and the session can be
// continued after it. If ctx ends, the error wraps its cause; leaving the loop has the
// same effect. Run then waits until the running tools have returned.
func (a *Agent) Run(ctx context.Context, input ...Input) iter.Seq2[Event, error] {
	return a.events(ctx, func(ctx context.Context, r *run) error { return r.work(ctx, input) })
}

// Compact requests a summary of the conversation now, whatever its size, and replaces
// the old messages by it, or those in the spans if there are some. focus is what the
// summary should pay attention to, in the user's words; it may be "". If there is too little
// to summarize, the error says so.
func (a *Agent) Compact(ctx context.Context, focus string, spans ...furl.Span) iter.Seq2[Event, error] {
	return a.events(ctx, func(ctx context.Context, r *run) error { return r.compact(ctx, focus, spans) })
}

// events returns the events of a run.
func (a *Agent) events(ctx context.Context, work func(context.Context, *run) error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		a.mu.Lock()
		busy := a.running
		a.running = true
		a.mu.Unlock()
		if busy {
			yield(nil, ErrRunning)
			return
		}
		defer func() {
			a.mu.Lock()
			a.running = false
			a.mu.Unlock()
		}()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r := &run{Agent: a, yield: yield, cancel: cancel}
		err := r.follow()
		if err == nil {
			err = r.prepareRecall(ctx)
		}
		if err == nil {
			err = work(ctx, r)
		}
		if err != nil && !r.left {
			yield(nil, err)
		}
	}
}
