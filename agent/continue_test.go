package agent_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/tool"
)

// Input that arrives during a run is delivered once, before the next request, and a run
// does not end while there is some.
func TestPending(t *testing.T) {
	for _, m := range models {
		t.Run(string(m.Format), func(t *testing.T) {
			p, url := provide(t, sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 2, Parallel: 3})})
			s := newSession(t, session.Options{})
			a := newAgent(t, s, m, url, agent.Options{Tools: []tool.Tool{readTool("text")}})
			var order []string
			sent := false
			for e, err := range a.Run(t.Context(), agent.Text("Read the files.")) {
				if err != nil {
					t.Fatal(err)
				}
				switch e := e.(type) {
				case agent.Delivered:
					order = append(order, e.Input.Text)
				case agent.CallStarted:
					if !sent {
						a.Send(agent.Text("Faster."), agent.Text("And shorter."))
						sent = true
					}
				case agent.Replied:
					order = append(order, "reply")
				}
			}
			if got := strings.Join(order[:4], ", "); got != "Read the files., reply, Faster., And shorter." {
				t.Errorf("order: %s", got)
			}
			n := 0
			for _, r := range s.Records(0) {
				if m, ok := r.Body.(*furl.Message); ok && m.Role == furl.RoleUser && len(m.Blocks) > 0 && m.Blocks[0].Text == "Faster." {
					n++
				}
			}
			if n != 1 || len(a.TakePending()) != 0 {
				t.Errorf("delivered %d times", n)
			}
			noRefusals(t, p, s)
		})
	}
}

// Temporary failures are retried after the time that the provider asks for. Others are
// returned.
func TestRetries(t *testing.T) {
	for _, m := range models {
		for _, tc := range []struct {
			fault   sim.Fault
			retries int
			fails   bool
		}{
			{sim.Fault{First: 1, Status: 429, RetryAfter: time.Second}, 1, false},
			{sim.Fault{First: 1, Status: 500}, 1, false},
			{sim.Fault{First: 1, Cut: 3}, 1, false},
			{sim.Fault{First: 1, Error: 3}, 1, false},
			{sim.Fault{Status: 401}, 0, true},
			{sim.Fault{Status: 429, RetryAfter: time.Hour}, 0, true},
			{sim.Fault{Overflow: true, First: 1}, 0, false},
			{sim.Fault{Overflow: true, First: 3}, 0, false},
			{sim.Fault{OverflowInStream: true, First: 1}, 0, false},
		} {
			t.Run(fmt.Sprintf("%s/%+v", m.Format, tc.fault), func(t *testing.T) {
				t.Parallel()
				s := newSession(t, session.Options{Policy: "sliding-window"})
				_, url := provide(t, sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 16})})
				read := readTool(strings.Repeat("a line of a file\n", 200))
				collect(t, newAgent(t, s, m, url, agent.Options{Tools: []tool.Tool{read}}), agent.Text("Read the files."))
				before := len(s.Records(0))

				_, url = provide(t, sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 1}), Faults: []sim.Fault{tc.fault}})
				a := newAgent(t, s, m, url, agent.Options{Tools: []tool.Tool{read}})
				var events []agent.Event
				var failed error
				began := time.Now()
				for e, err := range a.Run(t.Context(), agent.Text("Go on.")) {
					if failed = err; err == nil {
						events = append(events, e)
					}
				}
				if (failed != nil) != tc.fails || count[agent.Retry](events) != tc.retries {
					t.Fatalf("error %v, %d retries", failed, count[agent.Retry](events))
				}
				if tc.fault.RetryAfter == time.Second && time.Since(began) < time.Second {
					t.Errorf("sent again after %v", time.Since(began))
				}
				if refusal := new(protocol.Refusal); tc.fails && (!errors.As(failed, &refusal) || refusal.Status != tc.fault.Status) {
					t.Errorf("error %v", failed)
				}
				if over := tc.fault.Overflow || tc.fault.OverflowInStream; over != (len(contexts[event.OverflowRecovered](events)) == 1) || over && len(s.Reductions()) == 0 {
					t.Errorf("%d reductions", len(s.Reductions()))
				}
				if got := len(s.Records(0)); tc.fails && got != before+1 {
					t.Errorf("%d records of a failed run", got-before)
				}
			})
		}
	}
}

