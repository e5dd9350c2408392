package mcptool_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl/tool"
	"github.com/furlhq/furl/tool/mcptool"
)

// command returns a server that is this test program.
func command(t *testing.T, kind string) mcptool.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcptool.Server{Name: "test", Command: self, Env: map[string]string{asServer: kind}}
}

// address returns a server of this process, over HTTP.
func address(t *testing.T) mcptool.Server {
	t.Helper()
	// The SDK's server does not end a call whose cancellation arrives before the call.
	stop := make(chan struct{})
	server := newSDKServer(stop)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{PropagateRequestCancellation: true})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret-key" {
			http.Error(w, "no key", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		close(stop)
		web.CloseClientConnections()
		web.Close()
	})
	return mcptool.Server{Name: "test", URL: web.URL, Header: http.Header{"Authorization": {"Bearer secret-key"}}}
}

func connect(t *testing.T, s mcptool.Server) *mcptool.Client {
	t.Helper()
	c, err := mcptool.Connect(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// toolsOf returns the tools of a client by their names.
func toolsOf(t *testing.T, c *mcptool.Client) map[string]tool.Tool {
	t.Helper()
	list, err := c.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tools := make(map[string]tool.Tool)
	for _, one := range list {
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(one.Name) || tools[one.Name].Run != nil {
			t.Errorf("the name %q is invalid or not unique", one.Name)
		}
		tools[one.Name] = one
	}
	return tools
}

func eachTransport(t *testing.T, test func(t *testing.T, s mcptool.Server)) {
	t.Run("stdio", func(t *testing.T) { test(t, command(t, "sdk")) })
	t.Run("http", func(t *testing.T) { test(t, address(t)) })
}

func TestTools(t *testing.T) {
	eachTransport(t, func(t *testing.T, s mcptool.Server) {
		c := connect(t, s)
		tools := toolsOf(t, c)
		if len(tools) != 13 || len(c.Notes()) != 0 {
			t.Fatalf("%d tools, notes %q", len(tools), c.Notes())
		}
		if echo := tools["test__echo"]; echo.Changes || echo.Description != "Test echo." || !strings.Contains(string(echo.Schema), `"text"`) {
			t.Errorf("echo is %+v", echo)
		}
		if !tools["test__fail"].Changes {
			t.Error("fail is read-only")
		}
		for name := range tools {
			want := ""
			switch {
			case name == "test__fs_read":
				want = "line a"
			case strings.HasPrefix(name, "test__fs_read_"):
				want = "dot a"
			case strings.HasPrefix(name, "test__longlong"):
				want = "long a"
			case name == "test__echo":
				want = "a"
			default:
				continue
			}
			r, err := tools[name].Run(t.Context(), []byte(`{"text":"a"}`))
			if err != nil || r.Error || r.Text() != want {
				t.Errorf("%s: %+v, %v; want %q", name, r, err, want)
			}
		}
		p, err := tools["test__fail"].Preview(t.Context(), nil)
		if err != nil || p.Title != "Call fail of MCP server test" || !strings.Contains(p.Note, "MCP server test (") || strings.Contains(p.Note, "secret") {
			t.Errorf("preview %+v, %v", p, err)
		}
	})
}

func TestResults(t *testing.T) {
	eachTransport(t, func(t *testing.T, s mcptool.Server) {
		s.MaxResult = 100_000
		tools := toolsOf(t, connect(t, s))
		r, err := tools["test__kinds"].Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range r.Parts {
			if p.Type != "" {
				p.Text = p.Type + " " + string(p.Data)
			}
			got = append(got, p.Text)
		}
		want := []string{
			"one", "image/png PNG",
			"[image/svg+xml, 6 bytes; not shown, because this type is not supported]",
			"[audio/wav, 4 bytes; not shown, because this type is not supported]",
			"[resource file:///a]\ntwo", "application/pdf PDF",
			"[resource file:///c: application/zip, 2 bytes; not shown, because this type is not supported]",
			"[link to resource file:///d, d, text/plain, 12 bytes]\nthe d",
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if r, err := tools["test__structured"].Run(t.Context(), []byte("{}")); err != nil || r.Text() != `{"n":1}` {
			t.Errorf("structured: %+v, %v", r, err)
		}
		if r, err := tools["test__fail"].Run(t.Context(), []byte("{}")); err != nil || !r.Error || r.Text() != "no such file" {
			t.Errorf("fail: %+v, %v", r, err)
		}
		if r, err := tools["test__repeat"].Run(t.Context(), []byte(`{"text":"100000"}`)); err != nil || len(r.Text()) != 100_000 {
			t.Errorf("at the limit: %d bytes, %v", len(r.Text()), err)
		}
		if _, err := tools["test__repeat"].Run(t.Context(), []byte(`{"text":"100001"}`)); err == nil || !strings.Contains(err.Error(), "100001 bytes, more than the limit of 100000") {
			t.Errorf("above the limit: %v", err)
		}
		// A message far above the limit is not read to its end.
		if _, err := tools["test__repeat"].Run(t.Context(), []byte(`{"text":"3000000"}`)); err == nil {
			t.Error("a message of 3 MB was read")
		}
		if r, err := tools["test__echo"].Run(t.Context(), []byte(`{"text":"again"}`)); err != nil || r.Text() != "again" {
			t.Errorf("after that: %+v, %v", r, err)
		}
	})
}

// The server is told that a call is canceled.
func TestCancel(t *testing.T) {
	eachTransport(t, func(t *testing.T, s mcptool.Server) {
		tools := toolsOf(t, connect(t, s))
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := tools["test__wait"].Run(ctx, []byte("{}")); !errors.Is(err, stop) {
				t.Errorf("the canceled call returned %v", err)
			}
		})
		if _, err := tools["test__started"].Run(t.Context(), nil); err != nil {
			t.Error(err)
		}
		cancel(stop)
		calls.Wait()
		if r, err := tools["test__canceled"].Run(t.Context(), nil); err != nil || r.Text() != "canceled" {
			t.Errorf("the server was not told: %+v, %v", r, err)
		}
	})
}

func TestListChanged(t *testing.T) {
	eachTransport(t, func(t *testing.T, s mcptool.Server) {
		c := connect(t, s)
		tools := toolsOf(t, c)
		if _, err := tools["test__change"].Run(t.Context(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		for { // the notification may follow the result
			if added, ok := toolsOf(t, c)["test__added"]; ok {
				if r, err := added.Run(t.Context(), []byte("{}")); err != nil || r.Text() != "added" {
					t.Errorf("%+v, %v", r, err)
				}
				return
			}
			if t.Context().Err() != nil {
				t.Fatal("the list was not read again")
			}
			runtime.Gosched()
		}
	})
}

// A command gets no variables but the usual ones and its own.
func TestEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "key-of-furl")
	t.Setenv("SOMETHING", "key-of-furl")
	s := command(t, "sdk")
	s.Env["TEST_KEY"], s.Env["TMPDIR"] = "own-key", "/nowhere"
	r, err := toolsOf(t, connect(t, s))["test__env"].Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	env := r.Text()
	if strings.Contains(env, "key-of-furl") || !strings.Contains(env, "TEST_KEY=own-key") || !strings.Contains(env, "PATH=") || !strings.Contains(env, "TMPDIR=/nowhere") {
		t.Errorf("environment:\n%s", env)
	}
}

// A server that ends is an error with its last output; the next call starts it again.
func TestCrash(t *testing.T) {
	tools := toolsOf(t, connect(t, command(t, "crash")))
	call := func(name string) (string, error) {
		r, err := tools["test__"+name].Run(t.Context(), []byte("{}"))
		return r.Text(), err
	}
	first, err := call("other")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = call("crash")
		want := `call crash on MCP server test: the server ended (exit status 7); its last output: noise | noise | panic: \u{1b}[31mboom`
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if again, err := call("other"); err != nil || again == first || again == "" {
			t.Errorf("after the crash: %q, %v", again, err)
		}
	}
}

