package gateway_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// ambiguousRequest is a request in which another parser may read another value
// than furl does.
type ambiguousRequest struct{ name, path, field, body string }

const (
	messages  = "/v1/messages"
	chat      = "/v1/chat/completions"
	responses = "/v1/responses"
)

var ambiguousRequests = []ambiguousRequest{
	{"two lists", messages, "messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"one"}],"messages":[{"role":"user","content":"two"}]}`},
	{"a list in another case", messages, "messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"one"}],"Messages":[{"role":"user","content":"two"}]}`},
	{"an escaped name", messages, "messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"one"}],"m\u0065ssages":[]}`},
	{"a letter that folds to s", messages, "messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"one"}],"me` + "\u017f" + `sages":[]}`},
	{"two models", messages, "model", `{"model":"m","model":"n","max_tokens":9,"messages":[{"role":"user","content":"one"}]}`},
	{"two roles", messages, "role", `{"model":"m","max_tokens":9,"messages":[{"role":"user","role":"assistant","content":"one"}]}`},
	{"content in another case", messages, "content", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"one","CONTENT":"two"}]}`},
	{"two texts in a block", messages, "text", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}]}`},
	{"two texts in a result whose type comes last", messages, "text", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"content":[{"type":"text","text":"a","Text":"b"}],"tool_use_id":"t","type":"tool_result"}]}]}`},
	{"two system texts", messages, "text", `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"a","text":"b"}],"messages":[{"role":"user","content":"one"}]}`},
	{"two names of a tool", messages, "name", `{"model":"m","max_tokens":9,"tools":[{"name":"a","Name":"b","input_schema":{}}],"messages":[{"role":"user","content":"one"}]}`},
	{"two data of an image", messages, "data", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"AA==","data":"BB=="}}]}]}`},
	{"two lists", chat, "messages", `{"model":"m","messages":[{"role":"user","content":"one"}],"messages":[]}`},
	{"two ids of a call", chat, "id", `{"model":"m","messages":[{"role":"user","content":"one"},{"role":"assistant","tool_calls":[{"id":"a","ID":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`},
	{"two arguments", chat, "arguments", `{"model":"m","messages":[{"role":"user","content":"one"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}","Arguments":"[]"}}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`},
	{"two call ids of a result", chat, "tool_call_id", `{"model":"m","messages":[{"role":"user","content":"one"},{"role":"tool","tool_call_id":"a","tool_call_id":"b","content":"x"}]}`},
	{"two URLs", chat, "url", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a","url":"https://b"}}]}]}`},
	{"two inputs", responses, "input", `{"model":"m","input":"one","Input":"two"}`},
	{"two outputs", responses, "output", `{"model":"m","input":[{"role":"user","content":"one"},{"type":"function_call_output","call_id":"a","output":"x","output":"y"}]}`},
	{"two lines of a shell", responses, "stdout", `{"model":"m","input":[{"role":"user","content":"one"},{"type":"shell_call_output","call_id":"a","output":[{"stdout":"x","Stdout":"y"}]}]}`},
	{"two previous responses", responses, "previous_response_id", `{"model":"m","input":"one","previous_response_id":null,"previous_response_id":"r"}`},
}

// Fields that furl does not read may occur twice: nothing depends on them. So
// may what is in a call's input or a tool's schema.
var unambiguousRequests = []ambiguousRequest{
	{"unknown fields", messages, "", `{"model":"claude-sonnet-4-5","max_tokens":9,"x":1,"X":2,"messages":[{"role":"user","content":"one","y":1,"y":2}]}`},
	{"a call's input", messages, "", `{"model":"claude-sonnet-4-5","max_tokens":9,"tools":[{"name":"n","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"path":"a","Path":"b"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}]}`},
	{"a tool's schema", chat, "", `{"model":"gpt-5","tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"id":{},"ID":{}}}}}],"messages":[{"role":"user","content":"of a schema"}]}`},
}