// A reply beyond the bounds of what furl reads is paid for, and would be as large again. It is
// not asked for a second time.
func TestHugeRepliesAreAskedOnce(t *testing.T) {
	fill := strings.Repeat(" ", 1<<20)
	for name, answer := range map[string]func(w http.ResponseWriter){
		"a body": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			for range 65 {
				io.WriteString(w, fill)
			}
		},
		"an event": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: ")
			for range 33 {
				io.WriteString(w, fill)
			}
		},
		"a compressed body": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 17 {
				io.WriteString(z, fill)
			}
			z.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				asked++
				answer(w)
			}))
			defer server.Close()
			a := newAgent(t, newSession(t, session.Options{Policy: "none"}), models[0], server.URL, agent.Options{})
			var failed error
			for _, err := range a.Run(t.Context(), agent.Text("Go.")) {
				failed = err
			}
			if failed == nil || asked != 1 {
				t.Errorf("asked %d times: %v", asked, failed)
			}
		})
	}
}

// The context is made to fit the window of another model, also if that is smaller and
// speaks another format.
func TestSwitchModel(t *testing.T) {
	p, url := provide(t, sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 8, Parallel: 2, Thinking: 30})})
	s := newSession(t, session.Options{Policy: "sliding-window"})
	read := readTool(strings.Repeat("a line of a file\n", 200))
	a := newAgent(t, s, models[0], url, agent.Options{System: "Be brief.", Tools: []tool.Tool{read}})
	collect(t, a, agent.Text("Read the files."))
	for i, m := range []agent.Model{models[1], models[2], models[0], {Format: furl.FormatChat, ID: "gpt-5.2", Window: 12_000}, models[0], {Format: furl.FormatResponses, ID: "gpt-5-mini", Window: 8000}} {
		m.BaseURL, m.Key = url, "k"
		if err := a.SetModel(m); err != nil {
			t.Fatal(err)
		}
		collect(t, a, agent.Text(fmt.Sprintf("Task %d: read on.", i)))
		if m.Window == 0 {
			continue
		}
		if e := p.Requests()[len(p.Requests())-1]; e.Usage.Input+e.Usage.CacheRead > m.Window || len(s.Reductions()) == 0 {
			t.Errorf("%s: a prompt of %d tokens for a window of %d", m.ID, e.Usage.Input+e.Usage.CacheRead, m.Window)
		}
	}
	noRefusals(t, p, s)
	if err := a.SetModel(agent.Model{Format: "morse", ID: "m"}); err == nil {
		t.Error("an unknown format is accepted")
	}
}

// Images of the user and of tools reach the model.
func TestMedia(t *testing.T) {
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewRGBA(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	picture := tool.Part{Type: "image/png", Data: data.Bytes()}
	for _, m := range models {
		t.Run(string(m.Format), func(t *testing.T) {
			p, url := provide(t, sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 2, Parallel: 2})})
			s := newSession(t, session.Options{})
			look := readTool("")
			look.Run = func(context.Context, json.RawMessage) (tool.Result, error) {
				return tool.Result{Parts: []tool.Part{{Text: "A picture:"}, picture}}, nil
			}
			a := newAgent(t, s, m, url, agent.Options{Tools: []tool.Tool{look}})
			collect(t, a, agent.Input{Text: "What is this?", Media: []tool.Part{picture}})
			noRefusals(t, p, s)
			n := strings.Count(string(p.Requests()[len(p.Requests())-1].Body), "iVBOR")
			if want := 3; n < want && m.Format != furl.FormatChat || n < 1 {
				t.Errorf("%d images in the last request", n)
			}
			// Another format gets them too, as far as it can have them.
			for _, other := range models {
				other.BaseURL = url
				if err := a.SetModel(other); err != nil {
					t.Fatal(err)
				}
				collect(t, a, agent.Text("And now?"))
			}
			noRefusals(t, p, s)
		})
	}
}

