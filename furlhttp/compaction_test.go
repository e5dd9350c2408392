package furlhttp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/wire/openai"
)

// compact asks the provider for a compaction and returns the output.
func (p *program) compact(path string, history []json.RawMessage) []json.RawMessage {
	p.t.Helper()
	was := p.history
	p.history = history
	defer func() { p.history = was }()
	resp, err := p.client.Post(p.url+path, "application/json", strings.NewReader(p.body()))
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		p.t.Fatalf("compaction: %d %s, %v", resp.StatusCode, body, err)
	}
	if p.stream && path == p.f.path {
		reply := openai.Responses.NewAssembler()
		for data := range bytes.SplitSeq(body, []byte("\n")) {
			if data, ok := bytes.CutPrefix(data, []byte("data: ")); ok {
				if err := reply.Feed("", data); err != nil {
					p.t.Fatal(err)
				}
			}
		}
		r, _ := reply.Reply()
		var out []json.RawMessage
		for _, m := range r.Messages {
			out = append(out, m.Raw)
		}
		return out
	}
	var r struct{ Output []json.RawMessage }
	if err := json.Unmarshal(body, &r); err != nil {
		p.t.Fatal(err)
	}
	return r.Output
}

// A compaction by the provider is asked for with a prompt that is reduced as any other. The
// session continues as one, whatever the client keeps before the compaction, and what furl
// had hidden is still found and returned exactly.
func TestCompactionByTheProvider(t *testing.T) {
	user := func(text string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"type":"message","role":"user","content":%q}`, text))
	}
	developer := json.RawMessage(`{"type":"message","role":"developer","content":"Answer briefly."}`)
	for name, c := range map[string]struct {
		path    string
		trigger bool
		stream  bool
		// start returns what the client has in place of its history.
		start func(output []json.RawMessage) []json.RawMessage
	}{
		"path":            {path: "/v1/responses/compact", start: func(out []json.RawMessage) []json.RawMessage { return out }},
		"path, item only": {path: "/v1/responses/compact", start: func(out []json.RawMessage) []json.RawMessage { return out[len(out)-1:] }},
		"trigger":         {path: "/v1/responses", trigger: true, start: func(out []json.RawMessage) []json.RawMessage { return out }},
		"trigger, streamed, with messages of the client": {path: "/v1/responses", trigger: true, stream: true, start: func(out []json.RawMessage) []json.RawMessage {
			return append([]json.RawMessage{developer, user("Read all files."), user("Where: /srv.")}, out...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := provider(t, sim.Options{Window: 6000, Player: reader(100)})
			all := sessions(t, session.Options{Policy: "rolling-mask-5", Window: 6000})
			var ended *session.Exchange
			tr := furlhttp.New(all, &furlhttp.Options{Ended: func(x *session.Exchange, list []session.Reply) {
				r := list[len(list)-1]
				if r.RecordErr != nil || r.DecodeErr != nil || x.Err != nil {
					t.Errorf("record: %v, decode: %v, %v", r.RecordErr, r.DecodeErr, x.Err)
				}
				ended = x
			}})
			p := &program{t: t, f: families[2], client: &http.Client{Transport: tr}, url: url, stream: c.stream, store: "false"}
			p.history = []json.RawMessage{user("Read all files.")}
			for n := range 3 {
				for range 14 {
					p.ask()
				}
				asked := slices.Clone(p.history)
				if c.trigger {
					asked = append(asked, json.RawMessage(`{"type":"compaction_trigger"}`))
				}
				out := p.compact(c.path, asked)
				if !ended.AskNothing {
					t.Error("furl may send a question to the path of compactions")
				}
				if n == 0 && !ended.Reduced {
					t.Error("the request for a compaction was not reduced")
				}
				if last := string(out[len(out)-1]); !strings.Contains(last, `"type":"compaction"`) || c.trigger && len(out) != 1 {
					t.Fatalf("output: %s", out)
				}
				p.history = append(c.start(out), user(fmt.Sprintf("Continue, part %d.", n)))
				p.ask()
				for _, item := range p.history[:len(p.history)-3] {
					if !bytes.Contains(ended.Body, item) {
						t.Errorf("the next request lacks %s", item)
					}
				}
				if bytes.Contains(ended.Body, []byte(`file_1.go`)) || bytes.Contains(ended.Body, []byte("compaction_trigger")) {
					t.Errorf("the next request has what was replaced: %s", ended.Body)
				}
				if a := ended.Fit.Account; a == nil || a.Hidden != 0 || a.Over || a.Break == "planned" {
					t.Errorf("the next request saves nothing, but counts as %+v", a)
				}
				compactions := 0
				for red := range ended.Session.View("").State.Reductions() {
					if red.Summary != nil {
						if compactions++; red.Summary.Messages < 28 || red.Before <= red.After {
							t.Errorf("compaction %d: %+v, %d to %d tokens", n, red.Summary, red.Before, red.After)
						}
					}
				}
				if compactions != n+1 {
					t.Errorf("%d compactions are recorded, want %d", compactions, n+1)
				}
			}
			checkOneSession(t, s, all, ended, 0)
			hits, err := ended.Session.Search(t.Context(), "file_3.go", session.SearchOptions{Scope: session.Path})
			if err != nil || len(hits) == 0 {
				t.Fatalf("a search found %v, %v", hits, err)
			}
			if got, err := ended.Session.Get(hits[0].Handle); err != nil || !strings.Contains(got.Text, "file_3.go") {
				t.Errorf("the original is %+v, %v", got, err)
			}

			// Undoing the compaction shows what it hid to the model again, before what the
			// client has.
			var last furl.Seq
			for red := range ended.Session.View("").State.Reductions() {
				if red.Summary != nil {
					last = red.Seq
				}
			}
			if _, err := ended.Session.Restore(t.Context(), session.RestoreOptions{Reduction: last}); err != nil {
				t.Fatal(err)
			}
			p.ask()
			for _, item := range p.history[:len(p.history)-3] {
				if raw := string(item); strings.Contains(raw, `"compaction"`) && !bytes.Contains(ended.Body, item) {
					t.Errorf("after the undo, the request lacks %s", item)
				}
			}
			if r := s.Requests(); r[len(r)-1].Verdict != sim.VerdictOK {
				t.Errorf("after the undo: %s", r[len(r)-1].Error)
			}
		})
	}
}

// A client that sends its whole history again, because it did not use the compaction,
// continues before it.
func TestCompactionThatIsNotUsed(t *testing.T) {
	_, url := provider(t, sim.Options{Window: 20_000, Player: reader(100)})
	all := sessions(t, session.Options{Window: 20_000, Policy: "none"})
	var ended *session.Exchange
	tr := furlhttp.New(all, &furlhttp.Options{Ended: func(x *session.Exchange, _ []session.Reply) { ended = x }})
	p := &program{t: t, f: families[2], client: &http.Client{Transport: tr}, url: url, store: "false"}
	p.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Read all files."})
	for range 5 {
		p.ask()
	}
	p.compact("/v1/responses/compact", p.history)
	p.ask()
	if ended.Reduced || !bytes.Contains(ended.Body, []byte("file_1.go")) {
		t.Errorf("sent: %s", ended.Body)
	}
	if st := ended.Session.View("").State; st.Len() != len(p.history)-1 {
		t.Errorf("the path has %d messages, the client %d", st.Len(), len(p.history)-1)
	}
}
