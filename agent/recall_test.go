package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/recalltext"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/tool"
)

// script is a player that takes one step after the other. After the last one it says
// "Done.".
type script struct {
	t     *testing.T
	steps []func(req *protocol.Request) sim.Reply
	n     int
	// offered are the names of recall tools in each request.
	offered []string
}

func (s *script) Play(_ context.Context, req *protocol.Request) (sim.Reply, error) {
	var names strings.Builder
	for _, b := range req.Preamble {
		for _, name := range []string{recalltext.ToolSearch, recalltext.ToolGet} {
			if b.Kind == furl.KindOpaque && b.ID == name {
				names.WriteString(name + " ")
			}
		}
	}
	s.offered = append(s.offered, strings.TrimSpace(names.String()))
	if s.n++; s.n > len(s.steps) {
		return sim.Text("Done."), nil
	}
	return s.steps[s.n-1](req), nil
}

// callOf returns a step that makes calls: names and inputs alternate.
func callOf(calls ...string) func(*protocol.Request) sim.Reply {
	return func(req *protocol.Request) (r sim.Reply) {
		for i := 0; i < len(calls); i += 2 {
			r.Blocks = append(r.Blocks, furl.Block{Kind: furl.KindCall, Name: calls[i], ID: fmt.Sprintf("toolu_%d_%d", len(req.Messages), i), Args: []byte(calls[i+1])})
		}
		return r
	}
}

// lastResult is the text of the last result in a request.
func lastResult(req *protocol.Request) string {
	for _, m := range slices.Backward(req.Messages) {
		for _, b := range m.Blocks {
			if b.Kind == furl.KindResult {
				return b.Text
			}
		}
	}
	return ""
}

// words are the contents of the files: words that searches do not take for each other.
var words = strings.Fields("zephyr quasar bramble cobalt lantern mosaic nectar orchid pumice ripple saddle timber umbrella velvet walnut xylem yonder jasmine kettle glacier")

// fileTool returns the word of a path, which is its index, and more text.
func fileTool() tool.Tool {
	t := readTool("")
	t.Run = func(_ context.Context, input json.RawMessage) (tool.Result, error) {
		var in struct{ Path int }
		err := json.Unmarshal(input, &in)
		return tool.Text("the word is " + words[in.Path] + "\n" + strings.Repeat("a line of a file\n", 300)), err
	}
	return t
}

var handle = regexp.MustCompile(`furl:[0-9]+\.[0-9]+`)

// The model searches what a policy has hidden, gets it by its handle, and keeps it.
func TestRecall(t *testing.T) {
	for _, m := range models {
		t.Run(string(m.Format), func(t *testing.T) {
			p := &script{t: t}
			for i := range 12 {
				p.steps = append(p.steps, callOf("read_file", fmt.Sprintf(`{"path":%d}`, i)))
			}
			found, got := "", ""
			p.steps = append(p.steps,
				func(req *protocol.Request) sim.Reply {
					for _, m := range req.Messages {
						for _, b := range m.Blocks {
							if strings.Contains(b.Text, "word is quasar\n") {
								t.Error("nothing was hidden")
							}
						}
					}
					return callOf(recalltext.ToolSearch, `{"query":"quasar"}`)(req)
				},
				func(req *protocol.Request) sim.Reply {
					found = lastResult(req)
					return callOf(recalltext.ToolGet, fmt.Sprintf(`{"handle":%q}`, handle.FindString(found)))(req)
				},
				func(req *protocol.Request) sim.Reply {
					got = lastResult(req)
					return sim.Text("Done.")
				})
			provider, url := provide(t, sim.Options{Player: p})
			s := newSession(t, session.Options{Policy: "rolling-mask-5"})
			a := newAgent(t, s, m, url, agent.Options{Recall: true, Tools: []tool.Tool{fileTool()}})
			events := collect(t, a, agent.Text("Read the files."))
			if !strings.Contains(found, "Search results, best first.") || !strings.Contains(found, "quasar") {
				t.Errorf("the search returned %q", found)
			}
			if !strings.Contains(got, "the word is quasar\n") {
				t.Errorf("the original is %.200q", got)
			}
			if count[agent.ApprovalNeeded](events) != 0 || count[agent.CallResult](events) != 14 {
				t.Errorf("%d calls had results", count[agent.CallResult](events))
			}
			for i, names := range p.offered {
				if names != "memory_search memory_get" {
					t.Errorf("request %d has the recall tools %q", i+1, names)
				}
			}
			// The original is kept for the next requests, and searches find the file and
			// not the recalled copy of it.
			for i := range 8 {
				p.steps = append(p.steps, callOf("read_file", fmt.Sprintf(`{"path":%d}`, 12+i)))
			}
			p.n, found = len(p.steps)-8, ""
			p.steps = append(p.steps, callOf(recalltext.ToolSearch, `{"query":"quasar"}`), func(req *protocol.Request) sim.Reply {
				found = lastResult(req)
				kept := 0
				for _, m := range req.Messages {
					for _, b := range m.Blocks {
						if strings.Contains(b.Text, "word is quasar\n") && b.Text != found {
							kept++
						}
					}
				}
				if kept != 1 {
					t.Errorf("the model sees the recalled original %d times", kept)
				}
				return sim.Text("Done.")
			})
			collect(t, a, agent.Text("More."))
			if n := len(handle.FindAllString(found, -1)); n != 1 {
				t.Errorf("the second search has %d hits: %s", n, found)
			}
			noRefusals(t, provider, s)
			own := 0
			for _, r := range s.Records(0) {
				if msg, ok := r.Body.(*furl.Message); ok && msg.HasOwn() {
					own++
				}
			}
			if own != 6 {
				t.Errorf("%d messages are marked as furl's, want 3 calls and 3 results", own)
			}
		})
	}
}