// Calls that have no result because the process ended run again, or are answered as
// interrupted.
func TestRerun(t *testing.T) {
	for _, m := range models {
		for rerun, want := range map[agent.Rerun]string{
			agent.RerunReads: "read ok, write unknown", agent.RerunAll: "read ok, write ok", agent.RerunNone: "read unknown, write unknown",
		} {
			t.Run(fmt.Sprintf("%s/%d", m.Format, rerun), func(t *testing.T) {
				step := 0
				p, url := provide(t, sim.Options{Player: sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
					if step++; step > 1 {
						return sim.Text("Done."), nil
					}
					return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindCall, Name: "read"}, {Kind: furl.KindCall, Name: "write"}}}, nil
				})})
				s := newSession(t, session.Options{})
				var tools []tool.Tool
				for _, name := range []string{"read", "write"} {
					tl := readTool("ok")
					tl.Name, tl.Changes = name, name == "write"
					tools = append(tools, tl)
				}
				o := agent.Options{Tools: tools, Rerun: rerun, Approve: agent.ApproveAll}
				// A run that ends without a trace after the reply, as after kill -9.
				first := newAgent(t, s, m, url, o)
				func() {
					defer func() { _ = recover() }()
					for e := range first.Run(t.Context(), agent.Text("Go.")) {
						if _, ok := e.(agent.Replied); ok {
							panic("killed")
						}
					}
				}()
				if n := len(s.Records(0)); n < 3 {
					t.Fatalf("%d records", n)
				}
				var got []string
				for _, e := range collect(t, newAgent(t, s, m, url, o), agent.Text("Go on.")) {
					if r, ok := e.(agent.CallResult); ok {
						text := r.Result.Text()
						if r.Result.Error {
							text = "unknown"
						}
						got = append(got, r.Call.Name+" "+text)
					}
				}
				if got := strings.Join(got, ", "); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				noRefusals(t, p, s)
			})
		}
	}
}

// Input of a run that was interrupted before it was recorded is not delivered later;
// input that was sent meanwhile is.
func TestInputOfAnInterruptedRun(t *testing.T) {
	_, url := provide(t, sim.Options{})
	s := newSession(t, session.Options{})
	a := newAgent(t, s, models[0], url, agent.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.Send(agent.Text("Later."))
	for _, err := range a.Run(ctx, agent.Text("Now.")) {
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	var got []string
	for _, e := range collect(t, a) {
		if d, ok := e.(agent.Delivered); ok {
			got = append(got, d.Input.Text)
		}
	}
	if len(got) != 1 || got[0] != "Later." {
		t.Errorf("delivered %q", got)
	}
}

// Thinking that its model has bound to a prompt, although the catalog does not say that it
// does, is left out after the first refusal.
func TestRefusedThinking(t *testing.T) {
	over, err := catalog.Parse("test", []byte("models: [{id: claude-opus-5-5, thinking: {binds: false}}]"))
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := catalog.Default().Merge(over)
	if err != nil {
		t.Fatal(err)
	}
	p, url := provide(t, sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 12, Thinking: 30})})
	s := newSession(t, session.Options{Catalog: wrong, Policy: "rolling-mask-5"})
	a := newAgent(t, s, agent.Model{Format: furl.FormatAnthropic, ID: "claude-opus-5-5", Key: "k", Thinking: "high"}, url,
		agent.Options{Tools: []tool.Tool{readTool(strings.Repeat("a line of a file\n", 200))}})
	events := collect(t, a, agent.Text("Read the files."))
	if n := len(contexts[event.ThinkingRecovered](events)); n != 1 || p.Bill().Refused != 1 {
		t.Errorf("recovered %d times, %d requests were refused, want 1 each", n, p.Bill().Refused)
	}
}