func TestHang(t *testing.T) {
	s := command(t, "hang")
	s.CallTimeout = 50 * time.Millisecond
	tools := toolsOf(t, connect(t, s))
	if _, err := tools["test__other"].Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "no result after 50ms; call_timeout") {
		t.Errorf("call: %v", err)
	}
	s = command(t, "mute")
	s.StartTimeout = 50 * time.Millisecond
	if _, err := mcptool.Connect(t.Context(), s); err == nil || !strings.Contains(err.Error(), "start MCP server test: not ready after 50ms; start_timeout") {
		t.Errorf("start: %v", err)
	}
}

func TestFlood(t *testing.T) {
	s := command(t, "flood")
	s.MaxResult = 1000
	if _, err := toolsOf(t, connect(t, s))["test__other"].Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "the server sent a message of more than 1050576 bytes") {
		t.Errorf("%v", err)
	}
}

func TestManyTools(t *testing.T) {
	c := connect(t, command(t, "many"))
	if n, notes := len(toolsOf(t, c)), c.Notes(); n != 512 || len(notes) != 1 || !strings.Contains(notes[0], "more than 512 tools") {
		t.Errorf("%d tools, %q", n, notes)
	}
	c = connect(t, command(t, "pages"))
	if n, notes := len(toolsOf(t, c)), c.Notes(); n != 0 || len(notes) != 1 || !strings.Contains(notes[0], "more than 512 pages") {
		t.Errorf("%d tools, %q", n, notes)
	}
}

