package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/cli"
	"github.com/furlhq/furl/internal/web"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// furl status, its status line, the page and the API say the same of what the next message
// costs, while the prompt cache lives and after.
func TestNextInputEverywhere(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "furl.db")
	t.Setenv("FURL_CONFIG", filepath.Join(dir, "none.yaml"))
	if err := os.WriteFile(filepath.Join(dir, "none.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	all, err := session.New(store, &session.Options{Policy: "auto"})
	if err != nil {
		t.Fatal(err)
	}
	direct := httptest.NewServer(sim.New(&sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 12})}))
	defer direct.Close()
	up, err := upstream.New(direct.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	later := time.Duration(0) // of the clock of the page and the API
	now := func() time.Time { return time.Now().Add(later) }
	g, err := gateway.New(all, gateway.Upstreams{Anthropic: up}, &gateway.Options{Now: now, Page: web.New(&web.Options{Now: now})})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(w, r)
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			g.Wait(context.WithoutCancel(r.Context()))
		}
	}))
	defer front.Close()
	c := sim.Client{URL: front.URL, Format: furl.FormatAnthropic, Model: "claude-sonnet-4-5", Stream: true}
	if err := c.Say("Look at everything there is."); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Work(t.Context(), func(furl.Block) string { return strings.Repeat("words of a file ", 2000) }); err != nil {
		t.Fatal(err)
	}
	get := func(path string) string {
		resp, err := http.Get(front.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s %v", path, resp.StatusCode, body, err)
		}
		return string(body)
	}
	status := func(args ...string) string {
		var out, notes bytes.Buffer
		if code := cli.Main(append([]string{"status", "--store", file}, args...), nil, strings.NewReader("{}"), &out, &notes); code != 0 {
			t.Fatalf("furl status: code %d: %s", code, &notes)
		}
		return out.String()
	}
	var known struct {
		Session string
		Next    *storage.NextInput `json:"next_input"`
	}
	if err := json.Unmarshal([]byte(status("--format", "json")), &known); err != nil || known.Next == nil || known.Next.Cold.Hidden == 0 {
		t.Fatal(known, err)
	}
	var context struct {
		Next *storage.NextInput `json:"next_input"`
		Text string             `json:"next_input_text"`
	}
	if err := json.Unmarshal([]byte(get("/furl/v1/sessions/"+known.Session+"/context")), &context); err != nil || context.Next == nil || *context.Next != *known.Next {
		t.Fatalf("the API has %+v, furl status %+v, %v", context.Next, known.Next, err)
	}
	_, words, _ := strings.Cut(context.Text, " · ") // without the time, which runs on
	if !strings.HasPrefix(context.Text, "cache expires in 4:") && !strings.HasPrefix(context.Text, "cache expires in 5:") || !strings.HasPrefix(words, "next input $0.0") || !strings.Contains(words, ", reduced ") {
		t.Errorf("the API says %q", context.Text)
	}
	page := "/furl/sessions/" + known.Session + "/meter"
	oneLine := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for what, text := range map[string]string{"furl status": status(), "the status line": status("--format", "claude"), "the page": get(page)} {
		if !strings.Contains(oneLine(text), words) || !strings.Contains(oneLine(text), "cache expires in ") || strings.Contains(text, "expired") {
			t.Errorf("%s lacks %q:\n%s", what, words, text)
		}
	}
	later = 10 * time.Minute
	_, reduced, _ := strings.Cut(words, "after that ")
	want := "cache expired · next input " + reduced
	const why = "The prompt cache has expired, so hiding has no extra cost: with the next message auto hides about "
	if got := get(page); !strings.Contains(got, want) || !strings.Contains(got, why) {
		t.Errorf("the page lacks %q:\n%s", want, got)
	}
	if got := get("/furl/v1/sessions/" + known.Session + "/context"); !strings.Contains(got, want) {
		t.Errorf("the API lacks %q: %s", want, got)
	}
	if got := get(page + "?request=2"); strings.Contains(got, "next input") {
		t.Errorf("the page of an earlier request has the price of the next one: %s", got)
	}
}
