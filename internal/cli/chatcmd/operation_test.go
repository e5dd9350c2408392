package chatcmd_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/audit"
	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/internal/cli"
	"github.com/furlhq/furl/internal/cli/chatcmd"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/mcpserver"
	"github.com/furlhq/furl/internal/models"
	"github.com/furlhq/furl/internal/operation"
	"github.com/furlhq/furl/internal/web"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/sqlite"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// operated is an operation as each surface takes it.
type operatedCase struct {
	line string   // of the command and the chat
	body string   // of the API
	form []string // the action of the page and its fields
	at   string   // for a model
	yes  bool     // the command asks otherwise
	id   string   // of the session; "": s1
}

func (c *operatedCase) session() string { return cmp.Or(c.id, "s1") }

// operatedCases has each operation.
var operatedCases = map[string]operatedCase{
	"pin":     {"5", `{"handles":["5"]}`, []string{"pin", "at", "5"}, "5", false, ""},
	"unpin":   {"3", `{"handles":["3"]}`, []string{"unpin", "at", "3"}, "3", false, ""},
	"prefer":  {"5", `{"handles":["5"]}`, []string{"prefer", "at", "5"}, "5", false, ""},
	"hide":    {"5.0", `{"handles":["5.0"]}`, []string{"hide", "at", "5.0"}, "5.0", false, ""},
	"restore": {"7.0", `{"handles":["7.0"]}`, []string{"expand", "at", "7.0"}, "7.0", false, ""},
	"compact": {"5-9", `{"handles":["5-9"]}`, []string{"compact", "at", "5-9"}, "5-9", false, ""},
	"reduce":  {"--policy rolling-mask-5", `{"policy":"rolling-mask-5"}`, []string{"reduce", "policy", "rolling-mask-5"}, "", false, ""},
	"rewind":  {"5", `{"record":5}`, []string{"rewind", "at", "5"}, "", false, ""},
	"fork":    {"5", `{"at":5}`, []string{"fork", "at", "5"}, "", false, ""},
	"set":     {"policy=rolling title=Mine", `{"policy":"rolling","title":"Mine"}`, []string{"settings", "policy", "rolling", "title", "Mine"}, "", false, ""},
	"redact":  {"--pattern marker_1\\b", `{"patterns":["marker_1\\b"]}`, []string{"redact", "pattern", "marker_1\\b"}, "", true, ""},
	"hold":    {"--reason case", `{"reason":"case"}`, []string{"hold", "reason", "case"}, "", false, ""},
	"release": {"h-1", `{"hold":"h-1"}`, []string{"release", "hold", "h-1"}, "", false, ""},
	"delete":  {"", `{}`, []string{"delete"}, "", true, ""},

	"approve":      {"", `{}`, []string{"approve"}, "", false, ""},
	"refuse":       {"", `{}`, []string{"refuse"}, "", false, ""},
	"edit-summary": {"", `{"text":"They read files, and more."}`, []string{"edit", "text", "They read files, and more."}, "", false, ""},
}

// Each operation does the same on every surface that has it, and no other surface has it.
func TestOperationsOnAllSurfaces(t *testing.T) {
	folder := t.TempDir()
	provideSummaries(t)
	prepared := filepath.Join(folder, "prepared.db")
	prepareOperated(t, prepared, "")
	before := stateOf(t, prepared, "")
	waiting := filepath.Join(folder, "waiting.db")
	prepareOperated(t, waiting, "")
	prepareSummary(t, waiting, "")
	held := filepath.Join(folder, "held.db")
	prepareOperated(t, held, "")
	prepareHold(t, held)
	for _, o := range operation.All() {
		c, ok := operatedCases[o.Name]
		if !ok {
			t.Errorf("the operation %s has no case", o.Name)
			continue
		}
		t.Run(o.Name, func(t *testing.T) {
			want, prepared, before := "", prepared, before
			if strings.Contains(o.Path, "summary/") {
				prepared, before = waiting, stateOf(t, waiting, "")
			} else if o.Name == "release" {
				prepared, before = held, stateOf(t, held, "")
			}
			for _, on := range operation.Surfaces() {
				place := filepath.Join(folder, o.Name+string(on)+".db")
				copyTo(t, prepared, place)
				said, err := operateOn(t, on, o, &c, place)
				if strings.Contains(said, hostileTitle) || on == operation.Page && strings.Contains(said, hostileMarkup) {
					t.Errorf("%s on %s shows what acts: %q", o.Name, on, said)
				}
				got := stateOf(t, place, "")
				switch {
				case !o.On(on):
					if err == nil || got != before {
						t.Errorf("%s has it, or it changes something: %v", on, err)
					}
				case err != nil:
					t.Errorf("%s: %v", on, err)
				case got == before:
					t.Errorf("%s changes nothing", on)
				case want == "":
					want = got
				case got != want:
					a, b := firstDifference(got, want)
					t.Errorf("%s makes\n%s\nothers make\n%s", on, a, b)
				}
			}
		})
	}
}

