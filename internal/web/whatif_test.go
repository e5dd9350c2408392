package web_test

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// post sends a form and returns the status and the body of the page that it leads to.
func post(t testing.TB, url string, form url.Values) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// replayedPage starts a replay and returns its page when it has finished.
func replayedPage(t testing.TB, page string, policies ...string) string {
	t.Helper()
	form := url.Values{"policy": policies}
	if status, text := post(t, page+"/whatif", form); status != 200 {
		t.Fatalf("start: status %d: %.400s", status, text)
	}
	for t.Context().Err() == nil {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+"/whatif/progress?"+form.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		to := res.Header.Get("HX-Redirect")
		_ = res.Body.Close()
		if to != "" {
			break
		}
		time.Sleep(10 * time.Millisecond) // as a browser does, with a longer interval
	}
	_, text := get(t, page+"/whatif?"+form.Encode())
	return text
}

func TestWhatIf(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{Policy: "auto"})
	s := importFiles(t, all, "entire-cli/bc-*.gz")[0]
	page := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	before := sessiontest.Log(t, s)
	status, text := get(t, page+"/whatif")
	if status != 200 || !strings.Contains(text, `value="auto" checked`) || !strings.Contains(text, "Replay ") || strings.Contains(text, "charts.js") {
		t.Fatalf("the form: status %d: %s", status, text)
	}
	text = replayedPage(t, page, "rolling-mask-10", "clear-100k")
	for _, want := range []string{`class="outcome"`, `class="barlist"`, `"asRecorded":true`, "Cost and what stayed visible", "All measures", "charts.js", `value="rolling-mask-10" checked`,
		"Use clear-100k", "/act/reduce?policy=clear-100k", "the default of all sessions", "This session was imported"} {
		if !strings.Contains(text, want) {
			t.Errorf("the result does not have %q", want)
		}
	}
	for _, not := range []string{"<script>", "<style", "style=", "hx-trigger"} {
		if strings.Contains(text, not) {
			t.Errorf("the result has %q", not)
		}
	}
	if after := sessiontest.Log(t, s); after.Len() != before.Len() {
		t.Errorf("the replay has appended %d records", after.Len()-before.Len())
	}

	// A new record makes the result old.
	sessiontest.AppendAll(t, s, []*furl.Message{sessiontest.Message(t, furl.RoleUser, sessiontest.Text("One more."))})
	if _, text = get(t, page+"/whatif?policy=rolling-mask-10&policy=clear-100k"); !strings.Contains(text, "The session has 1 record that is newer than this replay") {
		t.Error("the page does not say that the result is old")
	}

	// Apply, and undo.
	status, text = post(t, page+"/whatif/apply", url.Values{"apply": {"clear-100k"}, "policy": {"rolling-mask-10", "clear-100k"}})
	if got := s.Meta().Policy; status != 200 || got != "clear-100k" || !strings.Contains(text, "The policy of this session is now <b><bdi>clear-100k</bdi></b>") {
		t.Fatalf("apply: status %d, policy %q: %s", status, got, text)
	}
	if !strings.Contains(text, `name="apply" value=""`) {
		t.Error("undo does not restore the default")
	}
	status, text = post(t, page+"/whatif/apply", url.Values{"apply": {""}, "policy": {"rolling-mask-10", "clear-100k"}})
	if got := s.Meta().Policy; status != 200 || got != "" || strings.Contains(text, "is now <b>") {
		t.Errorf("undo: status %d, policy %q", status, got)
	}
	if status, text = post(t, page+"/whatif/apply", url.Values{"apply": {"fast"}}); status != 400 || !strings.Contains(text, "unknown policy") {
		t.Errorf("an unknown policy: status %d: %s", status, text)
	}
}

func TestWhatIfRefuses(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	s := all.Create(storage.Meta{Format: furl.FormatAnthropic, Model: "claude-sonnet-4-5"})
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 2, 10))
	page := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	if _, text := get(t, page+"/whatif"); !strings.Contains(text, "The session has no recorded request to a model") || strings.Contains(text, "<fieldset") {
		t.Errorf("without requests: %s", text)
	}
	for _, c := range []struct {
		form   url.Values
		status int
		says   string
	}{
		{url.Values{}, 400, "choose at least one policy"},
		{url.Values{"policy": {"fast"}}, 400, "unknown policy &#34;fast&#34;"},
	} {
		if status, text := post(t, page+"/whatif", c.form); status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%v: status %d: %s", c.form, status, text)
		}
	}
	if status, text := post(t, page+"/whatif/cancel", url.Values{"policy": {"auto"}}); status != 200 || strings.Contains(text, "progress") {
		t.Errorf("cancel without a replay: status %d: %s", status, text)
	}
	text := replayedPage(t, page, "auto")
	if !strings.Contains(text, "The replay failed: nothing to replay: the session has no requests") {
		t.Errorf("a replay without requests: %s", text)
	}
}

func TestBrowserWhatIf(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{Policy: "auto"})
	s := importFiles(t, all, "entire-cli/bc-*.gz")[0]
	page := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	b := browsertest.OpenURL(t, page+"/whatif")
	b.Run("replay", func(t *testing.T) {
		browsertest.Eval[any](b, `document.querySelector('.choose button').click()`)
		b.Wait(`document.querySelectorAll('.replay .uplot canvas').length >= 3`)
		if n := browsertest.Eval[int](b, `document.querySelectorAll('.cost').length`); n < 5 {
			t.Errorf("%d bars", n)
		}
	})
	b.Run("look", func(t *testing.T) {
		source := ""
		if _, err := os.Stat(filepath.FromSlash("../dev/clienttest/testdata/node_modules/axe-core/axe.min.js")); err == nil {
			source = axe(t)
			browsertest.Eval[any](b, source+";0")
		}
		for _, as := range []struct {
			name, scheme string
			width        int64
		}{{"light", "light", 1440}, {"phone", "dark", 390}} {
			b.Media("", as.scheme)
			b.Size(as.width, 900)
			b.Drawn()
			if browsertest.Eval[bool](b, `document.documentElement.scrollWidth > innerWidth`) {
				t.Errorf("%s: the page is wider than the window", as.name)
			}
			if source != "" {
				accessible(t, b, "what if, "+as.name)
			}
			b.Screenshot("whatif-" + as.name)
		}
	})
	b.Run("apply", func(t *testing.T) {
		browsertest.Eval[any](b, `document.querySelector('.apply button[value="clear-100k"]').click()`)
		b.Wait(`document.querySelector('.applied')?.textContent.includes('is now clear-100k')`)
		if got := s.Meta().Policy; got != "clear-100k" {
			t.Errorf("the policy is %q", got)
		}
		browsertest.Eval[any](b, `document.querySelector('.applied button').click()`)
		b.Wait(`!document.querySelector('.applied')`)
		if got := s.Meta().Policy; got != "" {
			t.Errorf("after undo the policy is %q", got)
		}
	})
	b.Silent()
}
