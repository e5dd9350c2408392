package furlhttp_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// family is a wire format as a program speaks it.
type family struct {
	codec  protocol.Codec
	path   string
	model  string
	list   string // the name of its list
	format furl.Format
	output int // asked for; 0: 500
}

var families = []family{
	{anthropic.Codec, "/v1/messages", "claude-sonnet-4-5", "messages", furl.FormatAnthropic, 0},
	{openai.Chat, "/v1/chat/completions", "gpt-4.1", "messages", furl.FormatChat, 0},
	{openai.Responses, "/v1/responses", "gpt-4.1", "input", furl.FormatResponses, 0},
}

// program is an agent loop as somebody writes it who knows nothing of furl.
type program struct {
	t       *testing.T
	f       family
	client  *http.Client
	url     string
	stream  bool
	store   string // what it says about keeping responses; "": nothing
	history []json.RawMessage
}

func (p *program) add(role furl.Role, blocks ...furl.Block) {
	p.t.Helper()
	m, err := p.f.codec.NewMessage(role, blocks)
	if err != nil {
		p.t.Fatal(err)
	}
	p.history = append(p.history, m.Raw)
}

func (p *program) body() string {
	list, err := json.Marshal(p.history)
	if err != nil {
		p.t.Fatal(err)
	}
	fields := ""
	if p.f.format == furl.FormatAnthropic {
		fields = fmt.Sprintf(`,"max_tokens":%d`, cmp.Or(p.f.output, 500))
	}
	if p.stream {
		fields += `,"stream":true`
		if p.f.format == furl.FormatChat {
			fields += `,"stream_options":{"include_usage":true}`
		}
	}
	if p.store != "" && p.f.format == furl.FormatResponses {
		fields += `,"store":` + p.store
	}
	tool := `{"name":"read","description":"reads","input_schema":{"type":"object"}}`
	switch p.f.format {
	case furl.FormatChat:
		tool = `{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}`
	case furl.FormatResponses:
		tool = `{"type":"function","name":"read","parameters":{"type":"object"}}`
	}
	return fmt.Sprintf(`{"model":%q%s,"tools":[%s],%q:%s}`, p.f.model, fields, tool, p.f.list, list)
}

// ask sends the history and takes the reply into it; calls are answered.
func (p *program) ask() *protocol.Reply {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url+p.f.path, strings.NewReader(p.body()))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	l := wire.NewReplyReader(wire.For(p.f.format), resp.StatusCode, resp.Header.Get("Content-Type"))
	if _, err := io.Copy(l, resp.Body); err != nil {
		p.t.Fatal(err)
	}
	reply, err := l.Reply(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if reply.Refusal != nil {
		p.t.Fatalf("refused: %v", reply.Refusal)
	}
	for _, m := range reply.Messages {
		p.history = append(p.history, m.Raw)
	}
	for _, m := range reply.Messages {
		for _, b := range m.Blocks {
			if b.Kind == furl.KindCall {
				p.add(resultRole(p.f.format), furl.Block{Kind: furl.KindResult, ID: b.ID, Text: "what is in it: " + strings.Repeat("a line of words. ", 80)})
			}
		}
	}
	return reply
}

func resultRole(f furl.Format) furl.Role {
	if f == furl.FormatAnthropic {
		return furl.RoleUser
	}
	return furl.RoleTool
}

// reader calls read for so many requests, then says that it is done.
func reader(calls int) sim.Player {
	n := 0
	return sim.PlayerFunc(func(_ context.Context, _ *protocol.Request) (sim.Reply, error) {
		n++
		if n > calls {
			return sim.Text("All files are read."), nil
		}
		return sim.Reply{Blocks: []furl.Block{
			{Kind: furl.KindText, Text: fmt.Sprintf("Reading file %d.", n)},
			{Kind: furl.KindCall, Name: "read", Args: json.RawMessage(fmt.Sprintf(`{"path":"file_%d.go"}`, n))},
		}}, nil
	})
}

func provider(t *testing.T, o sim.Options) (*sim.Sim, string) {
	t.Helper()
	o.NoAuth = true
	s := sim.New(&o)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, srv.URL
}

func sessions(t *testing.T, o session.Options) *session.Sessions {
	t.Helper()
	all, err := session.New(inmem.New(), &o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkOneSession checks that the provider accepted each request and that the store has
// one session without problems, with so many messages; 0: any.
func checkOneSession(t *testing.T, s *sim.Sim, all *session.Sessions, last *session.Exchange, messages int) {
	t.Helper()
	for _, r := range s.Requests() {
		if r.Verdict != sim.VerdictOK {
			t.Fatalf("request %s: %s", r.Verdict, r.Error)
		}
	}
	checkSession(t, all, last, messages)
}

// checkSession checks that the store has one session without problems, with so many
// messages; 0: any.
func checkSession(t *testing.T, all *session.Sessions, last *session.Exchange, messages int) {
	t.Helper()
	n := 0
	for info, err := range all.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; messages > 0 && info.Messages != messages {
			t.Errorf("the session has %d messages, the client %d", info.Messages, messages)
		}
	}
	if n != 1 {
		t.Errorf("there are %d sessions, want 1", n)
	}
	if problems, err := last.Session.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the check found %v, %v", problems, err)
	}
}