// A session under legal hold is deleted and redacted on no surface.
func TestHeldOnAllSurfaces(t *testing.T) {
	folder := t.TempDir()
	provideSummaries(t)
	prepared := filepath.Join(folder, "prepared.db")
	prepareOperated(t, prepared, "")
	prepareHold(t, prepared)
	before := stateOf(t, prepared, "")
	for _, o := range operation.All() {
		if o.Audit != operation.Delete && o.Name != "redact" {
			continue
		}
		c := operatedCases[o.Name]
		for _, on := range operation.Surfaces() {
			place := filepath.Join(folder, o.Name+string(on)+".db")
			copyTo(t, prepared, place)
			_, err := operateOn(t, on, o, &c, place)
			if err == nil || o.On(on) && !strings.Contains(err.Error(), "legal hold") || stateOf(t, place, "") != before {
				t.Errorf("%s on %s: %v", o.Name, on, err)
			}
		}
	}
}

// firstDifference returns the first line in which two texts differ, cut before it by up to 200 bytes.
func firstDifference(a, b string) (inA, inB string) {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	from := max(strings.LastIndexByte(a[:at], '\n')+1, at-200)
	inA, _, _ = strings.Cut(a[from:], "\n")
	inB, _, _ = strings.Cut(b[from:], "\n")
	return inA, inB
}

// A text that acts in a terminal, which it gives a title, and on a page, if it is shown as it is.
const (
	hostileTitle  = "\x1b]0;"
	hostileMarkup = "<script>alert"
	hostile       = hostileTitle + "owned\a" + hostileMarkup + "(1)</script>"
)

// prepareHold puts the session under the legal hold h-1.
func prepareHold(t *testing.T, place string) {
	withSessions(t, place, func(all *session.Sessions) {
		hold := storage.Hold{ID: "h-1", Session: "s1", Reason: "case 17"}
		if err := storage.ChangeHolds(t.Context(), all.Store(), func([]storage.Hold) ([]storage.Hold, error) { return []storage.Hold{hold}, nil }); err != nil {
			t.Fatal(err)
		}
	})
}

// prepareOperated makes a store with a session s1 of a tenant: record 3 is pinned, and 7.0 is hidden.
func prepareOperated(t *testing.T, place string, tenant furl.Tenant) {
	withSessions(t, place, func(all *session.Sessions) {
		all = all.For(tenant)
		s := all.CreateAs("s1", storage.Meta{Client: operation.OwnClient, Model: "claude-sonnet-4-5", Format: furl.FormatAnthropic, Title: "s1 " + hostile})
		list := sessiontest.Steps(t, 12, 4000)
		path, err := json.Marshal(map[string]string{"path": "src/" + hostile})
		if err != nil {
			t.Fatal(err)
		}
		for record := 4; record <= 8; record += 2 { // a call, and its result after it
			id := list[record-1].Blocks[1].ID
			list[record-1] = sessiontest.Message(t, furl.RoleAssistant, sessiontest.Text("Reading "+hostile), sessiontest.Call(id, "read", string(path)))
			list[record] = sessiontest.Message(t, furl.RoleUser, sessiontest.Result(id, hostile+list[record].Blocks[0].Text))
		}
		sessiontest.AppendAll(t, s, list)
		for name, in := range map[string]any{
			"pin":  &operation.HoldInput{Blocks: operation.Blocks{Handles: []string{"3"}}},
			"hide": &operation.HideInput{Blocks: operation.Blocks{Handles: []string{"7.0"}}},
		} {
			done, err := operation.Named(name).Do(&operation.Call{Context: t.Context(), Sessions: all, Session: s}, in)
			if err != nil || done.Nothing != "" {
				t.Fatal(err, done)
			}
		}
	})
}

// summaryScript is the reply of a model that writes a summary.
const summaryScript = "-- reply --\ntext: They read files.\n"

// provideSummaries starts a provider, and makes it that of the commands.
func provideSummaries(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		player, err := sim.ParseScript("summary", []byte(summaryScript))
		if err != nil {
			t.Error(err)
			return
		}
		sim.New(&sim.Options{Player: player, NoAuth: true}).ServeHTTP(w, r)
	}))
	t.Cleanup(provider.Close)
	t.Setenv("ANTHROPIC_BASE_URL", provider.URL)
	t.Setenv("ANTHROPIC_API_KEY", "k")
}

