package web_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/web"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// acting is a session and its page.
type acting struct {
	t   *testing.T
	all *session.Sessions
	s   *session.Session
	url string // of the session
}

// newActing serves a session of 30 steps, by furl's own chat or another client.
func newActing(t *testing.T, client string) *acting {
	all, _ := sessiontest.Open(t, session.Options{Now: sessiontest.Still})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5", Client: client})
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 30, 4000))
	return &acting{t, all, s, serve(t, all, nil) + "/furl/sessions/" + string(s.ID())}
}

// ask returns the panel of an action, with its text without markup.
func (a *acting) ask(action string) string {
	a.t.Helper()
	status, text := get(a.t, a.url+"/act/"+action, "HX-Request", "true")
	if status != http.StatusOK {
		a.t.Fatalf("ask %s: status %d: %s", action, status, plainText(text))
	}
	if !strings.Contains(text, `<section class="ask`) || strings.Contains(text, "<html") {
		a.t.Errorf("ask %s is not a fragment:\n%.300s", action, text)
	}
	return plainText(text)
}

// do posts an action and returns the status and the text, without markup.
func (a *acting) do(action string, fields ...string) (int, string) {
	a.t.Helper()
	status, text, _ := a.post(action, true, fields...)
	return status, plainText(text)
}

// done is do that must work.
func (a *acting) done(action string, fields ...string) string {
	a.t.Helper()
	status, text := a.do(action, fields...)
	if status != http.StatusOK {
		a.t.Fatalf("%s %v: status %d: %s", action, fields, status, text)
	}
	return text
}

// refused checks that an action is refused, and says why.
func (a *acting) refused(why, action string, fields ...string) {
	a.t.Helper()
	before := a.s.Info().Records
	status, text := a.do(action, fields...)
	if status != http.StatusConflict || !strings.Contains(text, why) {
		a.t.Errorf("%s %v: status %d: %s; want 409 because of %q", action, fields, status, text, why)
	}
	if a.s.Info().Records != before {
		a.t.Errorf("%s %v was refused and has recorded something", action, fields)
	}
}

