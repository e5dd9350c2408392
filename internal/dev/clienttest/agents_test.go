package clienttest

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/furlhq/furl/sim"
)

// coder is a coding agent as its users run it.
type coder struct {
	name, model string
	// title is how furl sessions names the agent; "": not tested.
	title  string
	window int
	// program is the agent's, and its first arguments.
	program func(t testing.TB) []string
	// setup writes its configuration.
	setup func(t testing.TB, st *fixture)
	env   func(st *fixture) []string
	// first and again are the arguments of a task and of the next.
	first, again func(task string) []string
}

var coders = []coder{
	{
		name: "claude", model: "claude-opus-5-5", window: 52_000,
		program: packaged("@anthropic-ai/claude-code-linux-x64/claude"),
		env: func(st *fixture) []string {
			return []string{
				"ANTHROPIC_BASE_URL=" + st.url, "ANTHROPIC_API_KEY=dummy", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=2000",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "IS_SANDBOX=1",
				"MAX_THINKING_TOKENS=1024",
			}
		},
		first: func(task string) []string { return claude("-p", task) },
		again: func(task string) []string { return claude("-c", "-p", task) },
	},
	codexAs("codex", apiKeyLogin),
	codexAs("codex with ChatGPT", chatGPTLogin),
	{
		name: "opencode chat", model: "gpt-5", window: 36_000,
		program: packaged("opencode-linux-x64/bin/opencode"), setup: opencode("@ai-sdk/openai-compatible", "gpt-5"), env: quiet,
		first: func(task string) []string { return []string{"run", "-m", "furl/gpt-5", task} },
		again: func(task string) []string { return []string{"run", "-c", "-m", "furl/gpt-5", task} },
	},
	{
		name: "opencode messages", model: "claude-sonnet-4-5", window: 36_000,
		program: packaged("opencode-linux-x64/bin/opencode"), setup: opencode("@ai-sdk/anthropic", "claude-sonnet-4-5"), env: quiet,
		first: func(task string) []string { return []string{"run", "-m", "furl/claude-sonnet-4-5", task} },
		again: func(task string) []string { return []string{"run", "-c", "-m", "furl/claude-sonnet-4-5", task} },
	},
	pi("openai-completions", "gpt-5"),
	pi("openai-responses", "gpt-5"),
	pi("anthropic-messages", "claude-sonnet-4-5"),
	{
		name: "gemini", title: "Gemini CLI", model: "gemini-3.1-pro-preview", window: 40_000,
		program: scripted("@google/gemini-cli/bundle/gemini.js"),
		setup: func(t testing.TB, st *fixture) {
			st.atHome(t, ".gemini/settings.json", `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}`)
		},
		env: func(st *fixture) []string {
			return []string{"GOOGLE_GEMINI_BASE_URL=" + st.url, "GEMINI_API_KEY=dummy", "GEMINI_CLI_TRUST_WORKSPACE=true"}
		},
		first: func(task string) []string { return []string{"--yolo", "-p", task} },
		again: func(task string) []string { return []string{"--yolo", "--resume", "latest", "-p", task} },
	},
}

func claude(args ...string) []string {
	return append(args, "--model", "claude-opus-5-5", "--dangerously-skip-permissions")
}

func codex(args ...string) []string {
	return append([]string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}, args...)
}

// codexAs is Codex with its built-in provider, its default model, and a sign-in.
func codexAs(name, login string) coder {
	return coder{
		name: name, window: 40_000,
		program: scripted("@openai/codex/bin/codex.js"),
		setup: func(t testing.TB, st *fixture) {
			st.atHome(t, ".codex/auth.json", login)
			st.atHome(t, ".codex/config.toml", fmt.Sprintf("openai_base_url = %q\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n", st.url+"/v1"))
		},
		env:   func(*fixture) []string { return nil },
		first: func(task string) []string { return codex(task) },
		again: func(task string) []string { return codex("resume", "--last", task) },
	}
}

const apiKeyLogin = `{"auth_mode": "apikey", "OPENAI_API_KEY": "dummy"}`

// chatGPTLogin has a token without a signature, of an account that does not exist.
var chatGPTLogin = fmt.Sprintf(`{"auth_mode": "chatgpt", "OPENAI_API_KEY": null, "tokens": {"id_token": %[1]q, "access_token": %[1]q, "refresh_token": "r", "account_id": "acc-1"}, "last_refresh": %[2]q}`,
	unsigned(`{"alg":"none"}`)+"."+unsigned(`{"email":"a@example.com","exp":4000000000,"https://api.openai.com/auth":{"chatgpt_account_id":"acc-1","chatgpt_plan_type":"plus","chatgpt_user_id":"u-1"}}`)+".x",
	time.Now().UTC().Format(time.RFC3339))

func unsigned(json string) string { return base64.RawURLEncoding.EncodeToString([]byte(json)) }

func quiet(*fixture) []string {
	return []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"}
}

func opencode(npm, model string) func(testing.TB, *fixture) {
	return func(t testing.TB, st *fixture) {
		st.write(t, "opencode.json", string(mustJSON(map[string]any{
			"autoupdate": false, "share": "disabled", "model": "furl/" + model, "small_model": "furl/" + model,
			"permission": map[string]any{"bash": "allow", "read": "allow", "external_directory": "allow"},
			"provider": map[string]any{"furl": map[string]any{
				"npm": npm, "options": map[string]any{"baseURL": st.url + "/v1", "apiKey": "dummy"},
				"models": map[string]any{model: map[string]any{"tool_call": true, "limit": map[string]any{"context": 1_000_000, "output": 4096}}},
			}},
		})))
	}
}

