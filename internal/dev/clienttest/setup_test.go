package clienttest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
		{"codex", ".codex/config.toml", scripted("@openai/codex/bin/codex.js"), codex("-m", "gpt-5-codex", task), []string{"CODEX_API_KEY=dummy"}},
		{
			"opencode", "work/opencode.json", packaged("opencode-linux-x64/bin/opencode"),
			[]string{"run", "-m", "anthropic/claude-sonnet-4-5", task}, append(quiet(nil), "ANTHROPIC_API_KEY=dummy"),
		},
		{
			"pi", ".pi/agent/models.json", scripted("@earendil-works/pi-coding-agent/dist/cli.js"),
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
				for _, s := range list {
					for _, r := range s.Records(0) {
						t.Logf("%d <- %d %v %s %T", r.Seq, r.Parent, r.At.Format("05.000"), r.By, r.Body)
					}
					tell(t, s)
				}
			}
		})
	}
}

// withFurl is the environment in which the furl program is on the path.
func (st *fixture) withFurl(t testing.TB, env ...string) []string {
	t.Helper()
	bin := filepath.Join(st.home, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "furl")); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	return append(env, "PATH="+bin+":"+os.Getenv("PATH"), "FURL_STORE="+st.store, "FURL_DATA="+filepath.Join(st.home, "furl-data"))
}

// After furl setup, agents send their requests to the gateway and start furl mcp. After
// --undo, their files are as they were.
func TestSetup(t *testing.T) {
	const steps = 4
	task := "Work through the first pieces."
	for _, c := range []struct {
		agent, file, before string
		program             func(testing.TB) []string
		args, env           []string
	}{
		{
			"claude", ".claude/settings.json", "{\n  \"env\": {\n    \"CLAUDE_CODE_MAX_OUTPUT_TOKENS\": \"2000\"\n  }\n}\n",
			packaged("@anthropic-ai/claude-code-linux-x64/claude"), claude("-p", task), append(coders[0].env(&fixture{}), "ANTHROPIC_BASE_URL="),
		},
		{
			"codex", ".codex/config.toml", "# mine\nmodel = \"gpt-5-codex\"\ncheck_for_update_on_startup = false\n\n[analytics]\nenabled = false",
			scripted("@openai/codex/bin/codex.js"), codex(task), []string{"CODEX_API_KEY=dummy"},
		},
		{
			"opencode", "config/opencode/opencode.jsonc", "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  // mine\n  \"autoupdate\": false,\n  \"share\": \"disabled\",\n}\n",
			packaged("opencode-linux-x64/bin/opencode"), []string{"run", "-m", "anthropic/claude-sonnet-4-5", task},
			append(quiet(nil), "ANTHROPIC_API_KEY=dummy"),
		},
	} {
		t.Run(c.agent, func(t *testing.T) {
			t.Parallel()
			program := c.program(t)
			st := newFixture(t, options{window: 60_000, steps: steps})
			st.atHome(t, c.file, c.before)
			setup := func(args ...string) {
				t.Helper()
				cmd := st.furl(t.Context(), append([]string{"setup", c.agent}, args...)...)
				cmd.Env = st.withFurl(t, cmd.Env...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("furl setup: %v\n%s", err, out)
				}
			}
			setup("--apply", "--url", st.url)
			st.answered(t, st.run(t, st.withFurl(t, c.env...), program[0], append(program[1:len(program):len(program)], c.args...)...), steps)
			if list := st.sessions(t); len(list) != 1 {
				t.Errorf("%d sessions, want 1\n%s", len(list), st.requests())
				for _, s := range list {
					for _, r := range s.Records(0) {
						t.Logf("%d <- %d %v %s %T", r.Seq, r.Parent, r.At.Format("05.000"), r.By, r.Body)
					}
					tell(t, s)
				}
			}
			tools := 0
			for _, r := range st.sim.Requests() {
				if strings.Contains(string(r.Body), "memory_search") {
					tools++
				}
			}
			if tools == 0 {
				t.Errorf("no request has the tools of furl mcp\n%s", st.requests())
			}
			setup("--undo")
			if got, err := os.ReadFile(filepath.Join(st.home, filepath.FromSlash(c.file))); err != nil || string(got) != c.before {
				t.Errorf("after --undo: %q, %v, want %q", got, err, c.before)
			}
		})
	}
}

// The plugin for Claude Code is valid, and its commands run furl.
func TestClaudePlugin(t *testing.T) {
	t.Parallel()
	c := coders[0]
	program := c.program(t)
	folder, err := filepath.Abs("../../../contrib")
	if err != nil {
		t.Fatal(err)
	}
	plugin := filepath.Join(folder, "claude-plugin")
	st := newFixtureOf(t, 200_000, func(string) sim.Player { return sim.NewAgent(&sim.AgentOptions{Steps: 1}) })
	env := st.withFurl(t, c.env(st)...)
	for _, path := range []string{folder, plugin} {
		if out := st.run(t, env, program[0], "plugin", "validate", "--strict", path); !strings.Contains(out, "Validation passed") {
			t.Errorf("%s: %s", path, out)
		}
	}
	st.run(t, env, program[0], claude("-p", "Work.")...)
	n := len(st.sim.Requests())
	for _, words := range []string{"/furl:context", "/furl:restore furl:2.0", "/furl:search the first piece"} {
		st.run(t, env, program[0], claude("-c", "--plugin-dir", plugin, "-p", words)...)
	}
	var sent strings.Builder
	for _, r := range st.sim.Requests()[n:] {
		sent.Write(r.Body)
	}
	for _, want := range []string{"messages, 5 shown to the model", "Report in at most five lines", "Restore this hidden content in the session", "memory_search", "recorded sessions for: the first piece"} {
		if !strings.Contains(strings.ToLower(sent.String()), strings.ToLower(want)) {
			_, said, _ := strings.Cut(sent.String(), "This is what furl reports")
			t.Errorf("no request has %q; furl reported %.1000s", want, said)
		}
	}
	if strings.Contains(sent.String(), "CLAUDE_SESSION_ID}") {
		t.Error("Claude Code has not inserted the session's id")
	}
}
