package wire

import (
	"errors"
	"testing"

	"github.com/furlhq/furl"
)

func TestDetect(t *testing.T) {
	for _, tt := range []struct {
		body string
		want furl.Format // "": unclear
	}{
		{`{"model":"m","input":"hi"}`, furl.FormatResponses},
		{`{"previous_response_id":"r","input":[]}`, furl.FormatResponses},
		{`{"instructions":"be brief"}`, furl.FormatResponses},
		{`{"system":"s","messages":[{"role":"user","content":"hi"}]}`, furl.FormatAnthropic},
		{`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}]}`, furl.FormatAnthropic},
		{`{"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f","input_schema":{}}]}`, furl.FormatAnthropic},
		{`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]}`, furl.FormatChat},
		{`{"messages":[{"role":"assistant","tool_calls":[]}]}`, furl.FormatChat},
		{`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}]}`, furl.FormatChat},
		{`{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}]}`, furl.FormatChat},
		{`{"messages":[{"role":"user","content":"hi"}],"max_completion_tokens":5}`, furl.FormatChat},
		// What both have, what neither has, and signs of both.
		{`{"model":"claude-sonnet-4-5","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`, ""},
		{`{"messages":[]}`, ""},
		{`{"system":"s","messages":[{"role":"tool","content":"x"}]}`, ""},
		{`{"prompt":"hi"}`, ""},
		{`{"messages":[1,null,{"role":7,"content":{"type":3}}],"tools":{}}`, ""},
		{`[]`, ""},
		{`{"messages":[`, ""},
		{``, ""},
	} {
		api, err := Detect([]byte(tt.body))
		switch {
		case tt.want == "" && !errors.Is(err, ErrUnclear):
			t.Errorf("%s: %v %v", tt.body, api, err)
		case tt.want != "" && (err != nil || api.Format() != tt.want):
			t.Errorf("%s: %v, want %s", tt.body, err, tt.want)
		}
	}
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"tool_result"}]}],"tools":[{"function":1}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if api, err := Detect(body); (api == nil) == (err == nil) {
			t.Errorf("%v %v", api, err)
		}
	})
}