// summarizer needs no model.
type summarizer struct{}

func (summarizer) Summarize(context.Context, policy.SummaryRequest) (policy.Summary, error) {
	return policy.Summary{Text: "They read files.", Usage: furl.Usage{Input: 1000, Output: 10}}, nil
}

// prepareSummary makes a summary of the session wait for approval.
func prepareSummary(t *testing.T, place string, tenant furl.Tenant) {
	withSessions(t, place, func(all *session.Sessions) {
		s, err := all.For(tenant).Open(t.Context(), "s1")
		if err == nil {
			err = s.Set(t.Context(), "ask_first", "on")
		}
		if err != nil {
			t.Fatal(err)
		}
		fit, err := s.Fit(t.Context(), "claude-sonnet-4-5")
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := s.PrepareSummary(t.Context(), fit, &policy.Compact{Summarizer: summarizer{}}); !ok || err != nil {
			t.Fatal(ok, err)
		}
	})
}

func withSessions(t *testing.T, place string, use func(*session.Sessions)) {
	t.Helper()
	withSessionsOf(t, place, nil, use)
}

func withSessionsOf(t *testing.T, place string, o *session.Options, use func(*session.Sessions)) {
	t.Helper()
	store, err := sqlite.Open(place, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := session.New(store, o)
	if err != nil {
		t.Fatal(err)
	}
	use(all)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyTo(t *testing.T, from, to string) {
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var varies = regexp.MustCompile(`"(at|time)":"[^"]*",?|"(at|time)":\d+,?|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// sizes are what a summary depends on besides the session: the chat's prompt has instructions
// and tools too.
var sizes = regexp.MustCompile(`"(before|after|input|own)":[0-9.]+|\d+ tokens before`)

var digests = regexp.MustCompile(`"digest":"[^"]*",?`)

// stateOf returns all records of a tenant's sessions in a store, without times and ids of forks.
func stateOf(t *testing.T, place string, tenant furl.Tenant) string {
	var b strings.Builder
	withSessions(t, place, func(all *session.Sessions) {
		holds, err := storage.Holds(t.Context(), all.Store())
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range holds {
			fmt.Fprintf(&b, "hold of %q: %s\n", h.Session, h.Reason)
		}
		all = all.For(tenant)
		for info, err := range all.List(t.Context(), storage.SessionQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			s, err := all.Open(t.Context(), info.Session)
			if err != nil {
				t.Fatal(err)
			}
			own := maps.Clone(info.Settings)
			delete(own, "recall_tools") // of the chat
			fmt.Fprintf(&b, "session, fork of %q, policy %q, title %q, settings %v\n", info.ForkOf, info.Policy, info.Title, own)
			if w := s.WaitingSummary(); w != nil {
				fmt.Fprintf(&b, "waiting: %s\n", w.Summary)
			}
			for _, r := range s.Records(0) {
				line, err := (record.JSON{}).Append(nil, r)
				if err != nil {
					t.Fatal(err)
				}
				line = varies.ReplaceAll(line, nil)
				if _, ok := r.Body.(*furl.Reduction); ok { // its texts have times
					line = digests.ReplaceAll(line, nil)
				}
				if bytes.Contains(line, []byte(`"stage":"compact"`)) {
					line = sizes.ReplaceAll(line, nil)
				}
				fmt.Fprintf(&b, "%s\n", line)
			}
		}
	})
	return b.String()
}

// operateOn does an operation on a surface and returns what is said. It returns an error if the surface
// refuses it or does not have it.
func operateOn(t *testing.T, on operation.Surface, o *operation.Operation, c *operatedCase, place string) (said string, err error) {
	switch on {
	case operation.Command:
		args := append(strings.Fields(o.Command), "--store", place)
		if !o.NoSession {
			args = append(args, c.session())
		}
		args = append(args, strings.Fields(c.line)...)
		if o.Name == "edit-summary" {
			file := filepath.Join(t.TempDir(), "summary.md")
			if err := os.WriteFile(file, []byte("They read files, and more."), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--file", file)
		}
		if c.yes {
			args = append(args, "--yes")
		}
		var out, errs bytes.Buffer
		if code := cli.Main(args, nil, strings.NewReader(""), &out, &errs); code != 0 {
			err = fmt.Errorf("furl %s: %s", strings.Join(args, " "), &errs)
		}
		said = out.String() + errs.String()
	case operation.Chat:
		store, opened := sqlite.Open(place, nil)
		if opened != nil {
			t.Fatal(opened)
		}
		conv := chatcmd.NewConversationIn(t, summaryScript, store)
		if r := conv.Command(t.Context(), nil, "/resume "+c.session(), 80); r.Err != nil {
			t.Fatal(r.Err)
		}
		edit := &chatcmd.Asked{Answers: []chat.Answer{{Text: "They read files, and more."}}}
		reply := conv.Command(t.Context(), edit.Ask, strings.TrimSpace("/"+o.Slash+" "+c.line), 80)
		said, err = reply.Text, reply.Err
		if reply.Events != nil {
			for _, failed := range reply.Events {
				err = errors.Join(err, failed)
			}
			said = reply.After()
		}
		conv.Close()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	case operation.Model:
		withSessions(t, place, func(all *session.Sessions) { said, err = operateByModel(t, all, o, c) })
	case operation.API, operation.Page:
		withSessions(t, place, func(all *session.Sessions) { said, err = operateByHTTP(t, all, on, o, c) })
	}
	return said, err
}

func operateByModel(t *testing.T, all *session.Sessions, o *operation.Operation, c *operatedCase) (said string, err error) {
	list, err := mcpserver.OperationsFor([]string{o.Name})
	if err != nil {
		return "", err
	}
	first, last, isRange := strings.Cut(c.at, "-")
	args := map[string]any{"handle": "furl:" + c.session() + "/" + first}
	if isRange {
		args["to"] = last
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ours, theirs := newPipes()
	server := mcpserver.New(all, &mcpserver.Options{Operations: list, Compactor: func(s *session.Session) operation.Compactor {
		return models.CompactorOf(&config.Config{}, s)
	}})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, theirs.in, theirs.out) }()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(ctx, &mcp.IOTransport{Reader: ours.in, Writer: ours.out}, nil)
	if err != nil {
		t.Fatal(err)
	}
	called, err := client.CallTool(ctx, &mcp.CallToolParams{Name: "memory_" + o.Name, Arguments: args})
	switch {
	case err == nil && called.IsError:
		err = fmt.Errorf("%v", called.GetError())
	case err == nil:
		for _, part := range called.Content {
			if text, ok := part.(*mcp.TextContent); ok {
				said += text.Text
			}
		}
	}
	_ = client.Close() // ends the server
	stop()
	<-ended
	return said, err
}

type pipes struct {
	in  io.ReadCloser
	out io.WriteCloser
}

// newPipes returns the two ends of a connection.
func newPipes() (one, other pipes) {
	a, b := io.Pipe()
	c, d := io.Pipe()
	return pipes{a, d}, pipes{c, b}
}

// accesses are the actions that an audit log has.
type accesses struct {
	mu   sync.Mutex
	list []string
}

func (a *accesses) Append(e audit.Entry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, e.Action)
	return nil
}

func operateByHTTP(t *testing.T, all *session.Sessions, on operation.Surface, o *operation.Operation, c *operatedCase) (said string, err error) {
	var log accesses
	status, text := requestOperation(t, all, on, o, c, &gateway.Options{Audit: &log}, nil)
	if o.On(on) && (len(log.list) == 0 || log.list[0] != string(o.Audit)) {
		t.Errorf("%s on %s: the audit log has %q", o.Name, on, log.list)
	}
	if status >= 400 {
		err = fmt.Errorf("%s on %s: %d %s", o.Name, on, status, text)
	}
	return text, err
}

// requestOperation requests an operation from a gateway with these options. The change, if there is one,
// changes the request. It returns the response's status and body.
func requestOperation(t *testing.T, all *session.Sessions, on operation.Surface, o *operation.Operation, c *operatedCase, options *gateway.Options, change func(*http.Request)) (int, string) {
	t.Helper()
	up, err := upstream.New(cmp.Or(os.Getenv("ANTHROPIC_BASE_URL"), "http://127.0.0.1:1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	options.Page, options.Summaries.Key = web.New(nil), "k"
	g, err := gateway.New(all, gateway.Upstreams{Anthropic: up, OpenAI: up}, options)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(g)
	defer g.Close()
	defer srv.Close()
	path, kind, body := "/furl/v1/sessions/"+c.session()+"/"+o.Path, "application/json", c.body
	if on == operation.Page {
		form := url.Values{}
		for i := 1; i < len(c.form); i += 2 {
			form.Add(c.form[i], c.form[i+1])
		}
		path, kind, body = "/furl/sessions/"+c.session()+"/act/"+c.form[0], "application/x-www-form-urlencoded", form.Encode()
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if change != nil {
		change(req)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return http.StatusBadGateway, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
