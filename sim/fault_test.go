package sim_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

func TestParseFault(t *testing.T) {
	for _, text := range []string{
		"529", "429 retry-after=2s", "500 every=10", "503 first=2", "redirect=http://127.0.0.1:1/v1/messages", "overflow",
		"overflow=stream", "slow=3s", "cut=4", "error=4 ping", "slow=1s cut=2 split=utf8 args=odd", "split=lines", "split=bytes", "args=interleaved",
	} {
		f, err := sim.ParseFault(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := f.String(); got != text {
			t.Errorf("%q is read as %q", text, got)
		}
	}
	for _, text := range []string{"", "200", "600", "cut", "cut=0", "slow=x", "slow=2h", "split=half", "args=even", "redirect=", "overflow=late", "every=-1", "529=1"} {
		if f, err := sim.ParseFault(text); err == nil {
			t.Errorf("%q was parsed as %+v", text, f)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	f.Add("429 retry-after=2, split=utf8 cut=3")
	f.Fuzz(func(t *testing.T, text string) {
		fault, err := sim.ParseFault(text)
		if err != nil {
			return
		}
		if !strings.Contains(text, "redirect") { // URLs may contain separators
			again, err := sim.ParseFault(fault.String())
			if fault.String() != "" && (err != nil || again != fault) {
				t.Errorf("%q is %+v, whose text %q is %+v, %v", text, fault, fault.String(), again, err)
			}
		}
	})
}

// dialects are the three formats with a model each.
var dialects = []struct {
	name, model string
	d           dialect
}{
	{"anthropic", "claude-sonnet-4-5", anthropicDialect{}},
	{"chat", "gpt-5.2", chatDialect{}},
	{"responses", "gpt-5.2", responsesDialect{}},
	{"gemini", "gemini-3.1-pro-preview", geminiDialect{}},
}

// speaker says multi-byte characters and calls a tool.
var speaker = sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
	return sim.Reply{Blocks: []furl.Block{
		{Kind: furl.KindText, Text: "Grüße aus Łódź — 東京へ 🚀, and then some more words to say."},
		{Kind: furl.KindCall, Name: "read_file", Args: []byte(`{"path":"straße/東京.txt","n":[1,2,3]}`)},
	}}, nil
})

// A provider's error may replace an answer.
func TestFaultsInsteadOfAnAnswer(t *testing.T) {
	tests := []struct {
		fault         string
		status        int
		anthropic     string // its type
		header, value string
	}{
		{"429 retry-after=7", 429, "rate_limit_error", "retry-after", "7"},
		{"429", 429, "rate_limit_error", "retry-after", "1"},
		{"500", 500, "api_error", "", ""},
		{"529", 529, "overloaded_error", "", ""},
		{"504", 504, "timeout_error", "", ""},
		{"401", 401, "authentication_error", "", ""},
		{"overflow", 400, "invalid_request_error", "", ""},
		{"redirect=http://127.0.0.1:9/x", 307, "", "Location", "http://127.0.0.1:9/x"},
	}
	for _, tt := range tests {
		for _, d := range dialects {
			t.Run(tt.fault+" "+d.name, func(t *testing.T) {
				s, srv := serve(t, nil)
				a := post(t, srv, d.d.path(), d.d.body(d.model, toList(d.d.user("hi")), true), sim.FaultHeader, tt.fault)
				if a.status != tt.status || tt.header != "" && a.header.Get(tt.header) != tt.value {
					t.Fatalf("status %d, %s %q: %s", a.status, tt.header, a.header.Get(tt.header), a.body)
				}
				if tt.status != 307 {
					var e struct {
						Error struct{ Type, Message string }
					}
					mustJSON(t, a.body, &e)
					if e.Error.Message == "" || d.name == "anthropic" && e.Error.Type != tt.anthropic {
						t.Errorf("%s", a.body)
					}
				}
				r := s.Requests()[0]
				if r.Verdict != sim.VerdictFault || !strings.HasPrefix(r.Fault, strings.Fields(tt.fault)[0]) || s.Bill().Cost != 0 {
					t.Errorf("journal %+v", r)
				}
			})
		}
	}
}

// However the bytes of a stream are cut into writes, they are the same.
func TestSplitStreams(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			want := recorded(t, d.d, d.model, "")
			for _, fault := range []string{"split=bytes", "split=lines", "split=utf8"} {
				got := recorded(t, d.d, d.model, fault)
				if !bytes.Equal(got.Body.Bytes(), want.Body.Bytes()) {
					t.Errorf("%s: the stream differs", fault)
				}
				if got.writes <= want.writes {
					t.Errorf("%s: %d writes, as without", fault, got.writes)
				}
				if fault == "split=utf8" && got.halves == 0 {
					t.Errorf("%s: no write ends inside a character", fault)
				}
			}
			back, calls, text := d.d.read(t, want.Body.Bytes(), true)
			if len(calls) != 1 || !strings.HasPrefix(text, "Grüße aus Łódź — 東京へ 🚀") || len(back) == 0 {
				t.Errorf("read %q, calls %q", text, calls)
			}
			odd := recorded(t, d.d, d.model, "args=odd")
			again, _, _ := d.d.read(t, odd.Body.Bytes(), true)
			if last := len(back) - 1; !strings.Contains(string(again[last]), "straße/東京.txt") {
				t.Errorf("odd arguments: %s", again[last])
			}
		})
	}
}

