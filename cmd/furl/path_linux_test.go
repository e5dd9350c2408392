package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// furl serve runs no function of the packages that are about clients unless something of
// that is configured, whatever requests it gets (unused). With a limit for tenants it does.
// A request to a model runs the functions that docs/internals/request.md names (path).
func TestRequestPath(t *testing.T) {
	program := filepath.Join(t.TempDir(), "furl")
	unused := []string{"internal/admission", "internal/access", "internal/audit", "internal/oidc"}
	packages := append([]string{"internal/serving", "gateway", "internal/exchange", "internal/open"}, unused...)
	for i, name := range packages {
		packages[i] = "github.com/furlhq/furl/" + name
	}
	// Without the main package the program writes no counters.
	if out, err := exec.Command("go", "build", "-cover", "-covermode=atomic", "-coverpkg=.,"+strings.Join(packages, ","), "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build furl: %v\n%s", err, out)
	}
	url := provider(t)
	isUnused := func(file string) bool {
		return slices.ContainsFunc(unused, func(dir string) bool { return strings.Contains(file, "/furl/"+dir+"/") })
	}
	// serve returns the functions of packages that are about clients that ran, and all of the others.
	serve := func(settings string) (ran []string, others map[string]bool) {
		others = make(map[string]bool)
		home := t.TempDir()
		counters := filepath.Join(home, "counters")
		if err := os.Mkdir(counters, 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := furlCommand(home, "serve", "--listen", "127.0.0.1:0", "--store", home+"/furl.db", "--anthropic", url, "--openai", url)
		cmd.Path, cmd.Env = program, append(cmd.Env, "GOCOVERDIR="+counters)
		if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		p := start(t, cmd)
		ask := func(want int, method, path, body string, headers ...string) string {
			t.Helper()
			req, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Api-Key", "key")
			for i := 0; i < len(headers); i += 2 {
				req.Header.Set(headers[i], headers[i+1])
			}
			if req.Header.Get("Accept") != "" {
				req.Header.Del("X-Api-Key") // it is a browser
			}
			resp, err := http.DefaultTransport.RoundTrip(req) // follows no redirect
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != want {
				t.Errorf("%s %s: status %d, want %d: %.200s", method, path, resp.StatusCode, want, text)
			}
			return resp.Header.Get("X-Furl-Session")
		}
		const message = `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`
		id := ask(200, "POST", "/v1/messages", message)
		ask(200, "POST", "/v1/chat/completions", `{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}`, "Cookie", "furl-page=x; other=y")
		ask(200, "POST", "/v1/messages", message, "Origin", p.url)
		ask(200, "POST", "/v1/messages/count_tokens", message, "X-Furl-Key", "key")
		ask(200, "GET", "/v1/models", "", "Anthropic-Version", "2023-06-01")
		ask(426, "GET", "/v1/responses", "", "Upgrade", "websocket")
		for _, path := range []string{"/furl/v1/status", "/furl/v1/sessions", "/furl/v1/sessions/" + id, "/furl/v1/sessions/" + id + "/view", "/furl/v1/search?q=hello", "/furl/v1/savings", "/metrics"} {
			ask(200, "GET", path, "")
		}
		ask(404, "GET", "/furl/v1/sessions/none", "")
		ask(403, "GET", "/furl/v1/sessions", "", "Origin", "https://other.example")
		ask(200, "POST", "/furl/v1/fit", `{"format":"anthropic","body":`+message+`}`)
		ask(200, "POST", "/furl/v1/sessions/"+id+"/fork", `{}`)
		ask(200, "POST", "/furl/v1/reload", "")
		for _, path := range []string{"/", "/furl/sessions/" + id} {
			ask(200, "GET", path, "", "Accept", "text/html")
		}
		ask(303, "GET", "/furl/login", "", "Accept", "text/html")
		ask(303, "POST", "/furl/login", "", "Accept", "text/html", "Origin", p.url)
		ask(303, "POST", "/furl/logout", "", "Accept", "text/html", "Origin", p.url)
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-p.done
		out, err := exec.Command("go", "tool", "covdata", "func", "-i="+counters).Output()
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, p.log())
		}
		if !strings.Contains(string(out), "internal/admission/guard.go") {
			t.Fatalf("no counters:\n%s", out)
		}
		for line := range strings.Lines(string(out)) { // path:line: function percent%
			f := strings.Fields(line)
			switch {
			case len(f) != 3, f[0] == "total", f[2] == "0.0%":
			case !isUnused(f[0]):
				file, _, _ := strings.Cut(strings.TrimPrefix(f[0], "github.com/furlhq/furl/"), ":")
				others[file+" "+strings.TrimPrefix(f[1], "*")] = true
			case f[1] == "ScopeNames", f[1] == "Scopes.Names": // the help of furl keys create has them
			default:
				ran = append(ran, f[0]+" "+f[1])
			}
		}
		return ran, others
	}
	ran, others := serve("")
	if len(ran) > 0 {
		t.Errorf("nothing is configured, and these ran:\n%s", strings.Join(ran, "\n"))
	}
	text, err := os.ReadFile("../../docs/internals/request.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| [0-9]+ \| \[([^\]]+)\][^|]*\|(.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) != 10 {
		t.Errorf("request.md has %d rows, want 10", len(rows))
	}
	for i, row := range rows {
		name := regexp.MustCompile("`([A-Za-z]+\\.[A-Za-z]+)`").FindStringSubmatch(row[2])
		if i == 0 { // the program
			continue
		}
		if name == nil || !others[row[1]+" "+name[1]] {
			t.Errorf("%s: a request does not run %v", row[1], name)
		}
	}
	if ran, _ := serve("gateway: {limits: {requests_per_minute: 1000}}\n"); len(ran) < 10 {
		t.Errorf("with a limit only these ran:\n%s", strings.Join(ran, "\n"))
	}
}
