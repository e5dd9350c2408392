package clienttest

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

// What furl serve says is to be set for an agent makes it use the gateway.
func TestPrintEnv(t *testing.T) {
	const steps = 4
	task := "Work through the first pieces."
	for _, c := range []struct {
		agent, file string
		program     func(testing.TB) []string
		args, env   []string
	}{
		{"codex", ".codex/config.toml", scripted("@openai/codex/bin/codex.js"), codex("-m", "gpt-5-codex", task), []string{"OPENAI_API_KEY=dummy"}},
		{
			"opencode", "work/opencode.json", packaged("opencode-linux-x64/bin/opencode"),
			[]string{"run", "-m", "anthropic/claude-sonnet-4-5", task}, append(quiet(nil), "ANTHROPIC_API_KEY=dummy"),
		},
		{
			"pi", ".pi/agent/models.json", scripted("@mariozechner/pi-coding-agent/dist/cli.js"),
			[]string{"--provider", "anthropic", "--model", "claude-sonnet-4-5", "-p", task}, []string{"PI_OFFLINE=1", "ANTHROPIC_API_KEY=dummy"},
		},
	} {
		t.Run(c.agent, func(t *testing.T) {
			t.Parallel()
			program := c.program(t)
			st := newFixture(t, options{window: 60_000, steps: steps})
			out, err := st.furl(t.Context(), "serve", "--listen", st.address, "--print-env", c.agent).Output()
			if err != nil {
				t.Fatal(err)
			}
			file, env := "", c.env
			for line := range strings.Lines(string(out)) {
				if text, ok := strings.CutPrefix(line, "#   "); ok {
					file += text
				} else if text, ok := strings.CutPrefix(strings.TrimSpace(line), "export "); ok && file == "" {
					env = append(env, text)
				}
			}
			st.atHome(t, c.file, file)
			st.answered(t, st.run(t, env, program[0], append(program[1:len(program):len(program)], c.args...)...), steps)
			for _, r := range st.sim.Requests() {
				if r.Verdict != sim.VerdictOK {
					t.Errorf("request %d, %s %s, %s: %s", r.N, r.Method, r.Path, r.Verdict, r.Error)
				}
			}
			if list := st.sessions(t); len(list) != 1 {
				t.Errorf("%d sessions, want 1\n%s", len(list), st.requests())
			}
		})
	}
}