func pi(api, model string) coder {
	args := func(more ...string) []string {
		return append([]string{"--provider", "furl", "--model", model}, more...)
	}
	return coder{
		name: "pi " + api, model: model, window: 26_000,
		program: scripted("@earendil-works/pi-coding-agent/dist/cli.js"),
		setup: func(t testing.TB, st *fixture) {
			base := st.url
			if api != "anthropic-messages" {
				base += "/v1"
			}
			st.atHome(t, ".pi/agent/models.json", string(mustJSON(map[string]any{"providers": map[string]any{"furl": map[string]any{
				"baseUrl": base, "api": api, "apiKey": "dummy", "models": []any{map[string]any{
					"id": model, "name": model, "reasoning": false, "input": []string{"text"}, "contextWindow": 1_000_000, "maxTokens": 4096,
					"cost": map[string]any{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
				}},
			}}})))
		},
		env:   func(*fixture) []string { return []string{"PI_OFFLINE=1"} },
		first: func(task string) []string { return args("-p", task) },
		again: func(task string) []string { return args("-p", "-c", task) },
	}
}

// packaged is a program of a package.
func packaged(name string) func(testing.TB) []string {
	return func(t testing.TB) []string {
		name := filepath.Join(packages(t), filepath.FromSlash(name))
		if _, err := os.Stat(name); err != nil {
			t.Skipf("%s is not for this system", filepath.Base(name))
		}
		return []string{name}
	}
}

// scripted is a script of a package.
func scripted(name string) func(testing.TB) []string {
	return func(t testing.TB) []string {
		return []string{node(t), filepath.Join(packages(t), filepath.FromSlash(name))}
	}
}

// atHome writes a file into the client's home.
func (st *fixture) atHome(t testing.TB, name, content string) {
	t.Helper()
	st.write(t, filepath.Join("..", filepath.FromSlash(name)), content)
}

// Coding agents at work, each resumed by its own means. X1 FURL_STEPS=70 makes it long: steps
// of each of the two tasks.
func TestCoders(t *testing.T) {
	steps := 14
	if n, err := strconv.Atoi(os.Getenv("FURL_STEPS")); err == nil {
		steps = n
	}
	for _, c := range coders {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			c.work(t, steps, !strings.HasPrefix(c.name, "opencode") && !strings.HasPrefix(c.name, "codex"))
		})
	}
}

// work lets an agent do two tasks of so many steps, and judges.
func (c coder) work(t *testing.T, steps int, recall bool) {
	program := c.program(t)
	st := newFixture(t, options{window: c.window, steps: steps, recall: recall})
	if c.setup != nil {
		c.setup(t, st)
	}
	tasks := 0
	st.twice(t, steps, func(task string) string {
		args := c.first
		if tasks++; tasks > 1 {
			args = c.again
		}
		return st.run(t, c.env(st), program[0], append(program[1:len(program):len(program)], args(task)...)...)
	})
	if got := st.sessions(t)[0].Meta().Client; c.title != "" && got != c.title {
		t.Errorf("furl takes the agent for %q, want %q", got, c.title)
	}
	if !strings.HasPrefix(c.name, "codex") {
		return
	}
	for _, r := range st.sim.Requests() {
		if r.Method == "POST" && !strings.Contains(string(r.Body), `"type":"additional_tools"`) {
			t.Errorf("request %d has no tools", r.N)
		}
	}
}

// What furl run starts reaches the gateway with nothing configured.
func TestRun(t *testing.T) {
	const steps = 4
	task := "Work through the first pieces."
	for _, c := range []struct {
		name    string
		program func(testing.TB) []string
		args    []string
		env     []string
	}{
		{"claude", packaged("@anthropic-ai/claude-code-linux-x64/claude"), claude("-p", task), append(coders[0].env(&fixture{}), "ANTHROPIC_BASE_URL=")},
		{"opencode", packaged("opencode-linux-x64/bin/opencode"), []string{"run", "-m", "anthropic/claude-sonnet-4-5", task}, append(quiet(nil), "ANTHROPIC_API_KEY=dummy")},
		{"codex", named("codex", scripted("@openai/codex/bin/codex.js")), codex("-m", "gpt-5-codex", task), []string{"CODEX_API_KEY=dummy"}},
		// Over Vertex AI with a key it needs no settings.
		{"gemini", named("gemini", scripted("@google/gemini-cli/bundle/gemini.js")), []string{"--yolo", "-p", task},
			[]string{"GOOGLE_GENAI_USE_VERTEXAI=true", "GOOGLE_API_KEY=dummy", "GEMINI_CLI_TRUST_WORKSPACE=true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			program := c.program(t)
			st := newFixture(t, options{window: 60_000, steps: steps})
			st.stop(t, syscall.SIGTERM)
			args := append([]string{"run"}, st.serveArgs()...)
			args = append(append(append(args, "--"), program...), c.args...)
			env := append([]string{asFurl + "=1", "FURL_STORE=" + st.store}, c.env...)
			st.answered(t, st.run(t, env, os.Args[0], args...), steps)
			for _, r := range st.sim.Requests() {
				if r.Verdict != sim.VerdictOK {
					t.Errorf("request %d, %s %s, %s: %s", r.N, r.Method, r.Path, r.Verdict, r.Error)
				}
			}
			if list := st.sessions(t); len(list) != 1 {
				t.Errorf("%d sessions, want 1", len(list))
			}
		})
	}
}

// named makes a program of a script, under a name of its own.
func named(name string, script func(testing.TB) []string) func(testing.TB) []string {
	return func(t testing.TB) []string {
		file := filepath.Join(t.TempDir(), name)
		text := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", strings.Join(script(t), "' '"))
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return []string{file}
	}
}