// recorder counts writes.
type recorder struct {
	*httptest.ResponseRecorder
	writes, halves int
}

func (r *recorder) Write(b []byte) (int, error) {
	r.writes++
	if !utf8.Valid(b) {
		r.halves++
	}
	return r.ResponseRecorder.Write(b)
}

func recorded(t *testing.T, d dialect, model, fault string) *recorder {
	t.Helper()
	c := &clock{start}
	s := sim.New(&sim.Options{Player: speaker, Now: c.Now})
	path, body := d.path(), d.body(model, toList(d.user("hi")), true)
	if path == "" {
		path, body, _ = strings.Cut(body, "\n")
	}
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer k")
	req.Header.Set("anthropic-version", "2023-06-01")
	if fault != "" {
		req.Header.Set(sim.FaultHeader, fault)
	}
	w := &recorder{ResponseRecorder: httptest.NewRecorder()}
	s.ServeHTTP(w, req)
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w
}

// A stream may be interrupted, or end with an error; the events before that
// are complete.
func TestBrokenStreams(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			s, srv := serve(t, &sim.Options{Player: speaker})
			body := d.d.body(d.model, toList(d.d.user("hi")), true)
			cut := post(t, srv, d.d.path(), body, sim.FaultHeader, "cut=3")
			if cut.err == nil {
				t.Error("cut: the stream ends as if it were whole")
			}
			if n := bytes.Count(cut.body, []byte(`data: {"`)); n != 3 && n != 4 { // a ping may be among them
				t.Errorf("cut: %d events before the cut: %s", n, cut.body)
			}
			half := post(t, srv, d.d.path(), d.d.body(d.model, toList(d.d.user("hi")), false), sim.FaultHeader, "cut=1")
			if half.err == nil && len(half.body) > 0 && half.body[len(half.body)-1] == '}' {
				t.Errorf("cut: the answer is whole: %s", half.body)
			}
			broken := post(t, srv, d.d.path(), body, sim.FaultHeader, "error=3")
			names, data := events(t, broken.body)
			last := string(data[len(data)-1])
			if broken.err != nil || !strings.Contains(last, `"error"`) || d.name != "chat" && d.name != "gemini" && names[len(names)-1] != "error" {
				t.Errorf("error: %v, ends with %s", broken.err, last)
			}
			pings := post(t, srv, d.d.path(), body, sim.FaultHeader, "ping")
			if _, calls, _ := d.d.read(t, pings.body, true); len(calls) != 1 || bytes.Count(pings.body, []byte("ping")) < 5 {
				t.Errorf("ping: %s", pings.body)
			}
			for _, r := range s.Requests()[:3] {
				if r.Verdict != sim.VerdictCut || r.Error == "" {
					t.Errorf("journal %+v", r)
				}
			}
		})
	}
}

