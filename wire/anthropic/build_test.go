package anthropic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
)

// foreign is a message as another codec would decode it.
func foreign(role furl.Role, raw string, blocks ...furl.Block) *furl.Message {
	m := &furl.Message{Role: role, Format: furl.FormatChat, Raw: []byte(raw), Blocks: blocks}
	m.Seal()
	return m
}

func TestEncodeForeignMessages(t *testing.T) {
	picture := `{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD","detail":"low"}}`
	for _, test := range []struct {
		name string
		msg  *furl.Message
		want string
	}{
		{"marker", furl.TextMessage(furl.RoleUser, "3 steps <hidden>"), `{"role":"user","content":[{"type":"text","text":"3 steps <hidden>"}]}`},
		{"empty marker", furl.TextMessage(furl.RoleUser, ""), ""},
		{"call", foreign(furl.RoleAssistant, "{}",
			furl.Block{Kind: furl.KindThinking, Text: "hm", Signature: 7},
			furl.Block{Kind: furl.KindText, Text: "Reading."},
			furl.Block{Kind: furl.KindCall, ID: "call_1", Name: "read", Args: []byte(`{"path":"a\u0062"}`)},
			furl.Block{Kind: furl.KindCall, ID: "call_2", Name: "patch", Args: []byte(`"*** Begin\n"`)},
			furl.Block{Kind: furl.KindCall, ID: "call_3", Name: "now", Args: []byte(`not json`)}),
			`{"role":"assistant","content":[{"type":"text","text":"Reading."},{"type":"tool_use","id":"call_1","name":"read","input":{"path":"a\u0062"}},` +
				`{"type":"tool_use","id":"call_2","name":"patch","input":{"input":"*** Begin\n"}},{"type":"tool_use","id":"call_3","name":"now","input":{"input":"not json"}}]}`},
		{"only thinking", foreign(furl.RoleAssistant, "{}", furl.Block{Kind: furl.KindThinking, Text: "hm"}), ""},
		{"result", foreign(furl.RoleTool, "{}", furl.Block{Kind: furl.KindResult, ID: "call_1", Text: "package a", Error: true}),
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"package a","is_error":true}]}`},
		{"empty result", foreign(furl.RoleTool, "{}", furl.Block{Kind: furl.KindResult, ID: "call_1"}),
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"(empty)"}]}`},
		{"instructions", foreign(furl.RoleDeveloper, "{}", furl.Block{Kind: furl.KindText, Text: "Be brief."}), `{"role":"user","content":[{"type":"text","text":"Be brief."}]}`},
		{"opaque", foreign(furl.RoleAssistant, "{}", furl.Block{Kind: furl.KindOpaque, Name: "web_search_call", Text: "furl a sail"}, furl.Block{Kind: furl.KindOpaque, Name: "x"}),
			`{"role":"assistant","content":[{"type":"text","text":"furl a sail"}]}`},
		{"image with its bytes", foreign(furl.RoleUser, picture, furl.Block{Kind: furl.KindImage, End: len(picture), Media: []furl.Media{{Kind: furl.KindImage}}}),
			`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]}`},
		{"image without", foreign(furl.RoleUser, `{"x":1}`, furl.Block{Kind: furl.KindImage, End: 7, Media: []furl.Media{{Kind: furl.KindImage, Type: "image/png", Width: 8, Height: 6}}}),
			`{"role":"user","content":[{"type":"text","text":"[image image/png 8x6]"}]}`},
		{"result with an image", foreign(furl.RoleTool, picture, furl.Block{Kind: furl.KindResult, ID: "c", Text: "seen", End: len(picture), Media: []furl.Media{{Kind: furl.KindImage}}}),
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"seen"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]}]}`},
		{"text before a result", foreign(furl.RoleUser, "{}", furl.Block{Kind: furl.KindText, Text: "a"}, furl.Block{Kind: furl.KindResult, ID: "c", Text: "b"}),
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"b"},{"type":"text","text":"a"}]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := encodeOne(t, shownOf(test.msg, 0))
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if got != "" {
				message(t, got)
			}
		})
	}
}

func TestEncodeForeignEdited(t *testing.T) {
	m := foreign(furl.RoleAssistant, "{}", furl.Block{Kind: furl.KindCall, ID: "c", Name: "write", Args: []byte(`{"body":"long"}`)})
	v := viewOf([]furl.Message{*m, *foreign(furl.RoleTool, "{}", furl.Block{Kind: furl.KindResult, ID: "c", Text: "long", Media: []furl.Media{{}}}),
		*foreign(furl.RoleUser, "{}", furl.Block{Kind: furl.KindImage, Media: []furl.Media{{}}})})
	edit(v, 0, 0, `{"body":"cut"}`)
	edit(v, 1, 0, "hidden")
	edit(v, 2, 0, "no image")
	for i, want := range []string{
		`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"write","input":{"body":"cut"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"hidden"}]}`,
		`{"role":"user","content":[{"type":"text","text":"no image"}]}`,
	} {
		if got := encodeOne(t, v.Messages[i]); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestEncodeMessagesJoinsResults(t *testing.T) {
	call := func(id string) furl.Block {
		return furl.Block{Kind: furl.KindCall, ID: id, Name: "f", Args: []byte(`{}`)}
	}
	result := func(id string) *furl.Message {
		return foreign(furl.RoleTool, "{}", furl.Block{Kind: furl.KindResult, ID: id, Text: id})
	}
	user := func(s string) *furl.Message {
		return foreign(furl.RoleUser, "{}", furl.Block{Kind: furl.KindText, Text: s})
	}
	rawResult := func(id string) string {
		return `{"role":"user" ,"content":[ {"type":"tool_result","tool_use_id":"` + id + `","content":"x"}]}`
	}
	calls := `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]}`
	resA, resB := `{"type":"tool_result","tool_use_id":"a","content":"a"}`, `{"type":"tool_result","tool_use_id":"b","content":"b"}`
	for _, test := range []struct {
		name string
		msgs []*furl.Message
		want []string
	}{
		{"results of one step", []*furl.Message{user("go"), foreign(furl.RoleAssistant, "{}", call("a"), call("b")), result("a"), result("b"), user("on")},
			[]string{`{"role":"user","content":[{"type":"text","text":"go"}]}`, calls,
				`{"role":"user","content":[` + resA + `,` + resB + `]}`, `{"role":"user","content":[{"type":"text","text":"on"}]}`}},
		{"text between results", []*furl.Message{user("go"), foreign(furl.RoleAssistant, "{}", call("a"), call("b")), result("a"), user("wait"), result("b")},
			[]string{`{"role":"user","content":[{"type":"text","text":"go"}]}`, calls,
				`{"role":"user","content":[` + resA + `,` + resB + `,{"type":"text","text":"wait"}]}`}},
		{"recorded ones in order stay", []*furl.Message{message(t, userText), message(t, calls), message(t, rawResult("a")), message(t, rawResult("b"))},
			[]string{userText, calls, rawResult("a"), rawResult("b")}},
		{"recorded ones out of order are joined", []*furl.Message{message(t, userText), message(t, calls), message(t, rawResult("a")), message(t, userText), message(t, rawResult("b"))},
			[]string{userText, calls, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"tool_result","tool_use_id":"b","content":"x"},{"type":"text","text":"fix it"}]}`}},
		{"a marker after results stays separate", []*furl.Message{message(t, calls), message(t, rawResult("a")), furl.TextMessage(furl.RoleUser, "mark"), message(t, calls)},
			[]string{calls, rawResult("a"), `{"role":"user","content":[{"type":"text","text":"mark"}]}`, calls}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := new(furl.View)
			for i, m := range test.msgs {
				v.Messages = append(v.Messages, shownOf(m, i))
			}
			raws, err := EncodeMessages(v)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, raw := range raws {
				got = append(got, string(raw))
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNewMessage(t *testing.T) {
	blocks := []furl.Block{
		{Kind: furl.KindThinking, Text: "hm", Signature: 12},
		{Kind: furl.KindThinking, Signature: 5},
		{Kind: furl.KindThinking},
		{Kind: furl.KindText, Text: ""},
		{Kind: furl.KindText, Text: "a\nb", CacheMark: true},
		{Kind: furl.KindCall, ID: "functions.f:0", Name: "f g", Args: []byte(`{"x": 1.0}`)},
	}
	m, err := Codec.NewMessage(furl.RoleAssistant, blocks)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"AAAAAAAAAAAA"},{"type":"redacted_thinking","data":"AAAAA"},` +
		`{"type":"text","text":"a\nb","cache_control":{"type":"ephemeral"}},{"type":"tool_use","id":"functions.f:0","name":"f g","input":{"x": 1.0}}]}`
	if string(m.Raw) != want {
		t.Errorf("got  %s\nwant %s", m.Raw, want)
	}
	if again := message(t, want); !cmp.Equal(again, m) {
		t.Errorf("decoding it again differs: %s", cmp.Diff(again, m))
	}
	if len(m.Blocks) != 4 || m.Blocks[0].Signature != 12 || m.Blocks[1].Signature != 5 || !m.Blocks[2].CacheMark || m.Format != furl.FormatAnthropic {
		t.Errorf("%+v", m)
	}
}

func TestNewMessageResultsAndMedia(t *testing.T) {
	image := furl.Media{Kind: furl.KindImage, Type: "image/png", Bytes: 1000, Width: 8, Height: 6}
	m, err := Codec.NewMessage(furl.RoleTool, []furl.Block{
		{Kind: furl.KindText, Text: "look"},
		{Kind: furl.KindImage, Media: []furl.Media{image}},
		{Kind: furl.KindResult, ID: "c", Text: "shot", Media: []furl.Media{image}, Error: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"shot\n[image image/png 8x6]","is_error":true},` +
		`{"type":"text","text":"look"},{"type":"text","text":"[image image/png 8x6]"}]}`
	if string(m.Raw) != want {
		t.Errorf("got  %s\nwant %s", m.Raw, want)
	}
	if len(m.Blocks[0].Media) != 1 || m.Blocks[0].Media[0] != image || len(m.Blocks[2].Media) != 1 {
		t.Errorf("media lost: %+v", m.Blocks)
	}
	if again := message(t, want); again.Digest != m.Digest {
		t.Error("the digest is not that of the bytes")
	}
	if _, err := Codec.NewMessage(furl.RoleUser, []furl.Block{{Kind: furl.KindText, Text: " "}}); err == nil || !strings.Contains(err.Error(), "empty message") {
		t.Errorf("empty message: %v", err)
	}
}
