package browsertest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// Task is a task of the page's main thread in a trace. A frame takes at least as long as its
// longest task.
type Task struct {
	// Took is the time from start to end, and CPU the time that the thread was running.
	// They differ if other processes use the processor.
	Took, CPU time.Duration
}

// Trace records a trace while f runs, and returns the tasks of the page's main thread.
// Only one test can record a trace at a time.
func (p *Page) Trace(f func()) []Task {
	p.t.Helper()
	var chunks []tracing.EventDataCollected
	complete := make(chan struct{})
	listening, stop := context.WithCancel(p.ctx)
	defer stop()
	err := chromedp.Listen(listening, func(ev any) {
		switch ev := ev.(type) {
		case *tracing.EventDataCollected:
			chunks = append(chunks, *ev) // in one goroutine, before complete is closed
		case *tracing.EventTracingComplete:
			close(complete)
		}
	})
	if err != nil {
		p.t.Fatalf("listen for the trace: %v", err)
	}
	p.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{
			IncludedCategories: []string{"toplevel", "devtools.timeline", "__metadata"}, ExcludedCategories: []string{"*"},
		}})
		return err
	}))
	f()
	p.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, tracing.End, cdp.Empty{})
		return err
	}))
	select {
	case <-complete:
	case <-time.After(wait):
		p.t.Fatalf("the trace was not complete after %s", wait)
	}
	return tasks(p, chunks)
}

// traceEvent is an event of a trace, with times in microseconds.
type traceEvent struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	TID  int    `json:"tid"`
	Took int64  `json:"dur"`
	CPU  int64  `json:"tdur"`
	Args struct {
		Name string `json:"name"`
	} `json:"args"`
}

// tasks returns the tasks of the main threads of pages.
func tasks(p *Page, chunks []tracing.EventDataCollected) (list []Task) {
	p.t.Helper()
	type thread struct{ pid, tid int }
	main := make(map[thread]bool)
	var events []traceEvent
	for _, chunk := range chunks {
		for _, value := range chunk.Value {
			var e traceEvent
			if json.Unmarshal(value, &e) != nil {
				continue // an event whose arguments have other types
			}
			switch {
			case e.Name == "thread_name" && e.Args.Name == "CrRendererMain":
				main[thread{e.PID, e.TID}] = true
			case e.Name == "RunTask" || e.Name == "ThreadControllerImpl::RunTask":
				events = append(events, e)
			}
		}
	}
	for _, e := range events {
		if main[thread{e.PID, e.TID}] {
			list = append(list, Task{time.Duration(e.Took) * time.Microsecond, time.Duration(e.CPU) * time.Microsecond})
		}
	}
	if len(list) == 0 {
		p.t.Fatalf("the trace has no tasks of the page (%d tasks in all)", len(events))
	}
	return list
}
