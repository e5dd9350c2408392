package clienttest

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

// talker answers every request with a text.
type talker struct{}

func (talker) Play(context.Context, *protocol.Request) (sim.Reply, error) {
	return sim.Text("Done with it."), nil
}

// A4: a command typed in a real agent is answered by furl, in every format. No later
// request of the conversation has it, and the setting stays. FURL_ALL_AGENTS=1 tries all
// agents instead of one for each format.
func TestA4Commands(t *testing.T) {
	for _, c := range coders {
		if c.name != "claude" && c.name != "codex" && c.name != "pi openai-completions" && os.Getenv("FURL_ALL_AGENTS") == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			program := c.program(t)
			st := newFixtureOf(t, 200_000, func(string) sim.Player { return talker{} })
			st.stop(t, syscall.SIGTERM)
			st.atHome(t, "config/furl/config.yaml", "gateway:\n  commands: true\n")
			st.start(t)
			if c.setup != nil {
				c.setup(t, st)
			}
			run := func(args []string) string {
				return st.run(t, c.env(st), program[0], append(program[1:len(program):len(program)], args...)...)
			}
			if out := run(c.first("Say that it is done.")); !strings.Contains(out, "Done with it.") {
				t.Fatalf("the model said %s\n%s", out, st.requests())
			}
			const command = "furl: rolling-context on"
			args := c.again(command)
			if strings.HasPrefix(c.name, "opencode") { // it puts an argument with spaces in quotes
				args = append(args[:len(args)-1], strings.Fields(command)...)
			}
			if out := run(args); !strings.Contains(out, "rolling context is on; ") {
				t.Fatalf("furl said %s\n%s", out, st.requests())
			}
			n := len(st.sim.Requests())
			if out := run(c.again("And say it again.")); !strings.Contains(out, "Done with it.") {
				t.Errorf("the model said %s\n%s", out, st.requests())
			}
			later := 0
			for _, r := range st.sim.Requests()[n:] {
				body := string(r.Body)
				if strings.Contains(body, "rolling-context") || strings.Contains(body, "furl (session") {
					t.Errorf("request %d has the command: %s", r.N, body)
				}
				if strings.Contains(body, "Say that it is done.") && strings.Contains(body, "And say it again.") {
					later++
				}
				if r.Verdict == sim.VerdictRefused {
					t.Errorf("request %d: %s", r.N, r.Error)
				}
			}
			if later == 0 {
				t.Errorf("no request continues the conversation\n%s", st.requests())
			}
			on := 0
			for _, s := range st.sessions(t) {
				for _, set := range s.Settings() {
					if set.Name == "rolling_context" && set.Value == "on" && set.From == "session" {
						on++
						if got := len(s.View("").Messages); got < 4 {
							t.Errorf("the session has %d messages", got)
						}
					}
				}
			}
			if on != 1 {
				t.Errorf("%d sessions have the setting", on)
			}
		})
	}
}