// A request with a field that occurs twice, or in another case, is sent as it
// is and not recorded, and the client is told.
func TestAmbiguousFields(t *testing.T) {
	var log bytes.Buffer
	st := newFixture(t, &sim.Options{AnyField: true}, nil, &gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, tt := range append(ambiguousRequests, unambiguousRequests...) {
		t.Run(strings.TrimPrefix(tt.path, "/v1/")+"/"+tt.name, func(t *testing.T) {
			before := len(sessionsOf(t, st.sessions))
			log.Reset()
			resp, answer := st.post(t, tt.path, []byte(tt.body))
			sent := st.sim.Requests()
			if got := sent[len(sent)-1].Body; string(got) != tt.body {
				t.Errorf("the provider got\n%s, want\n%s", got, tt.body)
			}
			note := resp.Header.Get("X-Furl-Note")
			recorded := len(sessionsOf(t, st.sessions)) - before
			if tt.field == "" {
				if strings.Contains(note, "field") || recorded != 1 {
					t.Errorf("note %q, %d sessions were made, want 1; the provider said %d %s", note, recorded, resp.StatusCode, answer)
				}
				return
			}
			if !strings.Contains(note, `"`+tt.field+`" occurs twice`) || recorded != 0 || resp.Header.Get("X-Furl-Session") != "" {
				t.Errorf("note %q, want one of field %s; %d sessions were made, want 0", note, tt.field, recorded)
			}
			if !strings.Contains(log.String(), "occurs twice") {
				t.Errorf("the log says only %s", log.String())
			}
		})
	}
	if got := metricsOf(t, st)["furl_requests_undecoded_total"]; got != float64(len(ambiguousRequests)) {
		t.Errorf("%v requests were counted as not decoded, want %d", got, len(ambiguousRequests))
	}
}

// The same after a request of which most is taken from memory.
func TestAmbiguousAfterKnownBeginning(t *testing.T) {
	st := newFixture(t, &sim.Options{}, nil, &gateway.Options{})
	list := `{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":"three"}`
	first := `{"model":"m","max_tokens":9,"messages":[` + list + `]}`
	st.post(t, messages, []byte(first))
	for _, more := range []string{
		`{"model":"m","max_tokens":9,"messages":[` + list + `,{"role":"assistant","content":"4"},{"role":"user","Role":"x","content":"5"}]}`,
		`{"model":"m","max_tokens":9,"messages":[` + list + `],"Messages":[]}`,
	} {
		resp, _ := st.post(t, messages, []byte(more))
		if note := resp.Header.Get("X-Furl-Note"); !strings.Contains(note, "occurs twice") {
			t.Errorf("note %q", note)
		}
		// What was found ambiguous once is found so again.
		resp, _ = st.post(t, messages, []byte(more))
		if note := resp.Header.Get("X-Furl-Note"); !strings.Contains(note, "occurs twice") {
			t.Errorf("the second time: note %q", note)
		}
	}
}

// The HTTP client for programs does the same.
func TestAmbiguousFieldsInTransport(t *testing.T) {
	store := inmem.New()
	t.Cleanup(func() { store.Close() })
	var log bytes.Buffer
	all, err := session.New(store, &session.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
	}))
	defer provider.Close()
	for _, tt := range ambiguousRequests {
		log.Reset()
		why := ""
		tr := furlhttp.New(all, &furlhttp.Options{
			Sent: func(x *session.Exchange, _ error) { why = x.Why },
		})
		resp, err := (&http.Client{Transport: tr}).Post(provider.URL+tt.path, "application/json", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if string(got) != tt.body || !strings.Contains(why, "occurs twice") || !strings.Contains(log.String(), "field="+tt.field) {
			t.Errorf("%s: the provider got\n%s\nwhy %q\nlog %s", tt.name, got, why, log.String())
		}
	}
	if n := len(sessionsOf(t, all)); n != 0 {
		t.Errorf("%d sessions were made, want none", n)
	}
}

func sessionsOf(t *testing.T, all *session.Sessions) (list []storage.SessionInfo) {
	t.Helper()
	for info, err := range all.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, info)
	}
	return list
}