func TestInvalidTools(t *testing.T) {
	c := connect(t, command(t, "bad"))
	tools := toolsOf(t, c)
	for _, name := range []string{"array", "banana", "deep", "flat", "large", "list", "required", "text"} {
		if _, ok := tools["test__"+name]; ok {
			t.Errorf("tool %s is offered", name)
		}
	}
	if string(tools["test__none"].Schema) != `{"properties":{},"type":"object"}` {
		t.Errorf("without a schema: %s", tools["test__none"].Schema)
	}
	good, ok := tools["test__good__2J_"]
	if !ok || strings.Contains(string(good.Schema), "anyOf") || len(tools) != 2 {
		t.Fatalf("tools %v", tools)
	}
	if len(good.Description) > 30<<10 || strings.ContainsAny(good.Description, "\x1b\u200b") {
		t.Errorf("description of %d bytes: %.100q", len(good.Description), good.Description)
	}
	notes := strings.Join(c.Notes(), "\n")
	if strings.ContainsAny(notes, "\x1b\u202e") || !strings.Contains(notes, `tool banana is left out: invalid input schema: properties: a: type: unknown type "banana"`) {
		t.Errorf("notes:\n%s", notes)
	}
}

func TestConnectErrors(t *testing.T) {
	broken := command(t, "broken")
	broken.Env["TEST_KEY"] = "very-secret"
	web := address(t)
	web.Header.Set("Authorization", "Bearer wrong-key")
	target := address(t)
	redirect := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	defer redirect.Close()
	target.URL = redirect.URL + "/?key=very-secret"
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, tc := range []struct {
		s    mcptool.Server
		want string
	}{
		{mcptool.Server{Name: "a__b", Command: "x"}, `invalid name of an MCP server "a__b"`},
		{mcptool.Server{Name: "", Command: "x"}, "invalid name"},
		{mcptool.Server{Name: "a"}, "expected a command or a URL"},
		{mcptool.Server{Name: "a", Command: "x", URL: "http://x"}, "and not both"},
		{mcptool.Server{Name: "a", URL: "ftp://key@x"}, "invalid URL"},
		{mcptool.Server{Name: "a", Command: "/no/such/program"}, "start MCP server a: fork/exec /no/such/program: no such file"},
		{broken, `start MCP server test: the server ended (exit status 3); its last output: starting | cannot read \u{1b}[2Jkey (hidden)`},
		{command(t, "chatty"), "invalid character 'S'"},
		{web, "connect to MCP server test: "},
		{target, "redirects to another address"},
		{mcptool.Server{Name: "a", URL: gone.URL + "/mcp?key=very-secret"}, "connect to MCP server a: "},
	} {
		c, err := mcptool.Connect(t.Context(), tc.s)
		if err == nil {
			_ = c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "very-secret") || strings.Contains(err.Error(), "wrong-key") {
			t.Errorf("got %v\nwant %s", err, tc.want)
		}
	}
}

// A server that ends at a request before "initialize" is started for its revision.
func TestOldServer(t *testing.T) {
	tools := toolsOf(t, connect(t, command(t, "old")))
	if r, err := tools["test__other"].Run(t.Context(), nil); err != nil || r.Text() != "ok" {
		t.Errorf("%+v, %v", r, err)
	}
}

// Close ends the calls in progress, and later calls fail.
func TestClose(t *testing.T) {
	eachTransport(t, func(t *testing.T, s mcptool.Server) {
		c := connect(t, s)
		tools := toolsOf(t, c)
		var calls sync.WaitGroup
		var failed atomic.Int32
		for range 5 {
			calls.Go(func() {
				if _, err := tools["test__wait"].Run(t.Context(), nil); err != nil {
					failed.Add(1)
				}
			})
		}
		if err := errors.Join(c.Close(), c.Close()); err != nil {
			t.Error(err)
		}
		calls.Wait()
		if _, err := tools["test__echo"].Run(t.Context(), nil); err == nil || failed.Load() != 5 {
			t.Errorf("%d calls failed, a later one returned %v", failed.Load(), err)
		}
	})
}
