package clienttest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

// besides plays a conversation that asks another agent for something, is
// compacted by its client, and goes on.
type besides struct{ n int }

func (p *besides) Play(_ context.Context, req *protocol.Request) (sim.Reply, error) {
	p.n++
	call := func(name string, args map[string]any) sim.Reply {
		return sim.Reply{Blocks: []furl.Block{
			{Kind: furl.KindText, Text: fmt.Sprintf("This is reply %d.", p.n)}, {Kind: furl.KindCall, Name: name, Args: mustJSON(args)},
		}}
	}
	last := &req.Messages[len(req.Messages)-1]
	for i := len(req.Messages) - 1; i > 0 && last.Role == furl.RoleSystem; i-- {
		last = &req.Messages[i-1]
	}
	words := last.Blocks[len(last.Blocks)-1].Text
	switch {
	case strings.Contains(words, "Ask somebody."):
		return call("Agent", map[string]any{
			"description": "Look around", "prompt": "Look around for me.", "subagent_type": "general-purpose", "run_in_background": false,
		}), nil
	case strings.Contains(words, "Look around for me."):
		return call("Bash", map[string]any{"command": "echo the other was here", "description": "look"}), nil
	case strings.Contains(words, "the other was here"):
		return sim.Text("There is nothing but words."), nil
	case strings.Contains(words, "TEXT ONLY"):
		return sim.Text("<summary>We asked somebody, who found words.</summary>"), nil
	case strings.Contains(words, "Go on."):
		return call("Bash", map[string]any{"command": "echo we are here", "description": "look"}), nil
	}
	return sim.Text("Done with it."), nil
}

// Claude Code's own sub-agents and its own compaction: a sub-agent is a
// conversation of its own, and what was compacted stays what it was.
func TestClaudeBesides(t *testing.T) {
	t.Parallel()
	c := coders[0]
	program := c.program(t)
	st := newFixtureOf(t, 200_000, func(string) sim.Player { return &besides{} })
	for _, args := range [][]string{{"-p", "Ask somebody."}, {"-c", "-p", "/compact"}, {"-c", "-p", "Go on."}} {
		out := st.run(t, c.env(st), program[0], claude(args...)...)
		if args[0] != "-c" || args[2] != "/compact" {
			if !strings.Contains(out, "Done with it.") {
				t.Errorf("%q: %s\n%s", args, out, st.requests())
			}
		}
	}
	for _, r := range st.sim.Requests() {
		if r.Verdict != sim.VerdictOK && r.Method != "HEAD" {
			t.Errorf("request %d, %s %s, %s: %s", r.N, r.Method, r.Path, r.Verdict, r.Error)
		}
	}
	list := st.sessions(t)
	if len(list) != 2 {
		t.Fatalf("%d sessions, want the conversation and its sub-agent:\n%s", len(list), st.requests())
	}
	main, sub := list[0], list[1]
	if strings.Contains(main.Meta().Hint, "/") {
		main, sub = sub, main
	}
	if m, s := main.Meta().Hint, sub.Meta().Hint; !strings.HasPrefix(s, m+"/") {
		t.Errorf("the sub-agent's session is of %q, its parent's of %q", s, m)
	}
	if n := len(sub.Branches()); n != 1 {
		t.Errorf("the sub-agent has %d branches, want 1", n)
	}
	// The path is what the client has made of it; what it compacted, and the
	// summary it asked for, are branches.
	var path strings.Builder
	for _, m := range main.View("").Messages {
		for _, b := range m.Blocks {
			path.WriteString(b.Words() + "\n")
		}
	}
	for words, want := range map[string]bool{"we are here": true, "We asked somebody": true, "TEXT ONLY": false, "the other was here": false} {
		if strings.Contains(path.String(), words) != want {
			t.Errorf("the path holds %q: %v, want %v\n%.3000s", words, !want, want, path.String())
		}
	}
}

// toolSearcher plays a conversation that finds a deferred tool, uses it, works for a while,
// and uses it again.
type toolSearcher struct{ n int }

func (p *toolSearcher) Play(_ context.Context, req *protocol.Request) (sim.Reply, error) {
	call := func(name string, args map[string]any) (sim.Reply, error) {
		p.n++
		return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindCall, Name: name, Args: mustJSON(args)}}}, nil
	}
	switch tools := len(req.Preamble); {
	case tools < 5: // a title, or the like
		return sim.Text("Pieces"), nil
	case p.n == 0:
		return call("ToolSearch", map[string]any{"query": "select:CronList", "max_results": 5})
	case p.n == 1 || p.n == 20:
		return call("CronList", map[string]any{})
	case p.n < 20:
		return call("Bash", map[string]any{"command": fmt.Sprintf("sh step.sh %d", p.n), "description": "look"})
	}
	return sim.Text("Done with it."), nil
}

// Claude Code adds the definitions of most tools to a request only after a search has
// referenced them. They do not change the cached prompt before the reference, and the
// reference stays visible while the results around it are hidden.
func TestClaudeToolSearch(t *testing.T) {
	t.Parallel()
	c := coders[0]
	program := c.program(t)
	st := newFixtureOf(t, 50_000, func(string) sim.Player { return &toolSearcher{} })
	if out := st.run(t, c.env(st), program[0], claude("-p", "Look at the pieces.")...); !strings.Contains(out, "Done with it.") {
		t.Errorf("%s\n%s", out, st.requests())
	}
	searched := false
	for _, r := range st.sim.Requests() {
		if r.Verdict != sim.VerdictOK && r.Method != "HEAD" {
			t.Errorf("request %d, %s %s, %s: %s", r.N, r.Method, r.Path, r.Verdict, r.Error)
		}
		if has := strings.Contains(string(r.Body), `"tool_name":"CronList"`); has {
			searched = true
		} else if searched && strings.Contains(string(r.Body), "ToolSearch") {
			t.Errorf("request %d has no reference to the tool that was found", r.N)
		}
	}
	if !searched {
		t.Fatalf("no tool was referenced:\n%s", st.requests())
	}
	s := st.sessions(t)[0]
	preambles := make(map[furl.Digest]bool)
	hid := false
	for _, r := range s.Records(0) {
		switch b := r.Body.(type) {
		case *furl.Exchange:
			preambles[b.Preamble] = true
		case *furl.Reduction:
			hid = true
		}
	}
	if !hid || len(preambles) != 1 {
		t.Errorf("hidden: %v; %d different instructions and tools, want 1", hid, len(preambles))
	}
}
