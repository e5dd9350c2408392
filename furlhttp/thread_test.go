package furlhttp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// threaded is a client that uses message threads like the tool runner of Anthropic's SDK:
// after thread_unsupported_request it sends whole histories, after thread_not_found it
// creates another thread.
type threaded struct {
	program
	header   http.Header
	previous string // the reply to continue from
	sent     int    // messages that the thread has
	whole    bool   // without threads
	threads  int    // accepted requests with a thread
}

func (c *threaded) ask() {
	c.t.Helper()
	for range 3 {
		body := c.body()
		from := 0
		switch {
		case c.whole:
		case c.previous != "":
			from = c.sent
			list, _ := json.Marshal(c.history[from:])
			body = fmt.Sprintf(`{"model":%q,"max_tokens":500,"thread":{"type":"continue","previous_message_id":%q},"messages":%s}`, c.f.model, c.previous, list)
		default:
			body = strings.Replace(body, `{`, `{"thread":{"type":"create"},`, 1)
		}
		req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+c.f.path, strings.NewReader(body))
		if err != nil {
			c.t.Fatal(err)
		}
		req.Header = http.Header{}
		for name, values := range c.header {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
		req.Header.Set("Anthropic-Version", "2026-10-21")
		if !c.whole {
			req.Header.Set("Anthropic-Beta", "message-threads-2026-08-12")
		}
		resp, err := c.client.Do(req)
		if err != nil {
			c.t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		var r struct {
			ID      string
			Role    string
			Content json.RawMessage
			Error   struct {
				Details struct {
					Code string `json:"error_code"`
				}
			}
		}
		if err := json.Unmarshal(answer, &r); err != nil {
			c.t.Fatalf("%s: %v", answer, err)
		}
		switch {
		case resp.StatusCode == 400 && r.Error.Details.Code == "thread_unsupported_request":
			c.whole, c.previous = true, ""
			continue
		case resp.StatusCode == 404 && r.Error.Details.Code == "thread_not_found":
			c.previous = ""
			continue
		case resp.StatusCode != 200:
			c.t.Fatalf("status %d: %s", resp.StatusCode, answer)
		}
		reply, err := c.f.codec.DecodeMessage(fmt.Appendf(nil, `{"role":"assistant","content":%s}`, r.Content))
		if err != nil {
			c.t.Fatal(err)
		}
		c.history = append(c.history, reply.Raw)
		if !c.whole {
			c.previous, c.sent = r.ID, len(c.history)
			c.threads++
		}
		for _, b := range reply.Blocks {
			if b.Kind == furl.KindCall {
				c.add(furl.RoleUser, furl.Block{Kind: furl.KindResult, ID: b.ID, Text: "what is in it: " + strings.Repeat("a line of words. ", 80)})
			}
		}
		return
	}
	c.t.Fatal("no answer after three requests")
}

// A client that lets the provider keep its history is told to send it whole, and its
// session is reduced like others. Where nothing is reduced, or with PassThreads, the thread
// is passed on, and recorded as one session.
func TestMessageThreads(t *testing.T) {
	noneForAll := policy.NewSet()
	noneForAll.ByModel("rolling-mask-5", policy.ModelRule{Model: "*", Policy: "none"})
	for name, c := range map[string]struct {
		session session.Options
		http    furlhttp.Options
		header  http.Header
		lost    bool // the client continues a thread that it has created elsewhere
		threads int  // requests with a thread that the provider has answered
		unseen  bool // nothing is recorded
	}{
		"refuse":                       {session: session.Options{Policy: "rolling-mask-5", Window: 6000}},
		"refuse, created before":       {session: session.Options{Policy: "rolling-mask-5", Window: 6000}, lost: true},
		"pass":                         {session: session.Options{Policy: "rolling-mask-5"}, http: furlhttp.Options{PassThreads: true}, threads: 26},
		"pass, unknown to the process": {session: session.Options{Policy: "rolling-mask-5"}, http: furlhttp.Options{PassThreads: true}, lost: true, threads: 26},
		"none":                         {session: session.Options{Policy: "none"}, threads: 26},
		"none for the model":           {session: session.Options{Policy: "rolling-mask-5", Policies: noneForAll}, threads: 26},
		"dry run":                      {http: furlhttp.Options{DryRun: true}, threads: 26},
		"dry run of a request":         {header: http.Header{furlhttp.HeaderDryRun: {"true"}}, threads: 26},
		"bypassed":                     {header: http.Header{furlhttp.HeaderBypass: {"true"}}, threads: 26, unseen: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := provider(t, sim.Options{Window: c.session.Window, Player: reader(25)})
			all := sessions(t, c.session)
			var ended *session.Exchange
			c.http.Ended = func(x *session.Exchange, list []session.Reply) {
				r := list[len(list)-1]
				if r.RecordErr != nil || x.Err != nil {
					t.Errorf("%v, %v", r.RecordErr, x.Err)
				}
				ended = x
			}
			p := &threaded{header: c.header, program: program{t: t, f: families[0], client: &http.Client{Transport: furlhttp.New(all, &c.http)}, url: url}}
			p.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Read all files."})
			if c.lost {
				p.previous = "msg_of_another_gateway"
			}
			for range 26 {
				p.ask()
			}
			if p.threads != c.threads {
				t.Errorf("%d requests with a thread were answered, want %d", p.threads, c.threads)
			}
			for _, r := range s.Requests() {
				if r.Verdict != sim.VerdictOK && !(c.lost && r.Status == 404) {
					t.Fatalf("request %s: %s", r.Verdict, r.Error)
				}
			}
			if c.unseen {
				for info := range all.List(t.Context(), storage.SessionQuery{}) {
					t.Errorf("session %s is recorded", info.Session)
				}
				return
			}
			checkSession(t, all, ended, len(p.history))
			if want := c.threads > 0 && !c.http.DryRun && c.header == nil; want && !ended.AskNothing {
				t.Error("furl may continue the client's thread with a question")
			}
			if c.session.Window > 0 && !ended.Reduced || c.session.Window == 0 && ended.Reduced {
				t.Errorf("reduced: %t", ended.Reduced)
			}
		})
	}
}
