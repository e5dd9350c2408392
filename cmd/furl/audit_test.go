package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl/internal/audit"
)

// Commands that use the store, and calls of furl mcp, are written down with their results
// and without contents, and not run if that is required and impossible. A removed line is
// noticed.
func TestAuditOfCommands(t *testing.T) {
	home := t.TempDir()
	file, store, id := recorded(t, home, "audit: {file: log/audit.jsonl, required: true}\n")
	run(t, home, file, "", "show", id, "--store", store)
	run(t, home, file, "", "search", "furled", "--store", store)
	run(t, home, file, "", "export", "latest", "--store", store)
	run(t, home, file, "", "hold", id, "--reason", "case 17", "--store", store)
	for _, args := range [][]string{{"show", "none"}, {"delete", id, "--yes"}, {"export", id, "-o", filepath.Join(file, "x.jsonl")}} {
		if out, err := furlCommand(home, append(args, "--store", store, "--config", file)...).CombinedOutput(); err == nil {
			t.Errorf("furl %v: %s", args, out)
		}
	}
	tools := mcpOver(t, furlCommand(home, "mcp", "--store", store, "--config", file))
	mcpSays(t, tools, "memory_search", map[string]any{"query": "furled"})
	mcpSays(t, tools, "memory_get", map[string]any{"handle": "furl:" + id[:5] + "/1.0"})
	for _, handle := range []string{"furl:none/1.0", "furl:" + id + "/99.0"} {
		if out, err := tools.CallTool(t.Context(), &mcp.CallToolParams{Name: "memory_get", Arguments: map[string]any{"handle": handle}}); err != nil || !out.IsError {
			t.Errorf("%s: %v, %v", handle, out, err)
		}
	}
	if _, err := tools.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "furl://session/" + id}); err != nil {
		t.Error(err)
	}
	if err := tools.Close(); err != nil {
		t.Error(err)
	}
	if out := run(t, home, file, "", "audit", "verify"); !strings.HasPrefix(out, "24 entries") {
		t.Errorf("furl audit verify says %s", out)
	}
	out := run(t, home, file, "", "audit", "export", "--since", "1d")
	lines := strings.Split(out, "\n")
	var got []string
	for i := range lines[:24] {
		var e audit.Entry
		if err := json.Unmarshal([]byte(lines[i]), &e); err != nil || e.ID == "" || e.Who == "" {
			t.Errorf("%v: %s", err, lines[i])
		}
		if i%2 == 1 { // the line before the access is before its result
			got = append(got, fmt.Sprintf("%s %s %s %s", e.Via, e.Action, strings.ReplaceAll(e.Session, id, "ID"), e.Outcome))
		}
	}
	want := []string{
		"cli read ID done", "cli search  done", "cli export ID done", "cli hold ID done", "cli read none not_found", "cli delete ID refused", "cli export ID failed",
		"mcp search  done", "mcp read ID done", "mcp read none not_found", "mcp read ID not_found", "mcp read ID done",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the results are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if strings.Contains(out, "furled") {
		t.Errorf("the log has a query:\n%s", out)
	}
	log := filepath.Join(home, "log", "audit.jsonl")
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, []byte(strings.Join(append(lines[:1:1], lines[2:]...), "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := furlCommand(home, "audit", "verify", "--config", file).CombinedOutput(); err == nil || !bytes.Contains(out, []byte("line 2")) {
		t.Errorf("without a line, furl audit verify says %s", out)
	}
	// The log becomes a folder, which cannot be written.
	if err := os.WriteFile(log, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(log, log+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(log, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := furlCommand(home, "show", id, "--store", store, "--config", file).CombinedOutput(); err == nil || !bytes.Contains(out, []byte("nothing was done (audit.required is set)")) {
		t.Errorf("without a log, furl show says %s", out)
	}
}
