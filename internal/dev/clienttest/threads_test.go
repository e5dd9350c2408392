package clienttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

// histories are scripts of clients that let the provider keep or replace their history.
var histories = []struct {
	name, script, model string
	needs               string // a file of the packages
	want                []string
}{
	{"anthropic tool runner", "threads.mjs", "claude-opus-5-5", "@anthropic-ai/sdk/lib/threads", []string{"Done after 14 steps.", "create 400, whole 200, whole 200"}},
	{"openai compact", "compact.mjs", "gpt-5.5", "openai", []string{"Done after 14 steps."}},
	{"agents compact", "agents-compact.mjs", "gpt-5.5", "@openai/agents", []string{"Done after 14 steps.", "compactions: "}},
	{"ai item references", "references.mjs", "gpt-5.5", "@ai-sdk/openai", []string{"Done after 14 steps.", "referred to items"}},
}

// Clients that let the provider keep or replace their history: each has one session, which is
// reduced, and the provider refuses none of its requests.
func TestHistoryKeptByTheProvider(t *testing.T) {
	const steps = 14
	for _, c := range histories {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			node := node(t)
			if _, err := os.Stat(filepath.Join(packages(t), filepath.FromSlash(c.needs))); err != nil {
				t.Skipf("%s is not installed; to install it: make clients", c.needs)
			}
			st := newFixture(t, options{window: 24_000, steps: steps})
			defer st.dump(t)
			script, err := filepath.Abs(filepath.Join("testdata", c.script))
			if err != nil {
				t.Fatal(err)
			}
			out := st.run(t, []string{
				"OPENAI_BASE_URL=" + st.url + "/v1", "OPENAI_API_KEY=dummy", "ANTHROPIC_BASE_URL=" + st.url, "ANTHROPIC_API_KEY=dummy",
				"MODEL=" + c.model, "TASK=Work through the first pieces.",
			}, node, script)
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("the client printed %q, without %q", out, want)
				}
			}
			for _, r := range st.sim.Requests() {
				if r.Verdict != sim.VerdictOK {
					t.Errorf("request %d is %s: %s", r.N, r.Verdict, r.Error)
				}
			}
			list := st.sessions(t)
			if len(list) != 1 {
				t.Fatalf("there are %d sessions, want 1\n%s", len(list), st.requests())
			}
			if problems, err := list[0].Check(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("the check found %v, %v", problems, err)
			}
		})
	}
}
