package clienttest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/sim"
)

// The lines of TypeScript in docs/use/fit.md keep an agent of four windows' length inside its
// window, without a package: the provider refuses none of its requests, which do not go through
// furl, and all that was hidden can be had back.
func TestFitInTypeScript(t *testing.T) {
	t.Parallel()
	node := node(t)
	doc, err := os.ReadFile("../../../docs/use/fit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(doc), "```ts\n")
	code, _, ok := strings.Cut(code, "```")
	if !ok {
		t.Fatal("docs/use/fit.md has no lines of TypeScript")
	}
	dir := t.TempDir()
	loop, err := os.ReadFile("testdata/fit.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"fit.ts": code, "loop.mjs": string(loop)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const window = 24_000
	st := newFixtureOf(t, window, func(string) sim.Player { return sim.NewAgent(&sim.AgentOptions{Steps: 60}) })
	cmd := exec.Command(node, "--experimental-strip-types", "--no-warnings", filepath.Join(dir, "loop.mjs"))
	cmd.Env = append(os.Environ(), "FURL="+st.url, "PROVIDER="+st.provider.URL)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var done struct{ Requests, Sent, Hidden, Restored, Wrong int }
	if err := json.Unmarshal(out, &done); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sent := 0
	for _, r := range st.sim.Requests() {
		if r.Verdict == sim.VerdictRefused {
			t.Errorf("refused: %v", r.Error)
		}
		sent = max(sent, r.Usage.Input+r.Usage.CacheRead+r.Usage.CacheWrite)
	}
	t.Logf("%+v, largest prompt %d tokens", done, sent)
	if done.Sent < 4*window || sent > window || done.Hidden == 0 || done.Restored != done.Hidden || done.Wrong != 0 {
		t.Errorf("%+v, largest prompt %d tokens", done, sent)
	}
}
