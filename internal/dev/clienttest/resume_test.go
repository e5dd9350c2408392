package clienttest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/sim"
)

// heir is a coding agent that continues a session of another one.
type heir struct {
	coder
	to string // its name for furl resume
	// resume adds a task to the arguments that furl prints.
	resume func(args []string, task string) []string
}

func heirs(t testing.TB) []heir {
	named := func(name string) coder {
		i := slices.IndexFunc(coders, func(c coder) bool { return c.name == name })
		if i < 0 {
			t.Fatalf("no agent %q", name)
		}
		return coders[i]
	}
	return []heir{
		{named("codex"), "codex", func(args []string, task string) []string { return codex(append(args, task)...) }},
		{named("pi openai-completions"), "pi", func(args []string, task string) []string {
			return append(args, "--provider", "furl", "--model", "gpt-5", "-p", task)
		}},
		{named("opencode chat"), "opencode", func(args []string, task string) []string {
			return append(append([]string{"run", "-m", "furl/gpt-5"}, args...), task)
		}},
		{named("claude"), "claude", func(args []string, task string) []string { return claude(append(args, "-p", task)...) }},
	}
}

// inherit hands a session over to an agent, has it do a task with its own resume command, and
// returns its first request of the task.
func (st *fixture) inherit(t *testing.T, h heir, session, task string, flags ...string) string {
	t.Helper()
	program := h.program(t)
	if h.setup != nil {
		h.setup(t, st)
	}
	cmd := st.furl(t.Context(), append([]string{"resume", session, "--to", h.to, "--dir", ".", "--json"}, flags...)...)
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(program[0])+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("furl resume %s --to %s: %v\n%s", session, h.to, err, errs.String())
	}
	var written struct{ Command []string }
	if err := json.Unmarshal(out, &written); err != nil || len(written.Command) < 3 {
		t.Fatalf("furl resume printed %s: %v", out, err)
	}
	if h.to == "codex" {
		st.opens(t, program, written.Command[2])
	}
	n := len(st.sim.Requests())
	said := st.run(t, h.env(st), program[0], append(program[1:len(program):len(program)], h.resume(written.Command[1:], task)...)...)
	if !strings.Contains(said, "Done after") {
		t.Errorf("%s said %.2000q\n%s", h.name, said, st.requests())
	}
	first := ""
	for _, r := range st.sim.Requests()[n:] {
		if r.Method != "POST" {
			continue
		}
		if r.Verdict != sim.VerdictOK {
			t.Errorf("%s, request %d, %s %s, %s: %s", h.name, r.N, r.Method, r.Path, r.Verdict, r.Error)
		}
		if body := string(r.Body); first == "" && strings.Contains(body, task) {
			first = body
		}
	}
	return first
}

// opens checks that Codex opens a session as its terminal interface does, through its server, and
// shows it.
func (st *fixture) opens(t *testing.T, program []string, session string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program[0], append(program[1:len(program):len(program)], "app-server")...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = st.env(), st.dir, 5*time.Second
	killGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = cmd.Wait() }() // it was killed
	fmt.Fprintf(in, `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"furl","title":"furl","version":"1"}}}
{"method":"initialized"}
{"id":2,"method":"thread/resume","params":{"threadId":%q}}
`, session)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var reply struct {
			ID     int
			Error  json.RawMessage
			Result struct {
				Thread struct{ Turns []json.RawMessage }
			}
		}
		if json.Unmarshal(lines.Bytes(), &reply) != nil || reply.ID != 2 {
			continue
		}
		if len(reply.Error) > 0 || len(reply.Result.Thread.Turns) == 0 {
			t.Errorf("Codex opens the session with %.1000s", lines.Text())
		}
		return
	}
	t.Errorf("Codex does not open the session: %v", lines.Err())
}

// inOrder checks that a request has all the words, one after the other.
func inOrder(t *testing.T, agent, body string, words []string) {
	t.Helper()
	rest := body
	for _, w := range words {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Errorf("the request of %s has no %q after the words before it\n%.3000s", agent, w, body)
			return
		}
		rest = after
	}
}

// A session goes from agent to agent. Each continues it with its own resume command, and sends
// what all the ones before it have seen.
func TestResume(t *testing.T) {
	const steps = 3
	t.Parallel()
	list := heirs(t)
	first := list[len(list)-1]
	program := first.program(t)
	st := newFixture(t, options{window: 400_000, steps: steps})
	st.answered(t, st.run(t, first.env(st), program[0], append(program[1:len(program):len(program)], first.first("Work through the first pieces.")...)...), steps)
	seen := []string{"Work through the first pieces."}
	for n := range steps {
		seen = append(seen, marker(n+1))
	}
	seen = append(seen, "Done after")
	for i, h := range list {
		task := "Task number " + string(rune('1'+i)) + "."
		body := st.inherit(t, h, "latest", task)
		if t.Failed() {
			return
		}
		inOrder(t, h.name, body, append(slices.Clone(seen), task))
		seen = append(seen, task, "Done after")
	}
}

// What another provider would refuse is changed: ids and names of calls, images and documents in
// places that it does not know, reasoning, calls without a result.
func TestResumeForeign(t *testing.T) {
	for _, h := range heirs(t) {
		t.Run(h.to, func(t *testing.T) {
			t.Parallel()
			h.foreign(t)
		})
	}
}

// foreign has the agent continue the sessions of testdata/resume.
func (h *heir) foreign(t *testing.T) {
	st := newFixture(t, options{window: 400_000, steps: 1})
	for name, want := range map[string][]string{
		"anthropic.json": {"Look at this.", "I look.", "the image", "exit status 1", "Also be quick.", "It is dark.", "And now?", "I run it.", "Go on."},
		"chat.json":      {"Look.", `"A`, `"B`, "More.", `"C`, "Read all.", "Go on."},
		"responses.json": {"Look.", "text(1)", `"1`, "seen", "a.png", "Seen.", "Go.", "Go on."},
	} {
		file, err := filepath.Abs(filepath.Join("testdata", "resume", name))
		if err != nil {
			t.Fatal(err)
		}
		inOrder(t, h.name+" with "+name, st.inherit(t, *h, file, "Go on."), want)
	}
}
