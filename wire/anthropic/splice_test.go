package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

func TestReadEvent(t *testing.T) {
	for data, want := range map[string]eventHead{
		begin(3, `{"type":"tool_use","id":"toolu_1","name":"memory_get","input":{}}`): {Type: "content_block_start", Index: 3, Block: "tool_use", ID: "toolu_1", Name: "memory_get"},
		delta(2, "text_delta", "text", "x"):                                           {Type: "content_block_delta", Index: 2},
		ended("tool_use", 3):                                                          {Type: "message_delta", Index: -1, Stop: "tool_use"},
		ping:                                                                          {Type: "ping", Index: -1},
	} {
		got, err := readHead([]byte(data))
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", data, got, err)
		}
	}
	if _, err := readHead([]byte(`{"type":`)); err == nil {
		t.Error("half an event: no error")
	}
}

func TestSetIndexKeepsAllOtherBytes(t *testing.T) {
	in := `{ "type":"content_block_delta" ,"index" : 1, "delta":{"index":7,"text":"\u00e9","n":1.0}, "x":[] }`
	got, err := setIndex([]byte(in), 12)
	if want := strings.Replace(in, `: 1,`, `: 12,`, 1); err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	for _, bad := range []string{ping, `{`, `[]`, `{"index":"1"}`} {
		if got, err := setIndex([]byte(bad), 1); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

func TestSetUsage(t *testing.T) {
	u := furl.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, CacheWrite1h: 4, Output: 5, Reasoning: 6}
	for _, tc := range []struct{ in, want string }{
		{`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{ "output_tokens": 15,"x":1.50 }}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{ "output_tokens": 5,"x":1.50,"input_tokens":1,"cache_creation_input_tokens":7,"cache_read_input_tokens":2 }}`},
		{started, strings.NewReplacer(`"input_tokens":10,`, `"input_tokens":1,`, `"cache_creation_input_tokens":30`, `"cache_creation_input_tokens":7`, `"cache_read_input_tokens":200`, `"cache_read_input_tokens":2`,
			`m_input_tokens":20`, `m_input_tokens":3`, `h_input_tokens":10`, `h_input_tokens":4`, `"output_tokens":1`, `"output_tokens":5`).Replace(started)},
		{`{"usage":{"output_tokens_details":{"thinking_tokens":9}}}`, `{"usage":{"output_tokens_details":{"thinking_tokens":6},"input_tokens":1,"cache_creation_input_tokens":7,"cache_read_input_tokens":2,"output_tokens":5}}`},
		{`{"usage":null}`, `{"usage":null}`}, {ping, ping},
	} {
		got, err := setUsage([]byte(tc.in), u)
		if err != nil || string(got) != tc.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, tc.want)
		}
		if strings.Contains(tc.want, "cache_read") {
			usage := rawjson.Field(got, "usage")
			if usage == nil {
				usage = rawjson.Field(rawjson.Field(got, "message"), "usage")
			}
			back, _, _, err := DecodeUsage(usage)
			if back.Prompt() != u.Prompt() || back.Output != u.Output || err != nil {
				t.Errorf("%s reads as %+v, %v", got, back, err)
			}
		}
	}
	if _, err := setUsage([]byte(`{"usage":{}`), u); err == nil {
		t.Error("half a body: no error")
	}
}

