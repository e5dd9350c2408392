package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// mcpOver starts furl mcp and connects to its standard input and output.
func mcpOver(t testing.TB, cmd *exec.Cmd) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	return cs
}

// mcpSays calls a tool, which must not fail, and returns its texts.
func mcpSays(t testing.TB, cs *mcp.ClientSession, tool string, args map[string]any) string {
	t.Helper()
	out, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	text := textOf(out)
	if out.IsError {
		t.Fatalf("%s %v: %s", tool, args, text)
	}
	return text
}

func textOf(out *mcp.CallToolResult) string {
	var texts []string
	for _, c := range out.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// zoo returns a recording of Claude Code whose steps each name another animal.
func zoo(id string, steps int) string {
	var b strings.Builder
	at := time.Date(2026, 10, 1, 8, 0, 0, 0, time.UTC)
	lines := 0
	add := func(kind, message string) {
		parent := "null"
		if lines > 0 {
			parent = fmt.Sprintf(`"%s-%d"`, id, lines-1)
		}
		at = at.Add(time.Second)
		fmt.Fprintf(&b, `{"type":%q,"uuid":"%s-%d","parentUuid":%s,"sessionId":%q,"cwd":"/src/zoo","timestamp":%q,"message":%s}`+"\n", kind, id, lines, parent, id, at.Format(time.RFC3339), message)
		lines++
	}
	add("user", `{"role":"user","content":"Count the animals of `+id+`."}`)
	for i := range steps {
		add("assistant", fmt.Sprintf(`{"id":"msg_%s_%d","type":"message","role":"assistant","model":"claude-sonnet-4-5","usage":{"input_tokens":%d,"output_tokens":40},"content":[{"type":"text","text":"I see animal%dof%s. %s"}]}`,
			id, i, 100+i, i, id, strings.Repeat("It grazes and looks around. ", 40)))
		add("user", fmt.Sprintf(`{"role":"user","content":"Go on after %d."}`, i))
	}
	return b.String()
}

// zoos writes recordings into a folder. They are old, so that they are complete.
func zoos(t testing.TB, folder string, sessions, steps int) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	for n := range sessions {
		path := filepath.Join(folder, fmt.Sprintf("zoo%d.jsonl", n))
		if err := os.WriteFile(path, []byte(zoo(fmt.Sprintf("zoo%d", n), steps)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
}

// imported searches until the first import has ended.
func imported(t testing.TB, cs *mcp.ClientSession) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); strings.Contains(mcpSays(t, cs, "memory_search", map[string]any{"query": "animal0ofzoo0"}), stillImporting); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the import does not end")
		}
	}
}

// stillImporting is what results say until the first import has ended.
const stillImporting = "Recordings are still being imported"

