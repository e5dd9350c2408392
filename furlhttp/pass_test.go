package furlhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

const question = `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"Hi."}]}`

// What is not for furl is sent unchanged, and the program is told why.
func TestPassed(t *testing.T) {
	large := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 2000) + `"}]}`
	for _, tc := range []struct {
		name, path, body string
		header           http.Header
		why              string // of Options.Sent; "": not called
	}{
		{"bypassed", "/v1/messages", question, http.Header{furlhttp.HeaderBypass: {"true"}}, fmt.Sprint(session.PassedBypass)},
		{"undecoded", "/v1/messages", `{"messages":`, nil, fmt.Sprint(session.PassedUndecoded, " with an error")},
		{"too large", "/v1/messages", large, nil, fmt.Sprint(session.PassedTooLarge)},
		{"aside", "/v1/messages", question, http.Header{"Session-Id": {"s"}}, fmt.Sprint(session.PassedAuxiliary)},
		{"another path", "/v1/models", question, nil, ""},
		{"encoded", "/v1/messages", "\x1f\x8b packed", http.Header{"Content-Encoding": {"gzip"}}, ""},
	} {
		var passed []string
		begun := false
		var sent, reply string
		base := newProvided(strings.NewReader(whole))
		base.more = http.Header{"Content-Encoding": {"br"}}
		tr := furlhttp.New(sessions(t, session.Options{}), &furlhttp.Options{
			MaxBody: 1000,
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				data, err := io.ReadAll(r.Body)
				if sent = string(data); err != nil || r.ContentLength != int64(len(tc.body)) {
					t.Errorf("%s: %v, length %d", tc.name, err, r.ContentLength)
				}
				for name := range r.Header {
					if strings.HasPrefix(name, "X-Furl-") {
						t.Errorf("%s: %s was sent", tc.name, name)
					}
				}
				return base.RoundTrip(r)
			}),
			Sent: func(x *session.Exchange, _ error) {
				p := fmt.Sprint(x.Passed)
				if x.Err != nil {
					p = fmt.Sprint(x.Passed, " with an error")
				}
				passed = append(passed, p)
				begun = begun || x.Passed == 0
			},
		})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://provider"+tc.path, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(r.Header, tc.header)
		r.Header.Set(furlhttp.HeaderSession, "")
		before := len(r.Header)
		resp, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		reply = string(data)
		_ = resp.Body.Close()
		if err != nil || sent != tc.body || reply != whole || resp.Header.Get("Content-Encoding") != "br" || begun || strings.Join(passed, ",") != tc.why || len(r.Header) != before {
			t.Errorf("%s: sent %q, got %q, %v, begun %v, passed %v, want %v", tc.name, sent, reply, err, begun, passed, tc.why)
		}
	}
}