// A session has the tools from its first request on, or never.
func TestRecallOffer(t *testing.T) {
	p := &script{t: t}
	_, url := provide(t, sim.Options{Player: p})
	run := func(s *session.Session, o agent.Options) string {
		t.Helper()
		collect(t, newAgent(t, s, models[0], url, o), agent.Text("Hello."))
		return p.offered[len(p.offered)-1]
	}
	own := readTool("mine")
	own.Name = recalltext.ToolSearch
	store := inmem.New()
	in := func() *session.Sessions {
		t.Helper()
		all, err := session.New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	first := in().Create(storage.Meta{})
	run(first, agent.Options{Recall: true})
	with, err := in().Open(t.Context(), first.ID()) // as a later process does
	if err != nil {
		t.Fatal(err)
	}
	without, mixed, played := newSession(t, session.Options{}), newSession(t, session.Options{}), newSession(t, session.Options{})
	for i, tc := range []struct {
		s    *session.Session
		o    agent.Options
		want string
	}{
		{first, agent.Options{Recall: true}, "memory_search memory_get"},
		{with, agent.Options{}, "memory_search memory_get"},
		{without, agent.Options{}, ""},
		{without, agent.Options{Recall: true}, ""},
		{mixed, agent.Options{Recall: true, Tools: []tool.Tool{own}}, "memory_search memory_get"},
		{mixed, agent.Options{}, "memory_get"},
		{played, agent.Options{Recall: true, Playback: true}, ""},
	} {
		if got := run(tc.s, tc.o); got != tc.want {
			t.Errorf("run %d: the recall tools are %q, want %q", i+1, got, tc.want)
		}
	}
}

// A model that only recalls is told to stop.
func TestRecallLimits(t *testing.T) {
	p := &script{t: t}
	many := make([]string, 0, 20)
	for range 10 {
		many = append(many, recalltext.ToolGet, `{"handle":"furl:1.0"}`)
	}
	p.steps = append(p.steps, callOf(many...))
	for range 4 {
		p.steps = append(p.steps, callOf(recalltext.ToolGet, `{"handle":"furl:1.0"}`))
	}
	p.steps = append(p.steps,
		callOf("read_file", `{"path":"a"}`),
		callOf(recalltext.ToolGet, `{"handle":"furl:99.0"}`),
		callOf(recalltext.ToolSearch, `{"query":" "}`, "read_file", `{"path":"b"}`),
		callOf(recalltext.ToolGet, `{"handle":"furl:1.0"}`))
	provider, url := provide(t, sim.Options{Player: p})
	s := newSession(t, session.Options{})
	a := newAgent(t, s, models[0], url, agent.Options{Recall: true, Tools: []tool.Tool{readTool("text")}})
	var got []string
	for _, e := range collect(t, a, agent.Text("Hello there.")) {
		if r, ok := e.(agent.CallResult); ok {
			text := r.Result.Text()
			switch {
			case strings.HasSuffix(text, recalltext.LastRound):
				text = "last"
			case strings.Contains(text, "Hello there."):
				text = "found"
			}
			got = append(got, text)
		}
	}
	tooMany := "Error: " + recalltext.ErrTooMany.Error()
	want := []string{
		"found", "found", "found", "found", "found", "found", "found", "found", tooMany, tooMany,
		"found", "found", "last", tooMany,
		"text", `Error: unknown handle "furl:99.0"`, "Error: empty query", "text", "found",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	noRefusals(t, provider, s)
}
