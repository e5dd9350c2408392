package openai

import (
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

// Items that go out as they were recorded, although the request does not have
// them, keep their id only behind the reasoning they came of; reasoning that
// only the provider could know by its id stays away.
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
