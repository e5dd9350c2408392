package openai

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

func TestReadChunk(t *testing.T) {
	for data, want := range map[string]chatChunk{
		says(fragment(1, `"id":"call_1","type":"function","function":{"name":"memory_get","arguments":""}`)):   {ID: "chatcmpl-1", Calls: []chunkCall{{Index: 1, ID: "call_1", Name: "memory_get"}}},
		says(`{"role":"assistant","content":"","tool_calls":[{"index":0,"custom":{"name":"p"}},{"index":1}]}`): {ID: "chatcmpl-1", Calls: []chunkCall{{Name: "p"}, {Index: 1}}},
		says(`{"role":"assistant","content":null,"refusal":null}`):                                             {ID: "chatcmpl-1"},
		says(`{"content":"x"}`):           {ID: "chatcmpl-1", Words: true},
		says(`{"reasoning_content":"x"}`): {ID: "chatcmpl-1", Words: true},
		chunk(`{}`, "tool_calls"):         {ID: "chatcmpl-1", Finish: "tool_calls"},
		usageChunk:                        {ID: "chatcmpl-1", Usage: true},
		`{"choices":[{"index":1,"delta":{"tool_calls":[{"index":2}]},"finish_reason":"stop"},null]}`: {Calls: []chunkCall{{Choice: 1, Index: 2}}},
	} {
		got, err := readChunk([]byte(data))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", data, err, diff)
		}
	}
	if _, err := readChunk([]byte(`{"id":`)); err == nil {
		t.Error("half a chunk: no error")
	}
}

func TestEditChunk(t *testing.T) {
	in := `{ "id":"a", "x":1.0, "choices":[ {"index":0,"delta":{ "content":"\u00e9","tool_calls":[ {"index":0,"id":"p"} , {"index":1,"y":2e3}] },"finish_reason":"tool_calls" } ],"usage":null }`
	for _, tc := range []struct {
		name string
		edit chunkEdit
		want string
	}{
		{"nothing", chunkEdit{}, in},
		{"nothing that matters", chunkEdit{Call: func(c chunkCall) int { return c.Index }, Usage: &furl.Usage{Input: 1}}, in},
		{"the id", chunkEdit{ID: "b\""}, strings.Replace(in, `"id":"a"`, `"id":"b\""`, 1)},
		{"one call moved, one out", chunkEdit{Call: func(c chunkCall) int {
			if c.ID == "p" {
				return -1
			}
			return 5
		}}, strings.Replace(in, `[ {"index":0,"id":"p"} , {"index":1,"y":2e3}]`, `[ {"index":5,"y":2e3}]`, 1)},
		{"all calls out, open", chunkEdit{Call: func(chunkCall) int { return -1 }, Open: true},
			strings.NewReplacer(`,"tool_calls":[ {"index":0,"id":"p"} , {"index":1,"y":2e3}]`, ``, `"finish_reason":"tool_calls"`, `"finish_reason":null`).Replace(in)},
	} {
		got, err := editChunk([]byte(in), tc.edit)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", tc.name, got, err, tc.want)
		}
	}
	for _, bad := range []string{`{`, `[]`, ``} {
		if got, err := editChunk([]byte(bad), chunkEdit{ID: "x"}); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

func TestSetUsage(t *testing.T) {
	u := furl.Usage{Input: 1, CacheRead: 2, CacheWrite: 3, Output: 5, Reasoning: 4}
	for _, tc := range []struct{ in, want string }{
		{`{"choices":[],"usage":` + chatUsage + `}`, `{"choices":[],"usage":{"prompt_tokens":6,"completion_tokens":5,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":4}}}`},
		{`{"usage":{ "prompt_tokens":9 , "z":1.0}}`, `{"usage":{ "prompt_tokens":6 , "z":1.0,"completion_tokens":5,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":3},"completion_tokens_details":{"reasoning_tokens":4}}}`},
		{`{"type":"response.completed","response":{"usage":` + respUsage + `}}`, `{"type":"response.completed","response":{"usage":{"input_tokens":6,"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":3},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":11}}}`},
		{says(`{}`), says(`{}`)},
	} {
		got, err := setUsage([]byte(tc.in), u)
		if err != nil || string(got) != tc.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, tc.want)
		}
		if back, err := DecodeUsage(got); err != nil || back != (furl.Usage{}) && back != u {
			t.Errorf("%s reads as %+v, %v", got, back, err)
		}
	}
	if _, err := setUsage([]byte(`{`), u); err == nil {
		t.Error("half a body: no error")
	}
}

