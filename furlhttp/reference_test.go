package furlhttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// A client that names the model's items by their ids, as the AI SDK does after its first
// request, has one session, which is reduced like others. References are sent unchanged.
func TestItemReferences(t *testing.T) {
	for name, c := range map[string]struct {
		policy  string
		calls   bool // calls are referred to as well
		stream  bool
		restart bool
	}{
		"messages and reasoning": {policy: "rolling-mask-5"},
		"all items":              {policy: "rolling-mask-5", calls: true, stream: true},
		"steps are hidden":       {policy: "sliding-window", calls: true},
		"auto":                   {policy: "auto", calls: true, restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, url := provider(t, sim.Options{Window: 6000, Player: reader(40)})
			all := sessions(t, session.Options{Policy: c.policy, Window: 6000})
			var ended *session.Exchange
			reduced, references := 0, 0
			tr := furlhttp.New(all, &furlhttp.Options{Ended: func(x *session.Exchange, list []session.Reply) {
				r := list[len(list)-1]
				if r.RecordErr != nil || r.DecodeErr != nil || x.Err != nil {
					t.Errorf("record: %v, decode: %v, %v", r.RecordErr, r.DecodeErr, x.Err)
				}
				if ended = x; x.Reduced {
					reduced++
				}
				references += strings.Count(string(x.Body), "item_reference")
			}})
			p := &program{t: t, f: families[2], client: &http.Client{Transport: tr}, url: url, stream: c.stream}
			p.f.model = "gpt-5.5"
			p.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Read all files."})
			for n := range 41 {
				at := len(p.history)
				p.ask()
				for i := at; i < len(p.history); i++ {
					typ, id := rawjson.Unquote(rawjson.Field(p.history[i], "type")), rawjson.Unquote(rawjson.Field(p.history[i], "id"))
					if id != "" && (c.calls || typ != "function_call") && typ != "function_call_output" {
						p.history[i] = json.RawMessage(fmt.Sprintf(`{"type":"item_reference","id":%q}`, id))
					}
				}
				if c.restart && n == 20 {
					all.Drop()
				}
			}
			checkOneSession(t, s, all, ended, len(p.history))
			if reduced < 10 || references < 100 {
				t.Errorf("%d reduced requests with %d references", reduced, references)
			}
			requests, err := ended.Session.Requests()
			if err != nil || len(requests) == 0 {
				t.Fatal(err)
			}
			last := requests[len(requests)-1]
			if got, err := ended.Session.ReceivedBody(t.Context(), last.Exchange); err != nil || !strings.Contains(string(got), "item_reference") {
				t.Errorf("the client's body is rebuilt as %.300s, %v", got, err)
			}
		})
	}
}

// A reference to an item that furl has not recorded stays as it is.
func TestUnknownItemReference(t *testing.T) {
	_, url := provider(t, sim.Options{Player: reader(3)})
	direct := &program{t: t, f: families[2], client: http.DefaultClient, url: url}
	direct.f.model = "gpt-5.5"
	direct.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Read all files."})
	direct.ask()
	history := direct.history
	for i := range history[:len(history)-1] {
		if id := rawjson.Unquote(rawjson.Field(history[i], "id")); id != "" {
			history[i] = json.RawMessage(fmt.Sprintf(`{"type":"item_reference","id":%q}`, id))
		}
	}
	all := sessions(t, session.Options{})
	var ended *session.Exchange
	tr := furlhttp.New(all, &furlhttp.Options{Ended: func(x *session.Exchange, _ []session.Reply) { ended = x }})
	direct.client = &http.Client{Transport: tr}
	direct.ask()
	direct.ask()
	if ended == nil || strings.Count(string(ended.Body), "item_reference") != 2 {
		t.Fatalf("sent: %+v", ended)
	}
	n := 0
	for info := range all.List(t.Context(), storage.SessionQuery{}) {
		if n++; info.Messages != len(direct.history)-1 { // the last result is not sent
			t.Errorf("the session has %d messages, the client %d", info.Messages, len(direct.history))
		}
	}
	if n != 1 {
		t.Errorf("there are %d sessions, want 1", n)
	}
}