func TestOverflowInStream(t *testing.T) {
	_, srv := serve(t, nil)
	d := responsesDialect{}
	a := post(t, srv, d.path(), d.body("gpt-5.2", toList(d.user("hi")), true), sim.FaultHeader, "overflow=stream")
	names, data := events(t, a.body)
	if a.status != 200 || names[len(names)-1] != "response.failed" || !strings.Contains(string(data[len(data)-1]), `"code":"context_length_exceeded"`) {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	c := chatDialect{}
	if a := post(t, srv, c.path(), c.body("gpt-5.2", toList(c.user("hi")), true), sim.FaultHeader, "overflow=stream"); a.status != 200 || !strings.Contains(string(a.body), `"delta":{"role":"assistant"`) || !strings.Contains(string(a.body), `"code":"context_length_exceeded"`) {
		t.Errorf("chat: status %d: %s", a.status, a.body)
	}
	if a := post(t, srv, c.path(), c.body("gpt-5.2", toList(c.user("hi")), false), sim.FaultHeader, "overflow=stream"); a.status != 400 {
		t.Errorf("chat, not streamed: status %d", a.status)
	}
	m := anthropicDialect{}
	if a := post(t, srv, m.path(), m.body("claude-sonnet-4-5", toList(m.user("hi")), true), sim.FaultHeader, "overflow=stream"); a.status != 200 || !strings.Contains(string(a.body), "event: message_start\n") || !strings.Contains(string(a.body), "prompt is too long: ") {
		t.Errorf("messages: status %d: %s", a.status, a.body)
	}
}

// The first byte is delayed, and the wait ends if the client disconnects.
func TestSlow(t *testing.T) {
	var waited time.Duration
	_, srv := serve(t, &sim.Options{Wait: func(_ context.Context, d time.Duration) error { waited += d; return nil }})
	d := anthropicDialect{}
	if a := post(t, srv, d.path(), d.body("claude-sonnet-4-5", toList(d.user("hi")), true), sim.FaultHeader, "slow=90s"); a.status != 200 || waited != 90*time.Second {
		t.Errorf("status %d after %v", a.status, waited)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := sim.New(&sim.Options{Wait: func(ctx context.Context, _ time.Duration) error { cancel(); <-ctx.Done(); return ctx.Err() }})
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, d.path(), strings.NewReader(d.body("claude-sonnet-4-5", toList(d.user("hi")), true)))
	req.Header.Set("x-api-key", "k")
	req.Header.Set("anthropic-version", "2023-06-01")
	req.Header.Set(sim.FaultHeader, "slow=1h")
	s.ServeHTTP(httptest.NewRecorder(), req)
	if r := s.Requests()[0]; r.Verdict != sim.VerdictCut {
		t.Errorf("journal %+v", r)
	}
}

// Faults of the options apply to prompts in turn.
func TestFaultsInTurn(t *testing.T) {
	first, _ := sim.ParseFault("529 first=2")
	every, _ := sim.ParseFault("500 every=3")
	_, srv := serve(t, &sim.Options{Faults: []sim.Fault{first, every}})
	d := chatDialect{}
	var got []int
	for range 6 {
		post(t, srv, "/v1/responses/input_tokens", `{"model":"gpt-5.2","input":"hi"}`)
		got = append(got, post(t, srv, d.path(), d.body("gpt-5.2", toList(d.user("hi")), false)).status)
	}
	if want := []int{529, 529, 500, 200, 200, 500}; !equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A player's error is the provider's 500.
func TestPlayerFails(t *testing.T) {
	_, srv := serve(t, &sim.Options{Player: sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
		return sim.Reply{}, io.ErrUnexpectedEOF
	})})
	d := anthropicDialect{}
	if a := post(t, srv, d.path(), d.body("claude-sonnet-4-5", toList(d.user("hi")), true)); a.status != 500 || !strings.Contains(string(a.body), "api_error") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}

// The arguments of parallel calls may alternate; the index says which call
// they belong to.
func TestInterleavedCalls(t *testing.T) {
	_, srv := serve(t, &sim.Options{Player: sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
		return sim.Reply{Blocks: []furl.Block{
			{Kind: furl.KindCall, ID: "a", Name: "read_file", Args: []byte(`{"path":"first/a/long/way/down.txt"}`)},
			{Kind: furl.KindCall, ID: "b", Name: "read_file", Args: []byte(`{"path":"second/another/way/down.txt"}`)},
		}}, nil
	})})
	const fault = "args=interleaved"
	c := chatDialect{}
	a := post(t, srv, c.path(), c.body("gpt-5.2", toList(c.user("hi")), true), sim.FaultHeader, fault)
	back, calls, _ := c.read(t, a.body, true)
	if len(calls) != 2 || !strings.Contains(string(back[0]), `first/a/long/way/down.txt`) || !strings.Contains(string(back[0]), `second/another/way/down.txt`) {
		t.Errorf("chat: %s", back)
	}
	if first, last := bytes.Index(a.body, []byte(`"index":1,"id"`)), bytes.LastIndex(a.body, []byte(`[{"index":0,"function"`)); first < 0 || last < first {
		t.Errorf("chat: not interleaved: %s", a.body)
	}
	d := anthropicDialect{}
	a = post(t, srv, d.path(), d.body("claude-sonnet-4-5", toList(d.user("hi")), true), sim.FaultHeader, fault)
	first, last := bytes.Index(a.body, []byte(`"content_block_delta","index":1`)), bytes.LastIndex(a.body, []byte(`"content_block_delta","index":0`))
	if first < 0 || last < first {
		t.Errorf("anthropic: not interleaved: %s", a.body)
	}
}
