package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands that use the store are written down without contents, and not run if that is
// required and impossible. A removed line is noticed.
func TestAuditOfCommands(t *testing.T) {
	provider, url := newHeld(t)
	provider.release()
	home := t.TempDir()
	file, store := filepath.Join(home, "furl.yaml"), home+"/furl.db"
	settings(t, file, "gateway: {openai: none, anthropic: "+url+"}\naudit: {file: log/audit.jsonl, required: true}\n")
	p := serve(t, home, "--store", store, "--config", file)
	resp := post(t, p.url+"/v1/messages", streamed)
	id := resp.Header.Get("X-Furl-Session")
	var sink bytes.Buffer
	if _, err := sink.ReadFrom(resp.Body); err != nil || id == "" {
		t.Fatal(id, err)
	}
	run(t, home, file, "", "show", id, "--store", store)
	run(t, home, file, "", "search", "furled", "--store", store)
	run(t, home, file, "", "export", id, "--store", store)
	if out := run(t, home, file, "", "audit", "verify"); !strings.HasPrefix(out, "3 entries") {
		t.Errorf("furl audit verify says %s", out)
	}
	out := run(t, home, file, "", "audit", "export", "--since", "1d")
	lines := strings.Split(out, "\n")
	if len(lines) != 4 || !strings.Contains(lines[0], `"action":"read"`) || !strings.Contains(lines[0], `"session":"`+id) || !strings.Contains(lines[2], `"action":"export"`) || strings.Contains(out, "furled") {
		t.Errorf("the log is\n%s", out)
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
