package anthropic

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

const (
	userText   = `{"role":"user","content":"fix it"}`
	callRaw    = `{"type":"tool_use","id":"t1","name":"Read","input":{"path": "a.go"},"caller":{"type":"direct"}}`
	resultRaw  = `{ "tool_use_id":"t1" ,"type":"tool_result","content":[{"type":"text","text":"package a"}],"is_error":true,"cache_control":{"type":"ephemeral"},"x":1.0 }`
	stepRaw    = `{"role":"assistant","id":"m1","content":[ {"type":"thinking","thinking":"hm","signature":"QUI="},` + "\r\n\t" + `{"type":"text","text":"Reading."}, ` + callRaw + ` ],"n":1.0}`
	answerRaw  = `{"role":"user","content":[` + resultRaw + `,{"type":"text","text":"go on"}]}`
	requestRaw = "{\"model\":\"m\", \"messages\": [\n  " + userText + " ,\n  " + stepRaw + ",\n  " + answerRaw + "\n ],\"max_tokens\": 12345678901234567890}"
)

func TestEncodeMessageAsRecorded(t *testing.T) {
	for _, raw := range []string{userText, stepRaw, answerRaw, `{"role":"gnome","content":[],"z":{}}`} {
		m := message(t, raw)
		raws, err := Codec.EncodeMessage(shownOf(m, 0))
		if err != nil || len(raws) != 1 || &raws[0][0] != &m.Raw[0] {
			t.Errorf("%s: got %s, %v", raw, raws, err)
		}
	}
}

