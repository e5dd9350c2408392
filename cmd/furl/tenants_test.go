//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/sim"
)

// user is a user of a gateway, with their key and credential.
type user struct{ key, credential string }

func (u user) send(t *testing.T, method, url, body string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	if u.key != "" {
		req.Header.Set("X-Furl-Key", u.key)
	}
	if u.credential != "" {
		req.Header.Set("Authorization", "Bearer "+u.credential)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, answer
}

// say sends a request to a model and returns its session.
func (u user) say(t *testing.T, url, words string) string {
	t.Helper()
	session, _ := u.post(t, url, fmt.Sprintf(`{"role":"user","content":%q}`, words))
	return session
}

// post sends messages and returns their session and the response.
func (u user) post(t *testing.T, url, messages string) (session string, content json.RawMessage) {
	t.Helper()
	resp, answer := u.send(t, http.MethodPost, url+"/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":90,"messages":[`+messages+`]}`)
	var reply struct {
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(answer, &reply); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, answer)
	}
	return resp.Header.Get("X-Furl-Session"), reply.Content
}

// sees reports whether a session can be read.
func (u user) sees(t *testing.T, url, session string) bool {
	t.Helper()
	resp, _ := u.send(t, http.MethodGet, url+"/furl/v1/sessions/"+session, "")
	return resp.StatusCode == http.StatusOK
}

// tenant is the user's tenant as the gateway reports it.
func (u user) tenant(t *testing.T, url string) string {
	t.Helper()
	var st gateway.Status
	_, body := u.send(t, http.MethodGet, url+"/furl/v1/status", "")
	if err := json.Unmarshal(body, &st); err != nil || st.Tenant == "" {
		t.Fatalf("the status is %s, %v", body, err)
	}
	return string(st.Tenant)
}

// tenantsHome is a folder with a configuration for several users.
func tenantsHome(t *testing.T, more string) (home, file string) {
	t.Helper()
	provider := httptest.NewServer(sim.New(&sim.Options{NoAuth: true}))
	t.Cleanup(provider.Close)
	home = t.TempDir()
	file = filepath.Join(home, "furl.yaml")
	settings(t, file, fmt.Sprintf("gateway:\n  openai: none\n  anthropic: %s\n  tenants: true\n%s", provider.URL, more))
	return home, file
}

// A new client key is a new tenant. The operator finds the old tenant by its key and moves
// its sessions, which continue at the new tenant.
func TestSessionsMoveToANewKey(t *testing.T) {
	home, file := tenantsHome(t, "  client_keys_file: keys\n  operator_key_file: operator\n")
	keys, operator := filepath.Join(home, "keys"), filepath.Join(home, "operator")
	settings(t, keys, "planted-ann\nplanted-bob\n")
	settings(t, operator, "planted-operator\n")
	p := serve(t, home, "--config", file)
	ann, bob := user{"planted-ann", "EMPTY"}, user{"planted-bob", "EMPTY"}
	const hello = `{"role":"user","content":"Hello from Ann."}`
	session, answer := ann.post(t, p.url, hello)
	others := bob.say(t, p.url, "Hello from Bob.")
	if !ann.sees(t, p.url, session) || ann.sees(t, p.url, others) || bob.sees(t, p.url, session) {
		t.Error("users with one credential and different keys see each other's sessions, or not their own")
	}
	old := ann.tenant(t, p.url)

	hang := func(want string) {
		t.Helper()
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		p.waitFor(t, want)
	}
	settings(t, keys, "planted-new-ann\nplanted-bob\n")
	hang("changed=gateway.client_keys_file")
	ann.key = "planted-new-ann"
	if ann.sees(t, p.url, session) {
		t.Error("the sessions of the old key are the new one's without having been moved")
	}
	if got := run(t, home, file, "planted-ann\n", "tenants", "id"); got != old {
		t.Errorf("the tenant of the old key is %s, want %s", got, old)
	}
	if got := run(t, home, file, "", "tenants"); !strings.Contains(got, old) {
		t.Errorf("the tenants are %s, want %s among them", got, old)
	}
	if got := run(t, home, file, "", "sessions", "--tenant", old[:8]); !strings.Contains(got, session[:8]) || strings.Contains(got, others[:8]) {
		t.Errorf("the sessions of the old tenant are %s, want %s", got, session)
	}
	to := run(t, home, file, "planted-new-ann\n", "tenants", "id")
	if got := run(t, home, file, "", "tenants", "move", old, to, "--dry-run"); !strings.Contains(got, "would move "+session) || ann.sees(t, p.url, session) {
		t.Errorf("a dry run says %s", got)
	}
	if got := run(t, home, file, "", "tenants", "move", old[:8], to); !strings.Contains(got, "moved "+session+"  2 messages") {
		t.Errorf("it says %s", got)
	}
	if !ann.sees(t, p.url, session) || ann.sees(t, p.url, others) || !bob.sees(t, p.url, others) || bob.sees(t, p.url, session) {
		t.Error("the sessions are not where they were moved to")
	}
	if got, _ := ann.post(t, p.url, fmt.Sprintf(`%s,{"role":"assistant","content":%s},{"role":"user","content":"Go on."}`, hello, answer)); got != session {
		t.Errorf("its next request was recorded in session %s, want %s", got, session)
	}
	if _, body := ann.send(t, http.MethodGet, p.url+"/furl/v1/search?q=Ann&in=everywhere", ""); !bytes.Contains(body, []byte(session)) {
		t.Errorf("a search does not find it: %s", body)
	}
	if got := run(t, home, file, "", "tenants", "--json"); strings.Contains(got, old) || !strings.Contains(got, to) {
		t.Errorf("the tenants are %s, want %s and not %s", got, to, old)
	}

	// The operator key is reloaded too. Client keys give no access to totals.
	metrics := func(u user) int {
		resp, _ := u.send(t, http.MethodGet, p.url+"/metrics", "")
		return resp.StatusCode
	}
	if a, b := metrics(user{"planted-operator", ""}), metrics(ann); a != 200 || b != 401 {
		t.Errorf("the operator key gives %d, a client key %d", a, b)
	}
	settings(t, operator, "planted-new-operator\n")
	hang("changed=gateway.operator_key_file")
	if a, b := metrics(user{"planted-operator", ""}), metrics(user{"", "planted-new-operator"}); a != 401 || b != 200 {
		t.Errorf("the old operator key gives %d, the new one as a bearer token %d", a, b)
	}

	// A file that other users can read is refused, and the old keys stay.
	settings(t, keys, "planted-other\n")
	if err := os.Chmod(keys, 0o644); err != nil {
		t.Fatal(err)
	}
	hang("run chmod 600 " + keys)
	if a := ann.sees(t, p.url, session); !a {
		t.Error("the old keys are gone")
	}
	if strings.Contains(p.log(), "planted") {
		t.Errorf("the log tells a key:\n%s", p.log())
	}
}

// After client keys are added, sessions of tenants by credential can be moved.
func TestSessionsOfCredentialsMoveToKeys(t *testing.T) {
	home, file := tenantsHome(t, "")
	p := serve(t, home, "--config", file)
	session := user{"", "planted-credential"}.say(t, p.url, "Hello.")
	p.kill()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	settings(t, file, string(text)+"  client_keys_file: keys\n")
	settings(t, filepath.Join(home, "keys"), "planted-ann\n")
	p = serve(t, home, "--config", file)
	ann := user{"planted-ann", "planted-credential"}
	from, to := run(t, home, file, "planted-credential", "tenants", "id"), ann.tenant(t, p.url)
	if ann.sees(t, p.url, session) {
		t.Error("it is seen before it was moved")
	}
	run(t, home, file, "", "tenants", "move", from, to, session[:6])
	if !ann.sees(t, p.url, session) {
		t.Error("it is not seen after it was moved")
	}
}

// furl serve does not start with a secret that other users can read.
func TestExposedSecretsAreRefused(t *testing.T) {
	home, file := tenantsHome(t, "  client_keys_file: keys\n")
	keys, secret := filepath.Join(home, "keys"), filepath.Join(home, "data", "tenants.key")
	settings(t, keys, "planted-ann\n")
	serve(t, home, "--config", file).kill()
	for _, exposed := range []string{keys, secret} {
		if err := os.Chmod(exposed, 0o640); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"config", "check"}} {
			out, err := furlCommand(home, append(command, "--config", file)...).CombinedOutput()
			if want := exposed + " has mode 0640, so others can read it: run chmod 600 " + exposed; err == nil || !bytes.Contains(out, []byte(want)) || bytes.Contains(out, []byte("planted")) {
				t.Errorf("furl %v: %v %s, want %q", command, err, out, want)
			}
		}
		if err := os.Chmod(exposed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
