package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

var chatSeeds = []string{
	chatBody,
	`{"messages":[{"role":"user","content":"a","content":[{"type":"text","text":"\ud83d\ude00\/"}],"unknown":{"n":1.0,"e":1E+2,"big":123456789012345678901234567890}}],"messages":[{"role":"user","content":"b"}],"model":"m"}`,
	"{\r\n\t\"messages\" : [ { \"tool_call_id\":\"c\" , \"role\" : \"tool\" , \"content\" : [ {\"text\":\"a\",\"type\":\"text\"} ,\n {\"type\":\"text\",\"text\":\"\xff\\ud800\"} ] } ] }",
	`{"messages":[{"role":"assistant","reasoning_content":"hm","reasoning":"hm","reasoning_details":[{"data":"QUJD"}],"content":[{"type":"refusal","refusal":"no"},"a",1],"refusal":"no","audio":{"id":"a"},"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"c2","type":"custom","custom":{"name":"f","input":"x"}},{"id":"c3","type":"odd","odd":1}],"function_call":{"name":"f","arguments":""}}]}`,
	`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + onePixel + `"},"cache_control":{}},{"type":"file","file":{"file_data":"data:,x"}},{"type":"input_audio","input_audio":{"data":"","format":"mp3"}},{"type":"x","y":[[[{}]]]}]},{},{"role":null,"content":null},{"role":"function","name":"f","content":1}]}`,
	`{"messages":[],"tools":[{"type":"function","function":{"name":"f"}},1,"x"],"functions":null,"stream":1,"model":2,"max_tokens":"3"}`,
	`{"messages":null}`, `{}`, `{"messages":{}}`, `[`, `{"messages":[{"content":{"a":"b"}}]}`,
}

var responsesSeeds = []string{
	`{"input":[` + strings.Join(steps, " ,\n") + `]}`,
	`{"input":"hi \u0041","instructions":"x","tools":[]}`,
	`{"input" : [ {"role":"user","content":[{"type":"input_text","text":"a","prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"input_image","image_url":"data:image/png;base64,` + onePixel + `"},{"type":"input_file","file_id":"f"}]} , {"type":"custom_tool_call","call_id":"c","name":"p","input":"x","id":"ctc_1"},{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}]} ] }`,
	`{"input":[{"type":"local_shell_call","id":"l","action":{"type":"exec","command":["a"]}},{"type":"local_shell_call_output","id":"l","output":"x"},{"type":"shell_call","call_id":"s","action":{"commands":["a"]}},{"type":"shell_call_output","call_id":"s","output":[{"stdout":"a","stderr":"b","outcome":{"type":"exit","exit_code":1}},1]},{"type":"apply_patch_call","call_id":"p","operation":{"type":"update_file","path":"a","diff":"b"}},{"type":"apply_patch_call_output","call_id":"p","status":"failed"}]}`,
	`{"input":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"}],"content":null,"encrypted_content":"QUJD"},{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[],"logprobs":[1.0]}],"id":"msg_2"},{"type":"compaction","encrypted_content":"x"},{"type":"item_reference","id":"y"},{"type":"compaction_trigger"}]}`,
	`{"input":[{"type":"function_call","type":"message","content":"a"},{},{"type":1,"id":2,"call_id":3,"output":4,"arguments":5},{"type":"function_call_output","call_id":"c","output":{"a":1}},{"type":"computer_call_output","call_id":"c","output":{"image_url":"x"}}],"input":"y"}`,
	`{"previous_response_id":"r","input":[]}`, `{"input":null}`, `{}`, `{"input":["a"]}`,
}

func FuzzChat(f *testing.F) {
	fuzz(f, Chat, chatSeeds)
}

func FuzzResponses(f *testing.F) {
	fuzz(f, Responses, responsesSeeds)
}