// undo submits the Undo form of an answer.
func (a *acting) undo(action string, fields ...string) string {
	a.t.Helper()
	status, text, _ := a.post(action, true, fields...)
	if status != http.StatusOK {
		a.t.Fatalf("%s %v: status %d: %s", action, fields, status, plainText(text))
	}
	form := regexp.MustCompile(`(?s)<form method="post" action="([^"]*)" data-act data-undo>(.*?)</form>`).FindStringSubmatch(text)
	if form == nil {
		a.t.Fatalf("%s %v has no Undo: %s", action, fields, plainText(text))
	}
	var undo []string
	for _, in := range regexp.MustCompile(`name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(form[2], -1) {
		undo = append(undo, html.UnescapeString(in[1]), html.UnescapeString(in[2]))
	}
	return a.done(form[1][strings.LastIndexByte(form[1], '/')+1:], undo...)
}

func (a *acting) post(action string, fragment bool, fields ...string) (int, string, http.Header) {
	a.t.Helper()
	form := make(url.Values)
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.url+"/act/"+action, strings.NewReader(form.Encode()))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "text/html")
	if fragment {
		req.Header.Set("HX-Request", "true")
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return res.StatusCode, string(body), res.Header
}

var markup = regexp.MustCompile(`<[^>]*>`)

// plainText returns a page's text with single spaces.
func plainText(page string) string {
	return html.UnescapeString(strings.Join(strings.Fields(markup.ReplaceAllString(page, " ")), " "))
}

// has checks that a text has all parts.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in: %s", part, text)
		}
	}
}

// shows reports whether the model sees a block as recorded.
func (a *acting) shows(msg furl.Seq) bool {
	a.t.Helper()
	st := stateOf(a.t, a.s)
	return st.ShownBy(furl.Pos{Msg: msg}) == 0
}

func TestActHideAndUndo(t *testing.T) {
	a := newActing(t, "Claude Code")
	has(t, a.ask("hide?at=3.0"), "Hide the result of read src/file_0.go", "The next request: ", "to the prompt cache again", "once.", "Each later request costs", "less", "Hide Cancel")
	if !a.shows(3) {
		t.Fatal("asking has hidden it")
	}
	text := a.done("hide", "at", "3.0")
	has(t, text, "Hid the result of read src/file_0.go.", "Undo", "→")
	if a.shows(3) {
		t.Fatal("it is not hidden")
	}
	a.refused("It is hidden already.", "hide", "at", "3.0")
	a.refused("newest step", "hide", "at", "61.0")
	a.refused("whole step", "hide", "at", "2.0")
	has(t, a.ask("hide?at=61.0"), "The newest step and the newest message of the user cannot be hidden.")
	of := fmt.Sprint(a.s.Head())
	has(t, a.ask("undo?reduction="+of), "Undo reduction "+of, "The next request: ", "more.", "sees 1 block again")
	text = a.done("undo", "reduction", of)
	has(t, text, "Undid reduction", "There is no redo. You can hide the same again.", "Hide it again")
	if !a.shows(3) {
		t.Fatal("the undo shows nothing")
	}
	a.refused("was undone before", "undo", "reduction", of)
	has(t, a.ask("undo?reduction="+of), "was undone before", "Hide it again")
	has(t, a.ask("again?reduction="+of), "the same placeholders", "The next request: ")
	has(t, a.undo("again", "reduction", of), "Undid reduction")
	if !a.shows(3) {
		t.Error("the undo of hiding again shows nothing")
	}
	has(t, a.undo("hide", "at", "5.0", "steps", "1"), "Undid reduction")
	if status, text := a.do("undo", "reduction", "999"); status != http.StatusNotFound {
		t.Errorf("a reduction that does not exist: status %d: %s", status, text)
	}
	if status, text := a.do("undo", "reduction", "x"); status != http.StatusBadRequest {
		t.Errorf("no number: status %d: %s", status, text)
	}
	sessiontest.Checked(t, a.s)
}

func TestActExpand(t *testing.T) {
	a := newActing(t, "Claude Code")
	a.refused("sees all of it already", "expand", "at", "3.0")
	a.done("hide", "at", "3.0")
	has(t, a.ask("expand?at=3.0"), "Expand the result of read", "The next request: ", "sees the original again")
	has(t, a.done("expand", "at", "3.0"), "This has no undo", "Hide it again")
	if !a.shows(3) {
		t.Error("it is still hidden")
	}
	a.done("hide", "at", "5.0", "steps", "1")
	has(t, a.ask("expand?at=5.0"), "the whole step is shown")
	a.done("expand", "at", "5")
	if !a.shows(4) || !a.shows(5) {
		t.Error("the step is still hidden")
	}
	if status, _ := a.do("expand", "at", "bad handle"); status != http.StatusBadRequest {
		t.Errorf("no handle: status %d", status)
	}
	if status, _ := a.do("expand", "at", "4000"); status != http.StatusNotFound {
		t.Errorf("a message that does not exist: status %d", status)
	}
}

func TestActHold(t *testing.T) {
	a := newActing(t, "Claude Code")
	has(t, a.ask("pin?at=3.0"), "Pin the result of read", "The next request still has", "No policy hides it")
	has(t, a.undo("pin", "at", "3.0"), "Unpinned")
	a.done("pin", "at", "3.0")
	has(t, a.ask("pin?at=3.0"), "It is pinned already.")
	a.refused("It is pinned; unpin it first.", "hide", "at", "3.0")
	has(t, a.ask("prefer?at=3.0"), "It was pinned, which is stronger.")
	has(t, a.undo("unpin", "at", "3.0"), "Pinned")
	a.done("unpin", "at", "3.0")
	has(t, a.ask("unpin?at=3.0"), "It is not pinned.")
	a.done("prefer", "at", "3.0")
	has(t, a.undo("pin", "at", "3.0"), "Preferred")
	_, page := get(t, a.url+"/inspect?at=3.0", "HX-Request", "true")
	has(t, plainText(page), "policies prefer to keep it", "Hide…", "Pin…", "No preference…", "Fork here…")
}

func TestActReduce(t *testing.T) {
	a := newActing(t, "Claude Code")
	has(t, a.ask("reduce"), "Choose a policy", "rolling-mask-10 masks tool results except the newest 10", "this session's policy")
	has(t, a.ask("reduce?policy=none"), "none hides nothing now")
	has(t, a.ask("reduce?policy=rolling-mask-10"), "Apply rolling-mask-10", "mask would hide 20 blocks", "The next request: ")
	if a.s.Info().Records != 61 {
		t.Fatal("the preview has recorded something")
	}
	a.refused("none hides nothing now", "reduce", "policy", "none")
	if status, text := a.do("reduce", "policy", "nonsense"); status != http.StatusBadRequest || !strings.Contains(text, "unknown policy") {
		t.Errorf("an unknown policy: status %d: %s", status, text)
	}
	has(t, a.undo("reduce", "policy", "rolling-mask-10"), "Undid reduction")
	if !a.shows(3) {
		t.Error("the undo shows nothing")
	}
	a.done("reduce", "policy", "sliding-window")
	records := a.s.Info().Records
	has(t, a.ask("reduce?policy=sliding-window"), "nothing more to hide")
	a.refused("nothing more to hide", "reduce", "policy", "sliding-window")
	if now := a.s.Info().Records; now != records {
		t.Errorf("the second reduction in a row has added %d records", now-records)
	}
}

// written is a summarizer that needs no model.
type written struct{ text string }

func (w written) Summarize(context.Context, policy.SummaryRequest) (policy.Summary, error) {
	return policy.Summary{Text: w.text, Usage: furl.Usage{Input: 1000, Output: 10}}, nil
}

func TestActSummaries(t *testing.T) {
	a := newActing(t, "Claude Code")
	done, err := a.s.Reduce(t.Context(), session.ReduceOptions{Stage: &policy.Compact{Summarizer: written{"They read files.\n\n<script>alert(1)</script>"}}})
	if err != nil || len(done.Planned) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	seq := fmt.Sprint(done.Planned[0].Record)
	_, panel := get(t, a.url+"/act/edit?reduction="+seq, "HX-Request", "true")
	if strings.Contains(panel, "<script>") || !strings.Contains(panel, "&lt;script&gt;alert(1)") {
		t.Errorf("the text of a summary is not escaped:\n%s", panel)
	}
	has(t, plainText(panel), "Edit summary 1", "The next request changes by as many tokens")
	a.refused("The text is the same", "edit", "reduction", seq, "text", "They read files.\r\n\r\n<script>alert(1)</script>")
	if status, text := a.do("edit", "reduction", seq, "text", "  "); status != http.StatusBadRequest || !strings.Contains(text, "empty") {
		t.Errorf("an empty text: status %d: %s", status, text)
	}
	has(t, a.done("edit", "reduction", seq, "text", "They read 29 files."), "Edited summary 1", "Undo")
	edited := fmt.Sprint(a.s.Head())
	has(t, a.ask("edit?reduction="+edited), "They read 29 files.", "1 other text of this summary", "alert(1)")
	has(t, a.ask("edit?reduction="+seq), "does not see this summary")
	has(t, a.done("undo", "reduction", edited), "Undid reduction")
	if status, _ := a.do("edit", "text", "x"); status != http.StatusNotFound {
		t.Errorf("no summary waits: status %d", status)
	}
	sessiontest.Checked(t, a.s)
}

func TestActWaitingSummary(t *testing.T) {
	wait := func(a *acting) {
		t.Helper()
		if err := a.s.Set(t.Context(), "ask_first", "on"); err != nil {
			t.Fatal(err)
		}
		fit, err := a.s.Fit(t.Context(), "claude-sonnet-4-5")
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := a.s.PrepareSummary(t.Context(), fit, &policy.Compact{Summarizer: written{"They read files."}}); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	a := newActing(t, "Claude Code")
	for _, what := range []string{"approve", "refuse"} {
		if status, _ := a.do(what); status != http.StatusNotFound {
			t.Errorf("%s: status %d", what, status)
		}
	}
	wait(a)
	_, page := get(t, a.url)
	has(t, plainText(page), "A summary waits for your approval", "They read files.", "Approve… Edit… Refuse…")
	has(t, a.ask("refuse"), "This cannot be undone", "The next request still has")
	has(t, a.done("refuse"), "The summary was discarded.")
	wait(a)
	has(t, a.ask("approve"), "The next request: ", "in place of")
	has(t, a.done("edit", "text", "They read all files."), "before it is approved")
	has(t, a.undo("approve"), "Undid reduction")
	_, page = get(t, a.url)
	if strings.Contains(plainText(page), "A summary waits") {
		t.Error("the approved summary still waits")
	}
	if a.s.WaitingSummary() != nil {
		t.Error("the summary still waits")
	}
}

func TestActSettings(t *testing.T) {
	a := newActing(t, "Claude Code")
	has(t, a.ask("settings"), "Settings of this session", "What is hidden stays hidden", "context limit", "ask first")
	has(t, a.done("settings", "policy", "", "title", ""), "Nothing was changed.")
	has(t, a.undo("settings", "policy", "rolling", "title", "A <b>title</b>", "context_limit", "64000"), "Set policy, ")
	for _, set := range a.s.Settings() {
		if set.From == "session" {
			t.Errorf("the undo has left %s = %s", set.Name, set.Value)
		}
	}
	has(t, a.done("settings", "context_limit", "64000"), "context_limit = 64000, was ")
	if got := a.s.Context("").Limit; got != 64_000 {
		t.Errorf("the window has %d tokens", got)
	}
	if status, text := a.do("settings", "context_limit", "many"); status != http.StatusBadRequest || !strings.Contains(text, "positive number") {
		t.Errorf("an invalid value: status %d: %s", status, text)
	}
}

func TestActBranches(t *testing.T) {
	foreign := newActing(t, "Claude Code")
	has(t, foreign.ask("rewind?at=21"), "Claude Code decides where its conversation continues", "Fork here")
	foreign.refused("Claude Code decides", "rewind", "at", "21")

	a := newActing(t, "furl chat")
	has(t, a.ask("branches"), "The conversation has one branch.")
	has(t, a.ask("rewind?at=21"), "Rewind to record 21", "The next request: ", "The prompt cache stays valid.", "Each later request costs")
	has(t, a.ask("rewind?at=20"), "is inside a step")
	has(t, a.undo("rewind", "at", "21"), "continues after 61 messages")
	status, _, header := a.post("rewind", true, "at", "21")
	if status != http.StatusOK || !strings.Contains(header.Get("HX-Redirect"), "/act/done?k=") {
		t.Errorf("status %d, redirect %q", status, header.Get("HX-Redirect"))
	}
	sessiontest.AppendAll(t, a.s, []*furl.Message{sessiontest.Message(t, furl.RoleUser, sessiontest.Text("Another way, please."))})
	has(t, a.ask("branches"), "Another way, please.", "current · 22 messages", "40 messages of its own, 61 in all · leaves after record 21", "Continue from here")
	status, page := get(t, a.url+"?branch=61")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	text := plainText(page)
	has(t, text, "This is another branch", "file 29: marker_29", "Show the current branch", "Continue from here")
	if strings.Contains(text, "Another way, please.") {
		t.Error("a message of the current branch is on another one")
	}
	if status, _ := get(t, a.url+"?branch=9999"); status != http.StatusNotFound {
		t.Errorf("a branch that does not exist: status %d", status)
	}
	has(t, a.done("rewind", "at", "61"), "continues after 61 messages")
	if a.s.Head() != 61 {
		t.Errorf("the head is %d", a.s.Head())
	}
}

func TestActFork(t *testing.T) {
	a := newActing(t, "Claude Code")
	has(t, a.ask("fork?at=21"), "Fork s1 at record 21", "This session does not change.", "a copy of the first 21 messages", "The agent continues in the original.")
	has(t, a.done("fork", "at", "21", "title", "Another way"), "Open the fork", "open the fork and delete it")
	var forks int
	for info, err := range a.all.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if info.ForkOf == a.s.ID() && info.Messages == 21 && info.Title == "Another way" {
			forks++
		}
	}
	if forks != 1 {
		t.Errorf("%d forks", forks)
	}
	if status, _ := a.do("fork", "at", "999"); status != http.StatusNotFound {
		t.Errorf("a record that does not exist: status %d", status)
	}
}

func TestActRedact(t *testing.T) {
	a := newActing(t, "Claude Code")
	has(t, a.ask("redact"), "No secrets found.", "Search for")
	text := a.ask(`redact?pattern=marker_1%5Cb`)
	has(t, text, "Redact ", "record ", "record 5: m… (8 bytes)", "This cannot be undone", "Redact permanently", "forks and all others")
	before := a.s.Info().Records
	has(t, a.done("redact", "pattern", `marker_1\b`), "Redacted ", "This cannot be undone.")
	s, err := a.all.Open(t.Context(), a.s.ID())
	if err != nil || s.Info().Records != before+1 || len(s.Info().Redactions) != 1 {
		t.Errorf("%v, redactions %+v", err, s.Info().Redactions)
	}
	has(t, a.ask(`redact?pattern=marker_1%5Cb`), "No secrets found.")
	if status, _ := a.do("redact", "pattern", "("); status != http.StatusBadRequest {
		t.Errorf("an invalid pattern: status %d", status)
	}
}

func TestActDelete(t *testing.T) {
	a := newActing(t, "Claude Code")
	has(t, a.ask("delete"), "61 messages and all originals", "kB", "This cannot be undone", "Delete permanently")
	status, _, header := a.post("delete", true)
	if status != http.StatusNoContent || header.Get("HX-Redirect") != "/" {
		t.Errorf("status %d, redirect %q", status, header.Get("HX-Redirect"))
	}
	if _, err := a.all.Open(t.Context(), a.s.ID()); !errors.Is(err, storage.ErrNoSession) {
		t.Errorf("the session still exists: %v", err)
	}
	if status, _ := a.do("delete"); status != http.StatusNotFound {
		t.Errorf("deleted twice: status %d", status)
	}
}

// fakeCompactor is a gateway with or without a key.
type fakeCompactor struct {
	key    bool
	what   *operation.Compaction
	failed error
}

func (c *fakeCompactor) WritesNow(*session.Session) (string, bool) { return "claude-haiku-4-5", c.key }
func (c *fakeCompactor) Wanted(*session.Session) (operation.Compaction, bool) {
	if c.what == nil {
		return operation.Compaction{}, false
	}
	return *c.what, true
}
func (c *fakeCompactor) Cancel(*session.Session) bool {
	had := c.what != nil
	c.what = nil
	return had
}
func (c *fakeCompactor) Compact(ctx context.Context, s *session.Session, what operation.Compaction) (furl.Seq, error) {
	if c.failed != nil {
		return 0, c.failed
	}
	if !c.key {
		c.what = &what
		return 0, nil
	}
	done, err := s.Reduce(ctx, session.ReduceOptions{Stage: &policy.Compact{Summarizer: written{"Focus: " + what.Focus}, Spans: what.Spans}})
	if err != nil {
		return 0, err
	}
	return done.Planned[0].Record, nil
}

func TestActCompact(t *testing.T) {
	a := newActing(t, "Claude Code")
	has(t, a.ask("compact"), "There is no model to ask here")
	a.refused("There is no model to ask here", "compact")

	c := &fakeCompactor{}
	p := web.New(nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServePage(w, r, gateway.Visit{Sessions: a.all, Compactor: c})
	}))
	t.Cleanup(server.Close)
	a.url = server.URL + "/furl/sessions/" + string(a.s.ID())
	has(t, a.ask("compact"), "Compact at the next request", "with the key of that request", "The next request: ")
	a.refused("No summary is to be written.", "cancel")
	has(t, a.done("compact", "focus", "the tests"), "right after the session's next request")
	has(t, a.ask("compact"), "already to be written", "the tests")
	has(t, a.ask("cancel"), "Do not compact", "No summary was written yet.")
	has(t, a.undo("cancel"), "right after the session's next request")
	if c.what == nil || c.what.Focus != "the tests" {
		t.Errorf("after the undo, %+v", c.what)
	}
	a.done("cancel")

	c.key = true
	has(t, a.ask("compact"), "written now by claude-haiku-4-5, with the key of summaries.key_env", "one request to claude-haiku-4-5 of about ", ": up to ")
	has(t, a.ask("compact?at=4-9,+12"), "Compact 4-9, 12", "replaces 8 messages", "Only these messages", "Preview")
	has(t, a.ask("compact?at=1"), "cannot be hidden", "Only these messages")
	if status, _ := get(t, a.url+"/act/compact?at=x"); status != http.StatusBadRequest {
		t.Errorf("an invalid range: status %d", status)
	}
	c.failed = errors.New("provider refused the request: status 401, authentication_error")
	a.refused("No summary was written: provider refused the request: status 401", "compact")
	c.failed = nil
	has(t, a.undo("compact", "at", "4-9", "focus", "the tests"), "Undid reduction")
	has(t, a.undo("compact", "focus", "the <b>tests</b>"), "Undid reduction")
	if status, _ := a.do("compact", "focus", strings.Repeat("x", 3000)); status != http.StatusBadRequest {
		t.Errorf("a long focus: status %d", status)
	}
}

// Without scripts, an action is a page with a form, and its result another one.
func TestActWithoutScripts(t *testing.T) {
	a := newActing(t, "Claude Code")
	status, page := get(t, a.url+"?at=3.0")
	if status != http.StatusOK || !strings.Contains(page, `href="/furl/sessions/`+string(a.s.ID())+`/act/hide?at=3.0"`) {
		t.Fatalf("status %d: the page of a selected block has no actions on it", status)
	}
	status, page = get(t, a.url+"/act/hide?at=3.0")
	if status != http.StatusOK || !strings.Contains(page, "<!doctype html>") || !strings.Contains(page, `<form method="post"`) {
		t.Errorf("status %d, no page with a form:\n%.400s", status, page)
	}
	status, _, header := a.post("hide", false, "at", "3.0")
	to := header.Get("Location")
	if status != http.StatusSeeOther || !strings.Contains(to, "/act/done?k=") {
		t.Fatalf("status %d, location %q", status, to)
	}
	status, page = get(t, strings.Split(a.url, "/furl/")[0]+to)
	if status != http.StatusOK || !strings.Contains(page, "<!doctype html>") {
		t.Errorf("status %d:\n%.300s", status, page)
	}
	has(t, plainText(page), "Hid the result of read src/file_0.go.", "Undo")
	_, page = get(t, a.url+"/act/done?k=unknown")
	has(t, plainText(page), "The change was made.")
	status, text, _ := a.post("hide", false, "at", "3.0")
	if status != http.StatusConflict || !strings.Contains(text, "It is hidden already.") {
		t.Errorf("status %d: %.300s", status, plainText(text))
	}
	status, _, header = a.post("delete", false)
	if status != http.StatusSeeOther || header.Get("Location") != "/" {
		t.Errorf("status %d, location %q", status, header.Get("Location"))
	}
}

// The price of an action says so if the cache has expired, and if prices are unknown.
func TestActPrices(t *testing.T) {
	now := sessiontest.Still()
	all, _ := sessiontest.Open(t, session.Options{Now: func() time.Time { return now }})
	s := all.Create(storage.Meta{Model: "some-local-model", Client: "x"})
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 30, 4000))
	a := &acting{t, all, s, serve(t, all, nil) + "/furl/sessions/" + string(s.ID())}
	has(t, a.ask("hide?at=3.0"), "no cache to write again", "Later requests stay that much shorter. Prices of some-local-model are unknown.")

	s = all.Create(storage.Meta{Model: "claude-sonnet-4-5", Client: "x"})
	steps := sessiontest.Steps(t, 30, 4000)
	sessiontest.AppendAll(t, s, steps)
	fit, err := s.Fit(t.Context(), "claude-sonnet-4-5")
	if err != nil {
		t.Fatal(err)
	}
	reply := &protocol.Reply{Messages: []*furl.Message{sessiontest.Message(t, furl.RoleAssistant, sessiontest.Text("All read."))}, Usage: furl.Usage{Input: 10, CacheWrite: 30_000}, Complete: true}
	if err := s.Observe(t.Context(), fit, reply); err != nil {
		t.Fatal(err)
	}
	a = &acting{t, all, s, serve(t, all, nil) + "/furl/sessions/" + string(s.ID())}
	has(t, a.ask("hide?at=3.0"), "to the prompt cache again: $0.", "once.")
	now = now.Add(2 * time.Hour)
	has(t, a.ask("hide?at=3.0"), "The prompt cache has expired: no extra cost.", "less.")
}