func TestEncodeMessageEdited(t *testing.T) {
	image := `{"type":"image","source":{"type":"url","url":"https://x.example/a.png"},"cache_control":{"type":"ephemeral","ttl":"1h"}}`
	for _, test := range []struct {
		name, raw, from, to string // from becomes to, everything else is unchanged
		change              func(*furl.View)
	}{
		{"text", stepRaw, `"Reading."`, `"short \u0001 \"é\" <b>&"`, func(v *furl.View) { edit(v, 0, 1, "short \x01 \"é\" <b>&") }},
		{"string content", userText, `"fix it"`, `"hidden"`, func(v *furl.View) { edit(v, 0, 0, "hidden") }},
		{"result", answerRaw, `[{"type":"text","text":"package a"}]`, `"hidden"`, func(v *furl.View) { edit(v, 0, 0, "hidden") }},
		{"result with duplicate content", `{"role":"user","content":[{"type":"tool_result","content":"a","tool_use_id":"t","content":"b"}]}`,
			`"content":"b"`, `"content":"hidden"`, func(v *furl.View) { edit(v, 0, 0, "hidden") }},
		{"result without content", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t" }]}`,
			`"t" }`, `"t","content":"hidden" }`, func(v *furl.View) { edit(v, 0, 0, "hidden") }},
		{"empty text", answerRaw, `[{"type":"text","text":"package a"}]`, `"(empty)"`, func(v *furl.View) { edit(v, 0, 0, " \n") }},
		{"call with an object", stepRaw, `{"path": "a.go"}`, `{"path":1.0}`, func(v *furl.View) { edit(v, 0, 2, `{"path":1.0}`) }},
		{"call with a text", stepRaw, `{"path": "a.go"}`, `{"furl_shortened":"was \"long\""}`, func(v *furl.View) { edit(v, 0, 2, `was "long"`) }},
		{"call with a broken object", stepRaw, `{"path": "a.go"}`, `{"furl_shortened":"{\"a\":"}`, func(v *furl.View) { edit(v, 0, 2, `{"a":`) }},
		{"call with a list", stepRaw, `{"path": "a.go"}`, `{"furl_shortened":"[1]"}`, func(v *furl.View) { edit(v, 0, 2, `[1]`) }},
		{"call without a text", stepRaw, `{"path": "a.go"}`, `{}`, func(v *furl.View) { edit(v, 0, 2, ``) }},
		{"image", `{"role":"user","content":[` + image + `]}`, image,
			`{"type":"text","text":"an image was here","cache_control":{"type":"ephemeral","ttl":"1h"}}`, func(v *furl.View) { edit(v, 0, 0, "an image was here") }},
		{"document", `{"role":"user","content":[{"type":"document","source":{}}, {"type":"text","text":"x"}]}`, `{"type":"document","source":{}}`,
			`{"type":"text","text":"gone"}`, func(v *furl.View) { edit(v, 0, 0, "gone") }},
		{"first block hidden", stepRaw, `{"type":"thinking","thinking":"hm","signature":"QUI="},` + "\r\n\t", ``, func(v *furl.View) { hide(v, 0, 0) }},
		{"middle block hidden", stepRaw, ",\r\n\t" + `{"type":"text","text":"Reading."}`, ``, func(v *furl.View) { hide(v, 0, 1) }},
		{"last block hidden", answerRaw, `,{"type":"text","text":"go on"}`, ``, func(v *furl.View) { hide(v, 0, 1) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := message(t, test.raw)
			v := viewOf([]furl.Message{*m})
			test.change(v)
			if n := strings.Count(test.raw, test.from); n != 1 {
				t.Fatalf("%q occurs %d times in the message", test.from, n)
			}
			want := strings.Replace(test.raw, test.from, test.to, 1)
			if got := encodeOne(t, v.Messages[0]); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestEncodeMessageOfNothing(t *testing.T) {
	v := viewOf([]furl.Message{*message(t, `{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"b"}]}`)})
	hide(v, 0, 0)
	if got := encodeOne(t, v.Messages[0]); got != "" {
		t.Errorf("got %s, want nothing", got)
	}
}

func TestEncodeMessageErrors(t *testing.T) {
	m := message(t, `{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"b"},{"type":"odd"}]}`)
	for j, want := range []string{
		"content.0: the text of a block of kind thinking cannot be replaced",
		"content.1: the text of a block of kind opaque cannot be replaced",
	} {
		v := viewOf([]furl.Message{*m})
		edit(v, 0, j, "x")
		if _, err := Codec.EncodeMessage(v.Messages[0]); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	s := shownOf(m, 0)
	s.Blocks[0], s.Blocks[1] = s.Blocks[1], s.Blocks[0]
	s.Blocks = s.Blocks[:2:2]
	s.Blocks[0].By = 1
	if _, err := Codec.EncodeMessage(s); err == nil {
		t.Error("blocks out of order: no error")
	}
}

func TestEncodeRequestIdentity(t *testing.T) {
	req := decode(t, requestRaw)
	out, err := Codec.EncodeRequest(req, viewOf(req.Messages))
	if err != nil || &out[0] != &req.Body[0] || len(out) != len(req.Body) {
		t.Errorf("not the body itself: %v\n%s", err, out)
	}
	empty := decode(t, `{"messages":[ ]}`)
	if out, err := Codec.EncodeRequest(empty, viewOf(nil)); err != nil || string(out) != `{"messages":[ ]}` {
		t.Errorf("empty list: %s, %v", out, err)
	}
}

func TestEncodeRequest(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*furl.View)
		want   func(string) string
	}{
		{"result masked", func(v *furl.View) { edit(v, 2, 0, "hidden") },
			func(s string) string {
				return strings.Replace(s, `[{"type":"text","text":"package a"}]`, `"hidden"`, 1)
			}},
		{"step hidden under a marker", func(v *furl.View) { hide(v, 2, 0); mark(v, 1, 2, "1 step hidden") },
			func(s string) string {
				s = strings.Replace(s, " ,\n  "+stepRaw, `,{"role":"user","content":[{"type":"text","text":"1 step hidden"`+cutMark+`}]}`, 1)
				return strings.Replace(s, resultRaw+",", "", 1)
			}},
		{"first message hidden", func(v *furl.View) { v.Messages = v.Messages[1:] },
			func(s string) string { return strings.Replace(s, userText+" ,\n  ", "", 1) }},
		{"last message hidden", func(v *furl.View) { v.Messages = v.Messages[:2] },
			func(s string) string { return strings.Replace(s, ",\n  "+answerRaw, "", 1) }},
		{"marker at the start", func(v *furl.View) { mark(v, 0, 0, "x") },
			func(s string) string {
				return strings.Replace(s, userText, `{"role":"user","content":[{"type":"text","text":"x"`+cutMark+`}]},`+userText, 1)
			}},
		{"marker at the end", func(v *furl.View) { mark(v, 3, 3, "x") },
			func(s string) string {
				return strings.Replace(s, answerRaw, answerRaw+`,{"role":"user","content":[{"type":"text","text":"x"}]}`, 1)
			}},
		{"everything hidden under a marker", func(v *furl.View) { mark(v, 0, 3, "x") },
			func(s string) string {
				return "{\"model\":\"m\", \"messages\": [\n  {\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"" + cutMark + "}]}\n ],\"max_tokens\": 12345678901234567890}"
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := decode(t, requestRaw)
			v := viewOf(req.Messages)
			test.change(v)
			got, err := Codec.EncodeRequest(req, v)
			if err != nil {
				t.Fatal(err)
			}
			if want := test.want(requestRaw); string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if string(req.Body) != requestRaw {
				t.Error("the body changed")
			}
			if err := rawjson.Check(got); err != nil {
				t.Error(err)
			}
		})
	}
}

