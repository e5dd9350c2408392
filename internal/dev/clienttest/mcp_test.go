package clienttest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

// fact is what a recorded session says and no client's request does before a search.
const (
	fact       = "The retry limit is 7, because the zebra gateway drops the eighth request."
	factQuery  = "zebra gateway retry limit"
	factNumber = "eighth request"
)

// recording writes a session of Claude Code that states the fact into a folder.
func (st *fixture) recording(t testing.TB) (folder string) {
	t.Helper()
	var lines []byte
	add := func(kind string, message map[string]any) {
		n := len(strings.Split(string(lines), "\n"))
		line := map[string]any{
			"type": kind, "uuid": fmt.Sprintf("0000000%d-0000-4000-8000-000000000000", n), "sessionId": "11111111-2222-4333-8444-555555555555",
			"cwd": "/src/zoo", "timestamp": fmt.Sprintf("2026-10-01T08:00:0%dZ", n), "message": message,
		}
		if n > 1 {
			line["parentUuid"] = fmt.Sprintf("0000000%d-0000-4000-8000-000000000000", n-1)
		}
		lines = append(append(lines, mustJSON(line)...), '\n')
	}
	add("user", map[string]any{"role": "user", "content": "Why is the retry limit so low?"})
	add("assistant", map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
		"usage": map[string]int{"input_tokens": 10, "output_tokens": 20}, "content": []any{map[string]string{"type": "text", "text": fact}},
	})
	add("user", map[string]any{"role": "user", "content": "Thanks."})
	st.write(t, "../recordings/11111111-2222-4333-8444-555555555555.jsonl", string(lines))
	return filepath.Join(st.home, "recordings")
}

// imported imports a folder into the store.
func (st *fixture) imported(t testing.TB, folder string) {
	t.Helper()
	if out, err := st.furl(t.Context(), "import", folder).CombinedOutput(); err != nil {
		t.Fatalf("furl import: %v\n%s", err, out)
	}
}

// inspect runs the inspector's command line and returns what it printed.
func (st *fixture) inspect(t testing.TB, server []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	program := scripted("@modelcontextprotocol/inspector/clients/launcher/build/index.js")(t)
	all := append(append(append(program[1:len(program):len(program)], "--cli"), server...), args...)
	cmd := exec.CommandContext(ctx, program[0], all...)
	cmd.Env, cmd.Dir = st.env(), st.dir
	killGroup(cmd)
	cmd.WaitDelay = 5 * time.Second
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("inspector %v: %v\n%s\n%s", args, err, out, errs.String())
	}
	return string(out)
}

// listening starts furl mcp over HTTP and returns its address.
func (st *fixture) listening(t testing.TB, args ...string) string {
	t.Helper()
	cmd := st.furl(context.Background(), append([]string{"mcp", "--listen", "127.0.0.1:0"}, args...)...)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	in := bufio.NewScanner(errs)
	for in.Scan() {
		if url, ok := strings.CutPrefix(in.Text(), "furl mcp listens on "); ok {
			if !strings.Contains(url, "://") {
				url = "http://" + url
			}
			return url
		}
	}
	t.Fatal("furl mcp does not listen")
	return ""
}

// The MCP inspector, which is the reference client, uses every feature of furl mcp on
// both transports.
func TestInspector(t *testing.T) {
	t.Parallel()
	st := newFixtureOf(t, 200_000, func(string) sim.Player { return sim.NewAgent(&sim.AgentOptions{Steps: 1}) })
	st.imported(t, st.recording(t))
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			server := append(st.withFurlName(t), "mcp", "--store", st.store)
			if transport == "http" {
				server = []string{st.listening(t), "--transport", "http"}
			}
			var tools struct {
				Tools []struct {
					Name        string
					InputSchema struct{ Type string }
				}
			}
			if out := st.inspect(t, server, "--method", "tools/list", "--strict"); json.Unmarshal([]byte(out), &tools) != nil || len(tools.Tools) != 7 {
				t.Errorf("tools: %s", out)
			}
			call := func(tool string, want string, args ...string) string {
				t.Helper()
				all := []string{"--method", "tools/call", "--tool-name", tool}
				for _, arg := range args {
					all = append(all, "--tool-arg", arg)
				}
				out := st.inspect(t, server, all...)
				var result struct {
					Content []struct{ Type, Text string }
					IsError bool
				}
				if err := json.Unmarshal([]byte(out), &result); err != nil || result.IsError || len(result.Content) == 0 {
					t.Fatalf("%s %v: %v\n%s", tool, args, err, out)
				}
				var texts []string
				for _, c := range result.Content {
					texts = append(texts, c.Text)
				}
				text := strings.Join(texts, "\n")
				if !strings.Contains(text, want) {
					t.Errorf("%s %v does not say %q: %s", tool, args, want, text)
				}
				return text
			}
			found := call("memory_search", fact, "query="+factQuery)
			_, rest, _ := strings.Cut(found, "[furl:")
			handle, _, ok := strings.Cut(rest, "]")
			id, _, _ := strings.Cut(handle, "/")
			if !ok || id == "" {
				t.Fatalf("no handle in %s", found)
			}
			called := map[string]bool{"memory_search": true}
			for tool, c := range map[string]struct{ want, arg string }{
				"memory_get":     {fact, "handle=furl:" + handle},
				"memory_pin":     {"inned", "handle=furl:" + handle},
				"memory_unpin":   {"inned", "handle=furl:" + handle},
				"memory_restore": {"sees all of it already", "handle=furl:" + handle},
				"session_list":   {id, "project=all"},
				"context_status": {"Context at its newest message", "session=" + id},
			} {
				call(tool, c.want, c.arg)
				called[tool] = true
			}
			for _, tool := range tools.Tools {
				if !called[tool.Name] || tool.InputSchema.Type != "object" {
					t.Errorf("the tool %s was not called, or its arguments are %q", tool.Name, tool.InputSchema.Type)
				}
			}
			uri := "furl://session/" + id
			for _, c := range []struct {
				want string
				args []string
			}{
				{`"recall"`, []string{"--method", "prompts/list"}},
				{"zebra herd", []string{"--method", "prompts/get", "--prompt-name", "recall", "--prompt-args", "topic=zebra herd"}},
				{uri, []string{"--method", "resources/list"}},
				{"furl://session/{id}{?before}", []string{"--method", "resources/templates/list"}},
				{factNumber, []string{"--method", "resources/read", "--uri", uri}},
			} {
				if out := st.inspect(t, server, c.args...); !strings.Contains(out, c.want) {
					t.Errorf("%v does not say %q: %s", c.args, c.want, out)
				}
			}
		})
	}
}

