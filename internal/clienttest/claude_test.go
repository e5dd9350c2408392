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
