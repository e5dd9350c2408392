package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// furl keys manages the keys of a running gateway: a new key is accepted and a revoked
// one refused after a reload. Neither the file, the log nor the metrics have a key.
func TestNamedKeysAreManaged(t *testing.T) {
	provider, url := newHeld(t)
	provider.release()
	home := t.TempDir()
	file := filepath.Join(home, "furl.yaml")
	settings(t, file, "gateway: {openai: none, anthropic: "+url+", keys_file: keys.json, tenants: true}\n")
	secret := run(t, home, file, "", "keys", "create", "ann", "--expires", "90d")
	p := serve(t, home, "--store", home+"/furl.db", "--config", file)
	status := func(key string) int {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, p.url+"/v1/messages", strings.NewReader(streamed))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Furl-Key", key)
		req.Header.Set("X-Api-Key", "k")
		req.Header.Set("Anthropic-Version", "2023-06-01")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if a, b := status(secret), status("furl_other"); a != 200 || b != 401 {
		t.Errorf("the key gives %d, another one %d", a, b)
	}
	second := run(t, home, file, "", "keys", "create", "ann-2", "--tenant", "ann")
	run(t, home, file, "", "keys", "revoke", "ann")
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.waitFor(t, "changed=gateway.keys_file")
	if a, b := status(secret), status(second); a != 401 || b != 200 {
		t.Errorf("the revoked key gives %d, the new one %d", a, b)
	}
	list := run(t, home, file, "", "keys", "list", "--json")
	if !strings.Contains(list, `"state": "revoked"`) || strings.Contains(list+p.log(), secret) || strings.Contains(list+p.log(), second) {
		t.Errorf("the list is %s", list)
	}
	if tenants := run(t, home, file, "", "tenants", "--store", home+"/furl.db"); !strings.Contains(tenants, "ann ") {
		t.Errorf("the tenants are %s", tenants)
	}
}
