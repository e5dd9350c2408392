package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/furlhq/furl/gateway"
)

// settings writes a configuration file.
func settings(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// reload requests a reload of the configuration.
func reload(t *testing.T, url string) (status int, done gateway.Reloaded, text string) {
	t.Helper()
	resp, err := http.Post(url+"/furl/v1/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &done); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, done, string(body)
}

// statusOf returns the gateway's status.
func statusOf(t *testing.T, url string) (st gateway.Status) {
	t.Helper()
	resp, err := http.Get(url + "/furl/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil {
		t.Fatal(err)
	}
	return st
}

// A reload during a stream does not affect the stream. Errors in the file are reported
// with their line, and nothing changes.
func TestReload(t *testing.T) {
	first, firstURL := newHeld(t)
	second, secondURL := newHeld(t)
	second.release()
	home := t.TempDir()
	file := filepath.Join(home, "furl.yaml")
	gatewayOf := func(url, more string) string {
		return fmt.Sprintf("gateway:\n  anthropic: %s\n  openai: none\n  gemini: none\n%s", url, more)
	}
	settings(t, file, gatewayOf(firstURL, ""))
	p := serve(t, home, "--store", home+"/furl.db", "--config", file)
	resp := post(t, p.url+"/v1/messages", streamed)
	<-first.stop

	// A file with a mistake in it.
	settings(t, file, gatewayOf(secondURL, "  dry_run: maybe\n"))
	if code, _, text := reload(t, p.url); code != http.StatusUnprocessableEntity || !strings.Contains(text, "(line 5): expected true or false") {
		t.Errorf("a wrong file gives %d %s", code, text)
	}
	settings(t, file, gatewayOf("none", ""))
	if code, _, text := reload(t, p.url); code != http.StatusUnprocessableEntity || !strings.Contains(text, "no upstream configured") {
		t.Errorf("a file without a provider gives %d %s", code, text)
	}
	if st := statusOf(t, p.url); st.Anthropic != firstURL || st.DryRun || st.UnderWay != 1 {
		t.Errorf("after wrong files it is %+v", st)
	}

	// Another provider, policy and level, and what cannot change.
	settings(t, file, "policy: none\npolicies: {tool-age: {max_age: 7}}\nstore: "+home+"/other.db\nretention: {age: 900d}\n"+
		gatewayOf(secondURL, "  dry_run: true\n  log: warn\n  listen: 127.0.0.1:1\n"))
	code, done, text := reload(t, p.url)
	want := []string{"policy", "policies", "retention.age", "gateway.anthropic", "gateway.log", "gateway.dry_run"}
	slices.Sort(want)
	slices.Sort(done.Changed)
	if code != http.StatusOK || !slices.Equal(done.Changed, want) || !slices.Equal(done.NeedRestart, []string{"store", "gateway.listen"}) || done.File != file {
		t.Errorf("reading it anew gives %d %s", code, text)
	}
	if st := statusOf(t, p.url); st.Anthropic != secondURL || !st.DryRun || st.UnderWay != 1 {
		t.Errorf("then it is %+v", st)
	}

	// The next request goes to the new provider, and the stream continues.
	next := post(t, p.url+"/v1/messages", streamed)
	body, err := io.ReadAll(next.Body)
	if err != nil || !bytes.Contains(body, []byte("message_stop")) || next.Header.Get("X-Furl-Dry-Run") != "true" || second.messages() != 1 {
		t.Errorf("the next request was answered %v %v: %s", next.Header, err, body)
	}
	first.release()
	body, err = io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(body, []byte("message_stop")) {
		t.Errorf("the stream ended early: %v\n%s", err, body)
	}
	if first.messages() != 1 {
		t.Error("the first provider got more than one request")
	}
	if code, done, text := reload(t, p.url); code != http.StatusOK || len(done.Changed) != 0 || len(done.NeedRestart) != 2 {
		t.Errorf("a file that has not changed gives %d %s", code, text)
	}
	if _, err := os.Stat(home + "/other.db"); err == nil {
		t.Error("another store was made")
	}
}

// SIGHUP does the same. An invalid file does not stop the gateway.
func TestHangup(t *testing.T) {
	provider, url := newHeld(t)
	provider.release()
	home := t.TempDir()
	file := filepath.Join(home, "furl.yaml")
	settings(t, file, "gateway: {openai: none, anthropic: "+url+"}\n")
	cmd := furlCommand(home, "serve", "--listen", "127.0.0.1:0", "--store", home+"/furl.db", "--config", file)
	p := start(t, cmd)
	settings(t, file, "gateway: {openai: none, anthropic: "+url+", hosts: [furl.internal], dry_run: true}\n")
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.waitFor(t, "configuration reloaded")
	if !statusOf(t, p.url).DryRun {
		t.Error("the settings are as they were")
	}
	settings(t, file, "gateway: {lsten: here}\n")
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.waitFor(t, "furl.yaml: unknown key")
	if !statusOf(t, p.url).DryRun {
		t.Error("a wrong file has changed settings")
	}
}

// Client keys are reloaded with the file. A stream continues although its key is no
// longer valid. Keys are never logged.
func TestKeysAreReadAnew(t *testing.T) {
	provider, url := newHeld(t)
	home := t.TempDir()
	file, keys := filepath.Join(home, "furl.yaml"), filepath.Join(home, "keys")
	settings(t, file, "gateway: {openai: none, anthropic: "+url+", client_keys_file: keys}\n")
	settings(t, keys, "# of the team\nk\n")
	p := serve(t, home, "--store", home+"/furl.db", "--config", file)
	status := func(key string) int {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, p.url+"/furl/v1/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Furl-Key", key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if a, b := status("k"), status("planted-key"); a != 200 || b != 401 {
		t.Fatalf("the old key gives %d, one that is none %d", a, b)
	}
	stream := post(t, p.url+"/v1/messages", streamed)
	<-provider.stop
	hang := func(text, answer string) {
		t.Helper()
		settings(t, keys, text)
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		p.waitFor(t, answer)
	}
	hang("\n", "keys has no key")
	if a := status("k"); a != 200 {
		t.Errorf("a file without keys has taken the old one away: %d", a)
	}
	hang("planted-key\n", "changed=gateway.client_keys_file")
	if a, b := status("k"), status("planted-key"); a != 401 || b != 200 {
		t.Errorf("the old key gives %d, the new one %d", a, b)
	}
	if resp := post(t, p.url+"/v1/messages", streamed); resp.StatusCode != 401 {
		t.Errorf("a request with the old key gives %d", resp.StatusCode)
	}
	provider.release()
	if body, err := io.ReadAll(stream.Body); err != nil || !bytes.Contains(body, []byte("message_stop")) {
		t.Errorf("the stream ended early: %v\n%s", err, body)
	}
	if strings.Contains(p.log(), "planted-key") {
		t.Errorf("the log tells the key:\n%s", p.log())
	}
}

// waitFor waits for a text in the output of the process.
func (p *process) waitFor(t *testing.T, words string) {
	t.Helper()
	for !strings.Contains(p.log(), words) {
		select {
		case <-p.done:
			t.Fatalf("it ended: %s\n%s", p.cmd.ProcessState, p.log())
		default:
			time.Sleep(time.Millisecond)
		}
	}
}