// withFurlName returns a program named furl.
func (st *fixture) withFurlName(t testing.TB) []string {
	t.Helper()
	st.withFurl(t)
	return []string{filepath.Join(st.home, "bin", "furl")}
}

// recaller is a model that searches its client's earlier sessions with furl mcp before
// it replies. Claude Code names tools of MCP servers without their definitions, which
// the model has to load first; Codex's default model calls them in a script.
type recaller struct{}

func (recaller) Play(_ context.Context, req *protocol.Request) (sim.Reply, error) {
	loaded := false
	for i := range req.Messages {
		for j := range req.Messages[i].Blocks {
			switch b := &req.Messages[i].Blocks[j]; {
			case b.Kind == furl.KindCall && b.Name == "ToolSearch":
				loaded = true
			case b.Kind == furl.KindResult && strings.Contains(b.Text, factNumber):
				return sim.Text("I remember: the limit is 7."), nil
			case b.Kind == furl.KindCall && (strings.HasSuffix(b.Name, "memory_search") || b.Name == "exec"):
				if i < len(req.Messages)-2 {
					return sim.Text("The search found nothing."), nil
				}
			}
		}
	}
	call := func(name string, args map[string]string) (sim.Reply, error) {
		return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindCall, Name: name, Args: mustJSON(args)}}}, nil
	}
	search, loader, scripts := "", false, false
	for i := range req.Messages {
		for j := range req.Messages[i].Blocks {
			b := &req.Messages[i].Blocks[j]
			scripts = scripts || b.Name == "additional_tools" && strings.Contains(b.Text, "`ALL_TOOLS`")
		}
	}
	for i := range req.Preamble {
		b := &req.Preamble[i]
		switch {
		case b.Kind != furl.KindOpaque:
		case strings.HasSuffix(b.ID, "memory_search"):
			search = b.ID
		case b.ID == "mcp__furl" && strings.Contains(b.Text, `"memory_search"`): // a namespace of tools
			search = "memory_search"
		case b.ID == "ToolSearch":
			loader = true
		}
	}
	switch {
	case search != "":
		return call(search, map[string]string{"query": factQuery})
	case loader && !loaded:
		return call("ToolSearch", map[string]string{"query": "select:mcp__furl__memory_search"})
	case loaded:
		return call("mcp__furl__memory_search", map[string]string{"query": factQuery})
	case scripts:
		script := fmt.Sprintf("text(await tools.mcp__furl__memory_search({query: %q}))", factQuery)
		return sim.Reply{Blocks: []furl.Block{{Kind: furl.KindCall, Name: "exec", Args: mustJSON(script)}}}, nil
	}
	return sim.Text("There is no search."), nil
}

// Agents that have furl mcp in their configuration start it, their models search its
// recordings, and what it finds is in the next request.
func TestAgentsRecall(t *testing.T) {
	const task = "Why is the retry limit so low? Search earlier sessions."
	for _, c := range coders {
		agent, _, chat := strings.Cut(c.name, " ")
		file := map[string]string{"claude": ".claude.json", "codex": ".codex/config.toml", "opencode": "config/opencode/opencode.json"}[agent]
		if file == "" || chat && !strings.HasSuffix(c.name, "chat") {
			continue
		}
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			program := c.program(t)
			st := newFixtureOf(t, 200_000, func(string) sim.Player { return recaller{} })
			folder := st.recording(t)
			st.imported(t, folder)
			if c.setup != nil {
				c.setup(t, st)
			}
			entry, ok := agents.MCP(agent, append(st.withFurlName(t), "mcp", "--store", st.store, "--follow", "--folder", folder))
			if !ok {
				t.Fatalf("no entry for %s", agent)
			}
			before, _ := os.ReadFile(filepath.Join(st.home, file)) // there may be none
			st.atHome(t, file, string(before)+entry.Text)
			out := st.run(t, c.env(st), program[0], append(program[1:len(program):len(program)], c.first(task)...)...)
			if !strings.Contains(out, "I remember: the limit is 7.") {
				t.Errorf("%s said %.2000s\n%s", agent, out, st.requests())
			}
			sent := 0
			for _, r := range st.sim.Requests() {
				if r.Verdict != sim.VerdictOK {
					t.Errorf("request %d, %s %s, %s: %s", r.N, r.Method, r.Path, r.Verdict, r.Error)
				}
				if strings.Contains(string(r.Body), factNumber) {
					sent++
				}
			}
			if sent == 0 {
				t.Errorf("no request has the result of the search\n%s", st.requests())
			}
		})
	}
}