// A furl mcp that is killed several times during its first import has lost and doubled
// nothing when the import has ended.
func TestMCPKilledDuringImport(t *testing.T) {
	const sessions, steps = 24, 40
	home, folder := t.TempDir(), t.TempDir()
	zoos(t, folder, sessions, steps)
	killed := 0
	for n := range 4 {
		cmd := furlCommand(home, "mcp", "--follow", "--folder", folder)
		cs := mcpOver(t, cmd)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			text := mcpSays(t, cs, "session_list", map[string]any{"project": "all", "limit": 50})
			if have := strings.Count(text, "- s") + strings.Count(text, "- zoo"); have > n*sessions/5 || !strings.Contains(text, stillImporting) {
				if strings.Contains(text, stillImporting) {
					killed++
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("nothing is imported: %s", text)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cs.Close()
	}
	if killed == 0 {
		t.Error("the import had always ended before the process was killed")
	}
	cs := mcpOver(t, furlCommand(home, "mcp", "--follow", "--folder", folder))
	imported(t, cs)
	for n := range sessions {
		for _, i := range []int{0, steps / 2, steps - 1} {
			word := fmt.Sprintf("animal%dofzoo%d", i, n)
			if text := mcpSays(t, cs, "memory_search", map[string]any{"query": word}); strings.Count(text, "I see "+word+".") != 1 {
				t.Errorf("a search for %s: %s", word, text)
			}
		}
	}
	cs.Close()
	found := make(map[string]int)
	eachSession(t, filepath.Join(home, "data", "furl.db"), func(s *session.Session) {
		found[s.Meta().Title]++
		messages := 0
		for _, r := range s.Records(0) {
			if _, ok := r.Body.(*furl.Message); ok {
				messages++
			}
		}
		if messages != 1+2*steps || len(s.Branches()) != 1 {
			t.Errorf("session %s has %d messages and %d branches, want %d and 1", s.ID(), messages, len(s.Branches()), 1+2*steps)
		}
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("session %s: %v %v", s.ID(), problems, err)
		}
	})
	for title, n := range found {
		if n != 1 {
			t.Errorf("%q was imported %d times", title, n)
		}
	}
	if len(found) != sessions {
		t.Errorf("%d sessions, want %d", len(found), sessions)
	}
}

// A hundred calls at once get the answers that they get one by one, over both
// transports.
func TestMCPParallelCalls(t *testing.T) {
	home, folder := t.TempDir(), t.TempDir()
	zoos(t, folder, 5, 20)
	cs := mcpOver(t, furlCommand(home, "mcp", "--follow", "--folder", folder))
	imported(t, cs)
	cmd := furlCommand(home, "mcp", "--listen", "127.0.0.1:0")
	over := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	url := listening(t, cmd)
	http, err := over.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer http.Close()
	for name, cs := range map[string]*mcp.ClientSession{"stdio": cs, "HTTP": http} {
		ask := func(n int) (string, error) {
			out, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "memory_search", Arguments: map[string]any{"query": fmt.Sprintf("animal%dofzoo%d", n/5, n%5)}})
			if err != nil {
				return "", err
			}
			return textOf(out), nil
		}
		var group errgroup.Group
		got := make([]string, 100)
		for n := range got {
			group.Go(func() (err error) {
				got[n], err = ask(n)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for n, text := range got {
			want, err := ask(n)
			if err != nil || text != want || !strings.Contains(text, fmt.Sprintf("I see animal%dofzoo%d.", n/5, n%5)) {
				t.Errorf("%s, call %d: %v\n%s\nwant\n%s", name, n, err, text, want)
			}
		}
	}
}

// listening starts furl mcp over HTTP and returns its address.
func listening(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
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
	t.Fatalf("furl mcp ended: %v", in.Err())
	return ""
}

// Messages that are large, not JSON or unknown do not end furl mcp. Standard output has
// only messages of the protocol, and the end of standard input ends the process.
func TestMCPHostileInput(t *testing.T) {
	home := t.TempDir()
	cmd := furlCommand(home, "mcp", "--log", "debug")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	out, refused := bufio.NewReader(stdout), 0
	answer := func(id string) (message map[string]any) {
		t.Helper()
		for {
			line, err := out.ReadBytes('\n')
			if err != nil {
				t.Fatalf("waiting for the answer to %s: %v", id, err)
			}
			message = nil
			if err := json.Unmarshal(line, &message); err != nil || message["jsonrpc"] != "2.0" {
				t.Fatalf("standard output has %.300q", line)
			}
			switch fmt.Sprint(message["id"]) {
			case id:
				return message
			case "<nil>":
				refused++
			}
		}
	}
	send := func(line string) {
		t.Helper()
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	ping := func(after string, id int) {
		t.Helper()
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"session_list","arguments":{}}}`, id))
		if m := answer(fmt.Sprint(id)); m["result"] == nil {
			t.Errorf("after %s: %v", after, m)
		}
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if m := answer("1"); m["result"] == nil {
		t.Fatalf("initialize: %v", m)
	}
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, c := range []struct {
		name, line string
	}{
		{"an unknown method", `{"jsonrpc":"2.0","id":"x","method":"tools/destroy"}`},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"notifications/unknown"}`},
		{"an unknown tool", `{"jsonrpc":"2.0","id":"y","method":"tools/call","params":{"name":"rm"}}`},
		{"arguments of another type", `{"jsonrpc":"2.0","id":"z","method":"tools/call","params":{"name":"memory_search","arguments":[1]}}`},
		{"a query of 1 MB", `{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"memory_search","arguments":{"query":"` + strings.Repeat("zebra ", 165_000) + `"}}}`},
		{"text that is not JSON", `Hello, are you there?`},
		{"a JSON value that is not a message", `[]`},
		{"a message of 2 MB", `{"jsonrpc":"2.0","id":"b","method":"` + strings.Repeat("x", 2_000_000) + `"}`},
		{"two messages on a line", `{"jsonrpc":"2.0","id":"c","method":"ping"} {"jsonrpc":"2.0","id":"d","method":"ping"}`},
		{"a message of another protocol", `{"id":1,"method":"ping"}`},
		{"an empty line", ``},
	} {
		send(c.line)
		ping(c.name, 100+i)
	}
	if refused != 5 {
		t.Errorf("%d lines were refused, want 5", refused)
	}
	in.Close()
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(rest)) {
		if !json.Valid([]byte(line)) {
			t.Errorf("standard output has %.300q", line)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("at the end of standard input: %v", err)
	}
}