// fuzz checks a codec's guarantees about bytes: on a request, on a view of
// all of it, and on a view that changes one block.
func fuzz(f *testing.F, c protocol.Codec, seeds []string) {
	for _, s := range seeds {
		f.Add([]byte(s), uint16(0), "text")
		f.Add([]byte(s), uint16(1), `{"a":"[short]"}`)
		f.Add([]byte(s), uint16(5), "")
	}
	f.Fuzz(func(t *testing.T, body []byte, pick uint16, text string) {
		req, err := c.DecodeRequest(slices.Clone(body))
		if err != nil {
			var at *rawjson.Error
			if !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(body) {
				t.Fatalf("%v: expected an offset inside the body", err)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatal("decoded invalid JSON")
		}
		unchanged(t, c, req)
		if err := c.Validate(req, furl.Model{}); err != nil && refusal(t, err).Message == "" {
			t.Fatal("a refusal without a text")
		}
		if len(req.Messages) > 0 && !isStateful(req) {
			if text == "" {
				text = "-" // an empty text is never shown
			}
			changed(t, c, req, int(pick), strings.ToValidUTF8(text, "?"))
		}
	})
}

// unchanged: messages that a view does not change keep every byte.
func unchanged(t *testing.T, c protocol.Codec, req *protocol.Request) {
	v := identity(req)
	got, err := c.EncodeRequest(req, v)
	if err != nil || len(got) != len(req.Body) || &got[0] != &req.Body[0] {
		t.Fatalf("the identity view gives %s, %v", got, err)
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		if at := req.Offsets[i]; len(m.Raw) == 0 || &m.Raw[0] != &req.Body[at] {
			t.Fatalf("message %d is not at its offset", i)
		}
		if len(m.Blocks) == 0 {
			t.Fatalf("message %d has no blocks", i)
		}
		for _, b := range m.Blocks {
			if b.Start < 0 || b.End > len(m.Raw) || b.End > b.Start && !json.Valid(m.Raw[b.Start:b.End]) {
				t.Fatalf("message %d: a %v is at %d to %d", i, b.Kind, b.Start, b.End)
			}
			if b.Kind == furl.KindCall && !json.Valid(b.Args) {
				t.Fatalf("message %d: arguments %q", i, b.Args)
			}
		}
		alone, err := c.DecodeMessage(m.Raw)
		if err != nil || !reflect.DeepEqual(alone, m) {
			t.Fatalf("message %d decodes to %+v alone (%v), to %+v in the request", i, alone, err, m)
		}
		elems, err := c.EncodeMessage(v.Messages[i])
		if err != nil || len(elems) != 1 || !bytes.Equal(elems[0], asItem(m.Raw)) {
			t.Fatalf("message %d encodes to %s, %v", i, elems, err)
		}
	}
}

// changed shows text for one block and compares the resulting request.
func changed(t *testing.T, c protocol.Codec, req *protocol.Request, pick int, text string) {
	v := identity(req)
	i := pick % len(req.Messages)
	m := &req.Messages[i]
	j := pick / len(req.Messages) % len(m.Blocks)
	if k := m.Blocks[j].Kind; k == furl.KindThinking || k == furl.KindOpaque {
		hide(&v.Messages[i], j)
	} else {
		edit(&v.Messages[i], j, text)
	}
	got, err := c.EncodeRequest(req, v)
	if err != nil {
		t.Fatal(err)
	}
	after, err := c.DecodeRequest(got)
	if err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	before, end := req.Offsets[i], req.Offsets[i]+len(m.Raw)
	if lost := len(req.Messages) - len(after.Messages); lost != 0 { // all of its blocks are hidden
		most := 1
		if c == Responses && i > 0 && isReasoning(&req.Messages[i-1]) {
			most = 2 // with its output
		}
		if b := m.Blocks[j]; len(m.Blocks) > 1 || b.Kind != furl.KindThinking && b.Kind != furl.KindOpaque || lost < 1 || lost > most {
			t.Fatalf("%d messages become %d: %s", len(req.Messages), len(after.Messages), got)
		}
		return
	}
	// Elsewhere, only the ids of items after hidden reasoning change.
	if gone := m.Blocks[j].Kind == furl.KindThinking; !gone || c == Chat {
		if !bytes.Equal(got[:before], req.Body[:before]) || !bytes.Equal(got[len(got)-(len(req.Body)-end):], req.Body[end:]) {
			t.Fatalf("bytes outside message %d change:\n%s\n%s", i, req.Body, got)
		}
	}
	a := &after.Messages[i]
	if n := len(a.Blocks); n != len(v.Messages[i].Blocks) && n != 1 {
		t.Fatalf("%d blocks, want %d: %s", n, len(v.Messages[i].Blocks), a.Raw)
	}
	if len(v.Messages[i].Blocks) < len(m.Blocks) {
		return
	}
	for k := range min(len(a.Blocks), len(m.Blocks)) {
		if k == j {
			shows(t, &m.Blocks[k], &a.Blocks[k], text)
		} else if x, y := plain(m.Blocks[k : k+1])[0], plain(a.Blocks[k : k+1])[0]; len(a.Blocks) == len(m.Blocks) && !reflect.DeepEqual(x, y) {
			t.Fatalf("block %d becomes %+v", k, y)
		}
	}
}

// shows checks that a block has the text and its other fields unchanged.
func shows(t *testing.T, old, b *furl.Block, text string) {
	t.Helper()
	switch {
	case old.Kind == furl.KindText && (b.Kind != furl.KindText || b.Text != text),
		old.Kind == furl.KindImage && (b.Kind != furl.KindText || b.Text != text),
		old.Kind == furl.KindResult && (b.Kind != furl.KindResult || b.Text != text || b.ID != old.ID),
		old.Kind == furl.KindCall && (b.Kind != furl.KindCall || b.ID != old.ID || b.Name != old.Name || !json.Valid(b.Args)):
		t.Fatalf("with text %q\n%+v becomes\n%+v", text, old, b)
	case b.CacheMark != old.CacheMark:
		t.Fatal("the cache breakpoint has changed")
	}
}
