package openai

import (
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

// Items that are sent as recorded, although they are not in the request, keep
// their id only after their reasoning; reasoning that only the provider could
// identify is not sent.
func TestRecordedItemsAndTheirReasoning(t *testing.T) {
	call := `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"memory_get","arguments":"{}"}`
	output := `{"type":"function_call_output","call_id":"call_1","output":"x"}`
	for _, tc := range []struct {
		name, reasoning string
		hide            bool
		want            string // of the items, what is sent
	}{
		{"shown", `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"abcd"}`, false, `rs_1 fc_1`},
		{"hidden", `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"abcd"}`, true, ``},
		{"by its id alone", `{"type":"reasoning","id":"rs_1","summary":[]}`, false, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req, err := Responses.DecodeRequest([]byte(`{"model":"m","input":[{"role":"user","content":"hi"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			log := furl.NewLog()
			add := func(body furl.Body) furl.Seq {
				t.Helper()
				r, err := log.Append(log.Head(), time.Time{}, furl.Upstream, body)
				if err != nil {
					t.Fatal(err)
				}
				return r.Seq
			}
			add(&req.Messages[0])
			var thought furl.Seq
			for i, raw := range []string{tc.reasoning, call, output} {
				m, err := Responses.DecodeMessage([]byte(raw))
				if err != nil {
					t.Fatal(err)
				}
				m.Blocks[0].Own = i > 0
				if seq := add(m); i == 0 {
					thought = seq
				}
			}
			if tc.hide {
				at := furl.Pos{Msg: thought}
				add(&furl.Reduction{Stage: "forget", Items: []furl.Item{{Spans: []furl.Span{{First: at, Last: at}}, Show: furl.Gone{}}}})
			}
			v := *log.State().View(furl.Model{})
			v.Messages = append([]furl.Shown(nil), v.Messages...)
			for i := range v.Messages[1:] {
				v.Messages[i+1].Index = -1
			}
			body, err := Responses.EncodeRequest(req, &v)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, id := range []string{"rs_1", "fc_1"} {
				if strings.Contains(string(body), id) {
					ids = append(ids, id)
				}
			}
			if got := strings.Join(ids, " "); got != tc.want || strings.Count(string(body), "call_1") != 2 {
				t.Errorf("sent %s", body)
			}
		})
	}
}

// Reasoning in the request stays with its output if that is sent as recorded,
// because the client has it in another form; so does the id.
func TestReasoningBeforeRecordedItems(t *testing.T) {
	reasoning := `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"abcd"}`
	call := `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{}"}`
	output := `{"type":"function_call_output","call_id":"call_1","output":"long"}`
	req, err := Responses.DecodeRequest([]byte(`{"model":"m","input":[{"role":"user","content":"hi"},` + reasoning + `,` + call + `,{"role":"assistant","content":"I look."},` + output + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	log := furl.NewLog()
	for _, raw := range []string{
		`{"role":"user","content":"hi"}`, reasoning,
		`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"I look."}]}`, call, output,
	} {
		m, err := Responses.DecodeMessage([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(log.Head(), time.Time{}, furl.Upstream, m); err != nil {
			t.Fatal(err)
		}
	}
	v := *log.State().View(furl.Model{})
	v.Messages = append([]furl.Shown(nil), v.Messages...)
	v.Messages[2].Index, v.Messages[3].Index = -1, -1
	body, err := Responses.EncodeRequest(req, &v)
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, id := range []string{`"rs_1"`, `"msg_1"`, `"fc_1"`, `"function_call_output"`} {
		next := strings.Index(string(body), id)
		if next <= at || strings.Count(string(body), id) != 1 {
			t.Fatalf("%s is not where it belongs: %s", id, body)
		}
		at = next
	}
}