// X1: a program that never hides anything stays within the window, in each
// format, with streams and without, and its session holds all of it.
func TestX1ProgramStaysWithinTheWindow(t *testing.T) {
	for _, f := range families {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream %v", f.format, stream), func(t *testing.T) {
				s, url := provider(t, sim.Options{Window: 6000, Player: reader(30)})
				all := sessions(t, session.Options{Policy: "rolling-mask-5", Window: 6000})
				var ended *session.Exchange
				tr := furlhttp.New(all, &furlhttp.Options{Ended: func(x *session.Exchange, _ []session.Reply) { ended = x }})
				p := &program{t: t, f: f, client: &http.Client{Transport: tr}, url: url, stream: stream}
				p.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Read all files."})
				for range 31 {
					p.ask()
				}
				if ended == nil || ended.Err != nil || !ended.Reduced {
					t.Fatalf("the last exchange: %+v", ended)
				}
				checkOneSession(t, s, all, ended, len(p.history))
				hits, err := ended.Session.Search(t.Context(), "file_3.go", session.SearchOptions{Scope: session.Path})
				if err != nil || len(hits) == 0 {
					t.Errorf("a search found %v, %v", hits, err)
				}
			})
		}
	}
}

// The provider's window is smaller than anybody knew: its refusal is not seen
// by the program.
func TestOverflowIsRecovered(t *testing.T) {
	for _, f := range families {
		t.Run(string(f.format), func(t *testing.T) {
			_, url := provider(t, sim.Options{Window: 3000, Player: reader(30)})
			recovered := 0
			tr := furlhttp.New(sessions(t, session.Options{Policy: "sliding-window"}), &furlhttp.Options{Ended: func(x *session.Exchange, _ []session.Reply) {
				if x.Recovered != nil {
					recovered++
				}
			}})
			p := &program{t: t, f: f, client: &http.Client{Transport: tr}, url: url}
			p.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Read all files."})
			for range 31 {
				p.ask()
			}
			if recovered == 0 {
				t.Error("no prompt was refused")
			}
		})
	}
}

// Older models refuse a prompt that leaves no room for the reply that is asked
// for: furl learns that it counts, and keeps the room from then on.
func TestLongOutputIsRecovered(t *testing.T) {
	f := families[0]
	f.model, f.output = "claude-sonnet-4", 2500
	s, url := provider(t, sim.Options{Window: 6000, Player: reader(25)})
	tr := furlhttp.New(sessions(t, session.Options{Policy: "sliding-window", Window: 6000}), nil)
	p := &program{t: t, f: f, client: &http.Client{Transport: tr}, url: url}
	p.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Read all files."})
	for range 26 {
		p.ask()
	}
	refused := 0
	for _, r := range s.Requests() {
		if r.Verdict == sim.VerdictRefused {
			refused++
		}
	}
	if refused == 0 || refused > 3 {
		t.Errorf("%d requests were refused, want the first and few more", refused)
	}
}

func TestPassesThrough(t *testing.T) {
	var got []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		if h := r.Header.Get(furlhttp.HeaderSession); h != "" {
			t.Errorf("furl's header went out: %s", h)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"not":"a reply"}`)
	}))
	defer srv.Close()
	begun := 0
	client := &http.Client{Transport: furlhttp.New(sessions(t, session.Options{}), &furlhttp.Options{
		MaxBody: 1000, Sent: func(x *session.Exchange, _ error) {
			if x.Passed == 0 {
				begun++
			}
		},
	})}
	for _, tt := range []struct{ name, path, body string }{
		{"another path", "/v1/models", `{}`},
		{"no JSON", "/v1/messages", `{"messages":`},
		{"too large", "/v1/messages", `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 2000) + `"}]}`},
		{"bypassed", "/v1/messages", `{"messages":[{"role":"user","content":"hi"}]}`},
	} {
		req, _ := http.NewRequest(http.MethodPost, srv.URL+tt.path, strings.NewReader(tt.body))
		if tt.name == "bypassed" {
			req.Header.Set(furlhttp.HeaderBypass, "true")
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		data, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(got) != tt.body || string(data) != `{"not":"a reply"}` {
			t.Errorf("%s: sent %q, got %q", tt.name, got, data)
		}
	}
	if begun != 0 {
		t.Errorf("%d of what furl cannot read was taken for an exchange", begun)
	}
	req, _ := http.NewRequest(http.MethodPost, srv.URL+"/v1/messages", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
	req.Header.Set(furlhttp.HeaderSession, "mine")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if string(data) != `{"not":"a reply"}` || begun != 1 || !bytes.Contains(got, []byte(`"hi"`)) {
		t.Errorf("a reply that is none came as %s", data)
	}
}
