package main

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// browse requests a page as a browser does.
func browse(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v\n%s", url, resp.Status, err, body)
	}
	return string(body)
}

// furl ui works while furl serve records in the same store, shows what it records, and
// has the same list of sessions.
func TestUIBesideServe(t *testing.T) {
	provider, url := newHeld(t)
	provider.release()
	home := t.TempDir()
	p := serve(t, home, "--anthropic", url, "--openai", "none")
	const first, second = "Tell me of furled sails.", "Tell me of knots."
	record := func(body string) {
		if _, err := io.Copy(io.Discard, post(t, p.url+"/v1/messages", body).Body); err != nil {
			t.Fatal(err)
		}
	}
	record(streamed)
	if list := browse(t, p.url+"/"); !strings.Contains(list, first) { // it waits until the reply is recorded
		t.Errorf("furl serve lists\n%s", list)
	}
	ui := start(t, furlCommand(home, "ui", "--listen", "127.0.0.1:0", "--no-open"))
	if list := browse(t, ui.url); !strings.Contains(list, first) || strings.Contains(list, second) {
		t.Errorf("furl ui lists\n%s", list)
	}
	record(strings.Replace(streamed, first, second, 1))
	browse(t, p.url+"/")
	if list := browse(t, ui.url); !strings.Contains(list, first) || !strings.Contains(list, second) {
		t.Errorf("after another session, furl ui lists\n%s", list)
	}
	if err := ui.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-ui.done
	if code := ui.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("after an interrupt, furl ui exits with %d:\n%s", code, ui.log())
	}
}