// The recorded messages are an earlier form of the incoming ones: the view is
// applied to the incoming bytes.
func TestEncodeRequestIntoAnotherFormOfTheMessages(t *testing.T) {
	recorded := decode(t, requestRaw)
	show := func(change func(*furl.View)) *furl.View {
		v := viewOf(recorded.Messages)
		change(v)
		return v
	}
	for _, test := range []struct {
		name, body, want string
		view             *furl.View
	}{
		{"thinking omitted by the client, result masked",
			`{"messages":[{"role":"user","content":[{"type":"text","text":"fix it"}]},{"role":"assistant","content":[{"type":"text","text":"Reading."},` + callRaw + `]},` + answerRaw + `]}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"fix it"}]},{"role":"assistant","content":[{"type":"text","text":"Reading."},` + callRaw + `]},` +
				strings.Replace(answerRaw, `[{"type":"text","text":"package a"}]`, `"hidden"`, 1) + `]}`,
			show(func(v *furl.View) { edit(v, 2, 0, "hidden") })},
		{"thinking hidden in the view and omitted by the client, call masked",
			`{"messages":[` + userText + `,{"role":"assistant","content":[{"type":"text","text":"Reading."},` + callRaw + `]},` + answerRaw + `]}`,
			`{"messages":[` + userText + `,{"role":"assistant","content":[{"type":"text","text":"Reading."},` + strings.Replace(callRaw, `{"path": "a.go"},"caller":{"type":"direct"}`, `{},"caller":{"type":"direct"}`+cutMark, 1) + `]},` + answerRaw + `]}`,
			show(func(v *furl.View) { edit(v, 1, 2, "{}"); hide(v, 1, 0) })},
		{"result cleared by the client to what the view shows",
			`{"messages":[` + userText + `,` + stepRaw + `,` + strings.Replace(answerRaw, "package a", "[cleared]", 1) + `]}`,
			`{"messages":[` + userText + `,` + stepRaw + `,` + strings.Replace(answerRaw, "package a", "[cleared]", 1) + `]}`,
			show(func(v *furl.View) { edit(v, 2, 0, "[cleared]") })},
		{"string content where a block was recorded",
			`{"messages":[{"role":"user","content":[ {"type":"text","text":"fix it"} ]},` + stepRaw + `,` + answerRaw + `]}`,
			`{"messages":[{"role":"user","content":[ {"type":"text","text":"hidden"} ]},` + stepRaw + `,` + answerRaw + `]}`,
			show(func(v *furl.View) { edit(v, 0, 0, "hidden") })},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := decode(t, test.body)
			got, err := Codec.EncodeRequest(req, test.view)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestEncodeRequestErrors(t *testing.T) {
	req := decode(t, requestRaw)
	for name, v := range map[string]*furl.View{
		"nothing shown": {},
		"too far":       {Messages: []furl.Shown{shownOf(&req.Messages[0], 3)}},
		"out of order":  {Messages: []furl.Shown{shownOf(&req.Messages[1], 1), shownOf(&req.Messages[0], 0)}},
		"another message": func() *furl.View {
			v := viewOf(req.Messages)
			v.Messages[1].Index = 2
			v.Messages = v.Messages[:2]
			edit(v, 1, 1, "x")
			return v
		}(),
	} {
		if out, err := Codec.EncodeRequest(req, v); err == nil {
			t.Errorf("%s: no error, but %s", name, out)
		}
	}
}

// Blocks that do not match the bytes, as from a damaged store, are an error
// and do not panic.
func TestEncodeMessageOfWrongBlocks(t *testing.T) {
	raw := []byte(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`)
	for name, at := range map[string][2]furl.Block{
		"overlapping":     {{Start: 5, End: 20}, {Start: 2, End: 9}},
		"outside":         {{Start: 0, End: 5}, {Start: 5, End: 500}},
		"without bytes":   {{}, {}},
		"back to front":   {{Start: 20, End: 10}, {Start: 20, End: 30}},
		"below the start": {{Start: -1, End: 4}, {Start: 5, End: 6}},
	} {
		m := &furl.Message{Role: furl.RoleUser, Format: furl.FormatAnthropic, Raw: raw, Blocks: at[:]}
		s := furl.Shown{Msg: m, Blocks: []furl.ShownBlock{{Block: &m.Blocks[1], By: 1, Text: "x"}}}
		if _, err := Codec.EncodeMessage(s); err == nil {
			t.Errorf("%s: encoded", name)
		}
	}
}