func TestReadAndEditEvent(t *testing.T) {
	in := `{ "type":"response.output_item.done", "sequence_number": 4,"output_index":2 ,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"memory_get","output_index":9}, "n":1.0}`
	e, err := readHead([]byte(in))
	if want := (eventHead{Type: "response.output_item.done", Output: 2, Item: "function_call", ID: "fc_1", CallID: "call_1", Name: "memory_get"}); err != nil || e != want {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := readHead([]byte(respDelta("output_text.delta", 3, 0, "delta", "x"))); err != nil || e.Output != 3 || e.ID != "x" || e.Item != "" {
		t.Errorf("%+v, %v", e, err)
	}
	got, err := editEvent([]byte(in), eventEdit{Sequence: new(40), Output: new(0), ResponseID: "r", Drop: func(int) bool { return true }})
	if want := strings.NewReplacer(`: 4,`, `: 40,`, `"output_index":2`, `"output_index":0`).Replace(in); err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	end := responseEnd("completed", "null", reason1, call1)
	got, err = editEvent([]byte(end), eventEdit{
		ResponseID: "resp_0", Before: []json.RawMessage{json.RawMessage(message1)}, Drop: func(i int) bool { return i == 1 }, Usage: &furl.Usage{Input: 20, CacheRead: 100, Output: 31, Reasoning: 8},
	})
	want := strings.NewReplacer(`"resp_1"`, `"resp_0"`, `[`+reason1+`,`+call1+`]`, `[`+message1+`,`+reason1+`]`, `"output_tokens":30`, `"output_tokens":31`, `150`, `151`).Replace(end)
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	for _, bad := range []string{`{`, `7`} {
		if got, err := editEvent([]byte(bad), eventEdit{}); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
		if _, err := readHead([]byte(bad)); err == nil {
			t.Errorf("%s: read", bad)
		}
	}
}

func TestEditBodies(t *testing.T) {
	body := response("completed", "null", message1, call1)
	got, err := withOutput([]byte(body), []json.RawMessage{json.RawMessage(new1)}, func(i int) bool { return i == 1 })
	if want := response("completed", "null", new1, message1); err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	calls := `"tool_calls":[{"id":"a"}, {"id":"b"}]`
	for _, tc := range []struct {
		message, before, drop, want string
	}{
		{`{"content":null, ` + calls + `}`, "", "", `{"content":null, ` + calls + `}`},
		{`{"content":null, ` + calls + `}`, "So: ", "0", `{"content":"So: ", "tool_calls":[{"id":"b"}]}`},
		{`{"content":"x", ` + calls + `}`, "So: ", "01", `{"content":"So: x"}`},
		{`{"content":[{"type":"text","text":"x"}]}`, "So: ", "01", `{"content":[{"type":"text","text":"So: "},{"type":"text","text":"x"}]}`},
	} {
		got, err := editChoice([]byte(completion(tc.message, "stop")), tc.before, func(i int) bool { return strings.Contains(tc.drop, string(rune('0'+i))) })
		if want := completion(tc.want, "stop"); err != nil || string(got) != want {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
	for _, bad := range []string{`{`, `{}`, `{"output":1,"choices":[{}]}`} {
		if got, err := withOutput([]byte(bad), nil, nil); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
		if got, err := editChoice([]byte(bad), "", nil); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

// A reply with a call held back and the reply that follows it form one stream
// in which the client finds nothing missing.
func TestTwoChatStreamsAsOne(t *testing.T) {
	first := []string{
		says(`{"role":"assistant","content":"Let me recall. "}`), says(fragment(0, `"id":"f","type":"function","function":{"name":"memory_get","arguments":"{}"}`)),
		chunk(`{}`, "tool_calls"), usageChunk, done,
	}
	second := []string{
		strings.ReplaceAll(says(`{"role":"assistant","content":"It was 7."}`), "chatcmpl-1", "chatcmpl-2"), says(fragment(0, `"id":"c","type":"function","function":{"name":"read","arguments":"{}"}`)),
		chunk(`{}`, "tool_calls"), usageChunk, done,
	}
	var out []string
	var used furl.Usage
	own := map[int]bool{}
	for round, list := range [][]string{first, second} {
		reply, err := assemble(t, Chat, events(list...))
		if err != nil {
			t.Fatal(err)
		}
		used = used.Add(reply.Usage)
		clear(own)
		for _, data := range list {
			if data == done {
				continue
			}
			c, err := readChunk([]byte(data))
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range c.Calls {
				if call.Name == "memory_get" {
					own[call.Index] = true
				}
			}
			if round == 0 && (c.Usage || len(own) > 0 && !c.Words) {
				continue
			}
			raw, err := editChunk([]byte(data), chunkEdit{ID: "chatcmpl-1", Usage: &used, Call: func(c chunkCall) int {
				if own[c.Index] {
					return -1
				}
				return c.Index
			}})
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(raw))
		}
	}
	got, err := assemble(t, Chat, events(append(out, done)...))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.Join(out, ""), "chatcmpl-2") || len(out) != 5 {
		t.Errorf("sent %d chunks:\n%s", len(out), strings.Join(out, "\n"))
	}
	want := decodeReply(t, Chat, 200, completion(`{"role":"assistant","content":"Let me recall. It was 7.","tool_calls":[{"id":"c","type":"function","function":{"name":"read","arguments":"{}"}}]}`, "tool_calls"))
	want.Usage = furl.Usage{Input: 40, CacheRead: 200, Output: 60, Reasoning: 16}
	if diff := sameReply(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTwoResponsesStreamsAsOne(t *testing.T) {
	mine := `{"id":"fc_9","type":"function_call","status":"completed","call_id":"call_9","name":"memory_get","arguments":"{}"}`
	first := []string{created, added(0, reason1), itemDone(0, reason1), added(1, mine), itemDone(1, mine), responseEnd("completed", "null", reason1, mine)}
	second := []string{strings.ReplaceAll(created, "resp_1", "resp_2"), added(0, message1), itemDone(0, message1), strings.ReplaceAll(responseEnd("completed", "null", message1), "resp_1", "resp_2")}
	var out []string
	var used furl.Usage
	var sent []json.RawMessage // items the client has
	sequence := 0
	for round, list := range [][]string{first, second} {
		reply, err := assemble(t, Responses, events(list...))
		if err != nil {
			t.Fatal(err)
		}
		used = used.Add(reply.Usage)
		before := len(sent)
		for i, data := range list {
			e, err := readHead([]byte(data))
			if err != nil {
				t.Fatal(err)
			}
			if e.Name == "memory_get" || i == len(list)-1 && round == 0 || i == 0 && round > 0 {
				continue
			}
			edit := eventEdit{Sequence: new(sequence), ResponseID: "resp_1", Usage: &used}
			if e.Output >= 0 {
				edit.Output = new(e.Output + before)
			}
			if e.Type == "response.completed" {
				edit.Before = sent[:before]
			}
			raw, err := editEvent([]byte(data), edit)
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == "response.output_item.done" {
				sent = append(sent, rawjson.Field(raw, "item"))
			}
			out = append(out, string(raw))
			sequence++
		}
	}
	got, err := assemble(t, Responses, events(out...))
	if err != nil {
		t.Fatal(err)
	}
	want := decodeReply(t, Responses, 200, response("completed", "null", reason1, message1))
	want.Usage = furl.Usage{Input: 40, CacheRead: 200, Output: 60, Reasoning: 16}
	if diff := sameReply(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// The items in the last event are those that were streamed.
	last, err := assemble(t, Responses, events(out[len(out)-1]))
	if diff := sameReply(want, last); diff != "" || err != nil {
		t.Errorf("the last event alone, %v, -want +got:\n%s", err, diff)
	}
	for i, data := range out {
		if n, _ := rawjson.NewReader(rawjson.Field([]byte(data), "sequence_number")).Int(); n != i {
			t.Errorf("event %d has number %d", i, n)
		}
	}
	if slices.ContainsFunc(out, func(s string) bool { return strings.Contains(s, "memory_get") || strings.Contains(s, "resp_2") }) {
		t.Errorf("sent %s", out)
	}
}

// FuzzEdits: edits keep JSON valid, and edits without effect change nothing.
func FuzzEdits(f *testing.F) {
	for _, tc := range streamed {
		for _, e := range tc.events {
			f.Add([]byte(e), 3)
		}
		f.Add([]byte(tc.body), 1)
	}
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		before := string(data)
		check := func(what string, out []byte, err error) {
			t.Helper()
			if err != nil {
				return
			}
			if err := rawjson.Check(out); err != nil {
				t.Fatalf("%s: %v\n%s", what, err, out)
			}
		}
		if out, err := editChunk(data, chunkEdit{Call: func(c chunkCall) int { return c.Index }}); err == nil && string(out) != before {
			t.Fatalf("an edit without effect:\n%s\n%s", before, out)
		}
		out, err := editChunk(data, chunkEdit{ID: "x", Open: true, Usage: &furl.Usage{Input: n & 7}, Call: func(c chunkCall) int { return c.Index*n - 1 }})
		check("chunk", out, err)
		out, err = editEvent(data, eventEdit{Sequence: &n, Output: &n, ResponseID: "y", Before: []json.RawMessage{json.RawMessage("{}")}, Drop: func(i int) bool { return i == n }})
		check("event", out, err)
		out, err = withOutput(data, []json.RawMessage{json.RawMessage("{}")}, func(i int) bool { return i == n })
		check("output", out, err)
		out, err = editChoice(data, "before", func(i int) bool { return i == n })
		check("choice", out, err)
		_, _ = readChunk(data)
		_, _ = readHead(data)
		if string(data) != before {
			t.Fatal("the input changed")
		}
	})
}