// Codex with its default model sends its tools as an item of the input and not beside it. Its
// first request is that of a conversation all the same.
func TestFirstRequestWithToolsInTheInput(t *testing.T) {
	const tools = `{"type":"additional_tools","role":"developer","tools":[{"type":"custom","name":"exec"}]},`
	for items, want := range map[string]bool{tools: true, "": false} {
		recorded := false
		tr := furlhttp.New(sessions(t, session.Options{}), &furlhttp.Options{
			Base: newProvided(strings.NewReader(whole)),
			Sent: func(x *session.Exchange, _ error) { recorded = x.Passed == 0 },
		})
		body := `{"model":"gpt-6.2-sol","store":false,"input":[` + items + `{"type":"message","role":"user","content":"Hi."}]}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://provider/v1/responses", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Session-Id", "s")
		resp, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || recorded != want {
			t.Errorf("with %q before the user's message: recorded %v, want %v; %v", items, recorded, want, err)
		}
	}
}

// closing is a body that counts how often it is closed.
type closing struct {
	io.Reader
	n atomic.Int32
}

func (c *closing) Close() error { c.n.Add(1); return nil }

// http.RoundTripper demands that the body of a request is closed whatever happens.
func TestRequestsAreClosed(t *testing.T) {
	gone := errors.New("gone")
	for _, tc := range []struct {
		name, path string
		body       io.Reader
		header     string
		refuse     bool
		fails      bool
		err        bool
	}{
		{"recorded", "/v1/messages", strings.NewReader(question), "", false, false, false},
		{"recorded, with recall", "/v1/responses", strings.NewReader(`{"model":"gpt-5","store":false,"input":"hi"}`), "", false, false, false},
		{"another path", "/v1/models", strings.NewReader(question), "", false, false, false},
		{"bypassed", "/v1/messages", strings.NewReader(question), furlhttp.HeaderBypass, false, false, false},
		{"undecoded", "/v1/messages", strings.NewReader("{"), "", false, false, false},
		{"too large", "/v1/messages", strings.NewReader(strings.Repeat("x", 2000)), "", false, false, false},
		{"counted", "/v1/messages/count_tokens", strings.NewReader(question), "", false, false, false},
		{"it cannot be read", "/v1/messages", iotest.ErrReader(gone), "", false, false, true},
		{"no connection", "/v1/messages", strings.NewReader(question), "", false, true, true},
		{"it cannot be recorded", "/v1/messages", strings.NewReader(question), "", true, false, true},
	} {
		all, err := session.New(inmem.New(), nil)
		if tc.refuse {
			all, err = session.New(&full{inmem.New(), 0}, &session.Options{Refuse: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		base := newProvided(strings.NewReader(whole))
		tr := furlhttp.New(all, &furlhttp.Options{Recall: true, MaxBody: 1000, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			if tc.fails {
				_ = r.Body.Close()
				return nil, gone
			}
			return base.RoundTrip(r)
		})})
		body := &closing{Reader: tc.body}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://provider"+tc.path, body)
		if err != nil {
			t.Fatal(err)
		}
		if tc.header != "" {
			r.Header.Set(tc.header, "1")
		}
		resp, err := tr.RoundTrip(r)
		if (err != nil) != tc.err {
			t.Errorf("%s: %v", tc.name, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		if body.n.Load() == 0 {
			t.Errorf("%s: the body was not closed", tc.name)
		}
	}
}

// A request for the size of a prompt is sent as the session shows it, and nothing
// is recorded. A dry run, asked for by the request or by Options, is sent
// unchanged, and its reply says what would be hidden.
func TestCountAndDryRun(t *testing.T) {
	f := families[0]
	s, url := provider(t, sim.Options{Window: 6000, Player: reader(30), KeepBodies: true})
	all := sessions(t, session.Options{Policy: "rolling-mask-5", Window: 6000})
	p := &program{t: t, f: f, client: &http.Client{Transport: furlhttp.New(all, nil)}, url: url}
	p.say("Read all files.")
	for range 25 {
		p.ask()
	}
	send := func(path string, o furlhttp.Options, header string) (http.Header, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(p.body()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Anthropic-Version", "2023-06-01")
		r.Header.Set("Content-Type", "application/json")
		if header != "" {
			r.Header.Set(header, "true")
		}
		resp, err := furlhttp.New(all, &o).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 && !strings.Contains(string(body), "too long") {
			t.Fatalf("%d %s %v", resp.StatusCode, body, err)
		}
		requests := s.Requests()
		return resp.Header, string(requests[len(requests)-1].Body)
	}
	before := records(t, all)
	header, body := send("/v1/messages/count_tokens", furlhttp.Options{}, "")
	tokens := func(name string) int { n, _ := strconv.Atoi(header.Get(name)); return n }
	if records(t, all) != before || len(body) >= len(p.body()) || header.Get(furlhttp.HeaderSession) == "" {
		t.Errorf("%d bytes of %d were sent, %v", len(body), len(p.body()), header)
	}
	if header.Get(furlhttp.HeaderDryRun) != "" {
		t.Errorf("header %v", header)
	}
	header, body = send("/v1/messages/count_tokens", furlhttp.Options{DryRun: true}, "")
	if records(t, all) != before || header.Get(furlhttp.HeaderDryRun) != "true" {
		t.Errorf("%d bytes were sent, %v", len(body), header)
	}

	// In a session where nothing is hidden yet.
	for _, o := range []furlhttp.Options{{DryRun: true}, {}} {
		named := ""
		if !o.DryRun {
			named = furlhttp.HeaderDryRun
		}
		o.Session = furl.SessionID("dry" + named)
		header, body = send("/v1/messages", o, named)
		if body != p.body() || header.Get(furlhttp.HeaderDryRun) != "true" || !strings.HasPrefix(header.Get(furlhttp.HeaderPlan), "mask;") || header.Get(furlhttp.HeaderReductions) == "0" ||
			tokens(furlhttp.HeaderTokensBefore) <= tokens(furlhttp.HeaderTokensAfter) {
			t.Errorf("%d bytes of %d were sent, %v", len(body), len(p.body()), header)
		}
	}
}

// A reply says if the session that was asked for cannot exist.
func TestDescribeSession(t *testing.T) {
	for asked, note := range map[string]string{"": "", "mine": "", "la/test": "invalid session id ignored", "latest": "reserved session id ignored"} {
		tr := furlhttp.New(sessions(t, session.Options{}), &furlhttp.Options{Base: newProvided(strings.NewReader(strings.Join(stream, "")))})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://provider/v1/messages", strings.NewReader(question))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(furlhttp.HeaderSession, asked)
		resp, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		got := resp.Header.Get(furlhttp.HeaderNote)
		if (got == "") != (note == "") || !strings.Contains(got, note) || (resp.Header.Get(furlhttp.HeaderSession) == "mine") != (asked == "mine") || resp.Header.Get(furlhttp.HeaderSession) == "" {
			t.Errorf("%q: %v", asked, resp.Header)
		}
	}
}

// A provider that says only in its stream that a prompt is too long does not get
// to say it to the program either.
func TestOverflowInStreamIsRecovered(t *testing.T) {
	for _, f := range families {
		for _, more := range []string{"", " split=bytes", " ping"} {
			t.Run(string(f.format)+more, func(t *testing.T) {
				fault, err := sim.ParseFault("overflow=stream every=8" + more)
				if err != nil {
					t.Fatal(err)
				}
				s, url := provider(t, sim.Options{Player: reader(14), Faults: []sim.Fault{fault}})
				recovered := 0
				tr := furlhttp.New(sessions(t, session.Options{Window: 30_000}), &furlhttp.Options{Ended: func(x *session.Exchange, list []session.Reply) {
					if x.Recovered != nil {
						recovered++
					}
					if r := list[len(list)-1]; !r.Complete || r.DecodeErr != nil || r.RecordErr != nil {
						t.Errorf("%+v", r)
					}
				}})
				p := &program{t: t, f: f, client: &http.Client{Transport: tr}, url: url, stream: true}
				p.say("Read all files.")
				for range 15 {
					p.ask()
				}
				if recovered == 0 || len(s.Requests()) != 15+recovered {
					t.Errorf("%d replies were recovered, %d requests", recovered, len(s.Requests()))
				}
			})
		}
	}
}

// The context of a request ends what furl does for it before it is sent.
func TestCancelledBeforeItIsSent(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tr := furlhttp.New(sessions(t, session.Options{}), &furlhttp.Options{Base: roundTripper(func(r *http.Request) (*http.Response, error) { return nil, r.Context().Err() })})
	if _, err := ask(t, ctx, tr); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A provider cannot say what furl did.
func TestHeadersOfFurlAreFurls(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Furl-Note", "forged")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`)
	}))
	defer srv.Close()
	client := &http.Client{Transport: furlhttp.New(sessions(t, session.Options{}), nil)}
	resp, err := client.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"gpt-4.1","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("X-Furl-Note") != "" || resp.Header.Get(furlhttp.HeaderSession) == "" {
		t.Errorf("the header is %v", resp.Header)
	}
}
