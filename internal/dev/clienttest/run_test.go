package clienttest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/sim"
)

// furl run says what Claude Code has sent and how to continue it, and furl status finds
// the session by Claude Code's own id. Claude Code's settings beat the environment: then
// no request arrives, and furl run has said so before.
func TestClaudeByFurlRun(t *testing.T) {
	t.Parallel()
	c := coders[0]
	program := c.program(t)
	st := newFixtureOf(t, 200_000, func(string) sim.Player { return sim.NewAgent(&sim.AgentOptions{Steps: 2}) })
	bin := filepath.Join(st.home, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program[0], filepath.Join(bin, "claude")); err != nil {
		t.Fatal(err)
	}
	run := func() string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		args := append([]string{"run", "--anthropic", st.provider.URL, "--openai", "none", "--", "claude"}, claude("-p", "Work.")...)
		cmd := st.furl(ctx, args...)
		cmd.Env = append(cmd.Env, c.env(st)...)
		cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "FURL_DATA="+filepath.Join(st.home, "data"))
		killGroup(cmd)
		cmd.WaitDelay = 5 * time.Second
		var errs bytes.Buffer
		cmd.Stderr = &errs
		_ = cmd.Run() // Claude Code fails where its requests reach nobody
		return errs.String()
	}
	said := run()
	found := regexp.MustCompile(`furl: session (\w+): 3 requests recorded(?s:.*)furl: continue with: furl run .* -- claude --resume ([0-9a-f-]{36})\n`).FindStringSubmatch(said)
	if found == nil {
		t.Fatalf("furl run said:\n%s\n%s", said, st.requests())
	}
	out, err := st.furl(t.Context(), "status", "--format", "json", "--session", found[2]).Output()
	var status struct {
		Session string `json:"session"`
		Size    int    `json:"context_tokens"`
		Window  int    `json:"window"`
	}
	if err != nil || json.Unmarshal(out, &status) != nil || status.Session != found[1] || status.Size < 1000 || status.Window == 0 {
		t.Errorf("furl status: %v %s, want session %s", err, out, found[1])
	}

	st.atHome(t, ".claude/settings.json", `{"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "CLAUDE_CODE_MAX_RETRIES": "0"}}`)
	n := len(st.sim.Requests())
	said = run()
	if strings.Count(said, "sets env.ANTHROPIC_BASE_URL to http://127.0.0.1:9, so Claude Code sends its requests there and not to furl") != 2 || len(st.sim.Requests()) != n {
		t.Errorf("with a base URL in its settings, furl run said:\n%s\n%s", said, st.requests())
	}
}