func TestEditContent(t *testing.T) {
	body := "{ \"id\":\"m\", \"content\" : [ {\"type\":\"text\"} ,\n{\"n\":1.0}, 3 ], \"x\":1 }"
	before := []json.RawMessage{json.RawMessage(`{"b":1}`)}
	for _, tc := range []struct {
		body   string
		before []json.RawMessage
		drop   string // indexes
		want   string
	}{
		{body, nil, "", body},
		{body, before, "", strings.Replace(body, `[ {`, `[ {"b":1},{`, 1)},
		{body, nil, "1", strings.Replace(body, " ,\n{\"n\":1.0}", "", 1)},
		{body, before, "012", `{ "id":"m", "content" : [ {"b":1} ], "x":1 }`},
		{body, nil, "012", `{ "id":"m", "content" : [], "x":1 }`},
		{`{"content":[]}`, before, "", `{"content":[{"b":1}]}`},
	} {
		got, err := editContent([]byte(tc.body), tc.before, func(i int) bool { return strings.Contains(tc.drop, string(rune('0'+i))) })
		if err != nil || string(got) != tc.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, tc.want)
		}
	}
	for _, bad := range []string{`{"content":"x"}`, `{`, `7`} {
		if got, err := editContent([]byte(bad), before, nil); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

// A reply with a call held back and the reply that follows it form one stream
// in which the client finds nothing missing.
func TestTwoStreamsAsOne(t *testing.T) {
	first := []string{
		started, begin(0, `{"type":"text","text":""}`), delta(0, "text_delta", "text", "Let me recall."), stop(0),
		begin(1, `{"type":"tool_use","id":"toolu_f","name":"memory_get","input":{}}`), delta(1, "input_json_delta", "partial_json", `{"handle":"3"}`), stop(1),
		ended("tool_use", 20), finished,
	}
	second := []string{started, begin(0, `{"type":"text","text":""}`), delta(0, "text_delta", "text", "It was 7."), stop(0), ended("end_turn", 8), finished}
	var out []string
	used, index := furl.Usage{}, map[int]int{}
	for round, events := range [][]string{first, second} {
		reply, err := assemble(t, stream(events...))
		if err != nil {
			t.Fatal(err)
		}
		used = used.Add(reply.Usage)
		clear(index)
		for _, data := range events {
			e, err := readHead([]byte(data))
			if err != nil {
				t.Fatal(err)
			}
			raw := []byte(data)
			switch {
			case e.Type == "message_start" && round > 0, e.Type == "message_stop" && round == 0, e.Type == "message_delta" && round == 0:
				continue
			case e.Type == "content_block_start" && e.Name != "memory_get":
				index[e.Index] = round // one block each
			case e.Type == "message_delta":
				raw, err = setUsage(raw, used)
			}
			if e.Index >= 0 {
				at, ok := index[e.Index]
				if !ok {
					continue
				}
				raw, err = setIndex(raw, at)
			}
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(raw))
		}
	}
	got, err := assemble(t, stream(out...))
	if err != nil {
		t.Fatal(err)
	}
	want, err := replies.DecodeReply(200, []byte(whole(`{"type":"text","text":"Let me recall."},{"type":"text","text":"It was 7."}`, "end_turn", 28)))
	if err != nil {
		t.Fatal(err)
	}
	want.Usage = furl.Usage{Input: 20, CacheRead: 400, CacheWrite: 40, CacheWrite1h: 20, Output: 28}
	// A message_delta does not split the cache writes, and the split of
	// message_start is kept.
	got.Usage.CacheWrite, got.Usage.CacheWrite1h = 40, 20
	if diff := sameReply(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzSplice: edits change only their target.
func FuzzSplice(f *testing.F) {
	for _, tc := range streamed {
		for _, e := range tc.events {
			f.Add([]byte(e), 5)
		}
		f.Add([]byte(tc.body), 1)
	}
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		before := string(data)
		e, readErr := readHead(data)
		if out, err := setIndex(data, n); err == nil {
			again, err := readHead(out)
			if e.Index = n; readErr == nil && (err != nil || again != e) {
				t.Fatalf("%s: %+v, %v, want %+v", out, again, err, e)
			}
		}
		u := furl.Usage{Input: n & 0xff, Output: n & 0xf}
		if out, err := setUsage(data, u); err == nil {
			if err := rawjson.Check(out); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			if twice, err := setUsage(out, u); err != nil || string(twice) != string(out) {
				t.Fatalf("again %s, first %s, %v", twice, out, err)
			}
		}
		if out, err := editContent(data, []json.RawMessage{json.RawMessage(`{}`)}, nil); err == nil {
			back, err := editContent(out, nil, func(i int) bool { return i == 0 })
			content := rawjson.Field(data, "content")
			empty := strings.TrimSpace(string(content[1:len(content)-1])) == ""
			if err != nil || !empty && string(back) != before {
				t.Fatalf("there and back: %v\n%s", err, cmp.Diff(before, string(back)))
			}
		}
		if string(data) != before {
			t.Fatal("the input changed")
		}
	})
}
