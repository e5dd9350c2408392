package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/certstest"
)

// beAgent makes the test binary an agent that sends one request to its base URL.
const beAgent = "FURL_TEST_BE_AGENT"

// runAgent prints the status and the session of the response. It returns the exit code.
func runAgent() int {
	req, err := http.NewRequest(http.MethodPost, os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", strings.NewReader(streamed))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for name, value := range map[string]string{"X-Api-Key": "k", "Anthropic-Version": "2023-06-01", "Content-Type": "application/json"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println("agent:", resp.StatusCode, resp.Header.Get("X-Furl-Session"), strings.Contains(string(body), "message_stop"), err)
	return 0
}

// furl run and furl ui use a gateway with a certificate of a private authority that
// requires certificates of its clients. The agent and the browser need neither. The
// gateway's own configuration works for a gateway of one's own, too.
func TestRunAndPageOfAnotherGateway(t *testing.T) {
	provider, upstream := newHeld(t)
	provider.release()
	home := t.TempDir()
	servers, clients := certstest.NewAuthority(t, "servers"), certstest.NewAuthority(t, "clients")
	at := func(name string) string { return filepath.Join(home, name) }
	cert, key := servers.Issue(t, "furl.internal", 24*time.Hour)
	clientCert, clientKey := clients.Issue(t, "ann", time.Hour)
	for name, data := range map[string][]byte{"cert.pem": cert, "key.pem": key, "servers.pem": servers.PEM, "clients.pem": clients.PEM, "ann.pem": clientCert, "ann.key": clientKey} {
		certstest.Write(t, at(name), data)
	}
	file, store := at("furl.yaml"), at("furl.db")
	settings(t, file, "gateway: {openai: none, anthropic: "+upstream+", tenants: true, tls: {cert_file: cert.pem, key_file: key.pem, client_ca_file: clients.pem, client_identity: subject}}\n")
	p := serve(t, home, "--store", store, "--config", file)
	trusting := []string{"FURL_CA_FILE=" + at("servers.pem")}
	known := append(trusting, "FURL_CERT_FILE="+at("ann.pem"), "FURL_CERT_KEY_FILE="+at("ann.key"))
	with := func(env []string, args ...string) *exec.Cmd {
		cmd := furlCommand(home, args...)
		cmd.Env = append(cmd.Env, env...)
		return cmd
	}
	agent := []string{"--", "env", beAgent + "=1", os.Args[0]}
	remote := append([]string{"run", "--gateway", p.url}, agent...)
	for want, env := range map[string][]string{
		"the certificate is not trusted; if it has a private authority, set FURL_CA_FILE": nil,
		"set FURL_CERT_FILE and FURL_CERT_KEY_FILE":                                       trusting,
	} {
		if out, err := with(env, remote...).CombinedOutput(); err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "agent:") {
			t.Errorf("%v: %v\n%s, want %q", env, err, out, want)
		}
	}
	out, err := with(known, remote...).CombinedOutput()
	said, rest, _ := strings.Cut(string(out), "\n")
	id, _, ok := strings.Cut(strings.TrimPrefix(said, "agent: 200 "), " true <nil>")
	if err != nil || !ok || !strings.Contains(rest, "furl: session "+id+": 1 request recorded by "+p.url) {
		t.Fatalf("furl run --gateway: %v\n%s", err, out)
	}
	if tenants := run(t, home, file, "", "tenants", "--store", store); !strings.Contains(tenants, "ann ") {
		t.Errorf("the tenants are %s", tenants)
	}
	if out, err := with(known, append([]string{"run", "--gateway", p.url, "--policy", "auto"}, agent...)...).CombinedOutput(); err == nil || !strings.Contains(string(out), "--policy has no effect with --gateway") {
		t.Errorf("furl run --gateway --policy: %s", out)
	}

	page := start(t, with(known, "ui", "--gateway", p.url, "--listen", "127.0.0.1:0", id))
	local := strings.TrimSuffix(page.url, "/furl/sessions/"+id)
	ask := func(method, path, host string, headers ...string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(method, local+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Accept", "text/html")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if code, body := ask("GET", "/furl/sessions/"+id, ""); code != 200 || !strings.Contains(body, id) {
		t.Errorf("the page of the session: %d %s", code, body)
	}
	for _, tt := range []struct {
		host, origin string
		code         int
	}{{"", local, 303}, {"", "https://evil.example", 403}, {"evil.example", "http://evil.example", 403}} {
		if code, _ := ask("POST", "/furl/logout", tt.host, "Origin", tt.origin); code != tt.code {
			t.Errorf("a change from %s at host %q: %d, want %d", tt.origin, tt.host, code, tt.code)
		}
	}
	if out, _ := with(known, "doctor", "--gateway", p.url).CombinedOutput(); !strings.Contains(string(out), "ok       reachable: "+p.url) { // other checks may complain
		t.Errorf("furl doctor says\n%s", out)
	}
	if out, err := with(nil, append([]string{"run", "--store", store, "--config", file}, agent...)...).CombinedOutput(); err != nil || !strings.Contains(string(out), "agent: 200 ") {
		t.Errorf("furl run with the gateway's configuration: %v\n%s", err, out)
	}
}
