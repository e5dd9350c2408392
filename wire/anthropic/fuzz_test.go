package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// seeds are bodies with everything that a careless codec loses.
func seeds(f *testing.F) {
	for _, body := range []string{
		requestRaw,
		list(u, calls("a", "b"), results("a", "b")),
		list(u, calls("a"), user(`{"type":"tool_result","tool_use_id":"a","content":"x","cache_control":{"type":"ephemeral"}}`)),
		`{"system":[` + marked("s", "1h") + `],"tools":[{"name":"f","input_schema":{"a":[1.0,2e5,-0]}}],"messages":[` + u + `],"x":123456789012345678901234567890}`,
		`{"system":[{"type":"text","text":"x-anthropic-billing-header: a=\"\\\u000aé\n;"},{"type":"image","text":"x-anthropic-billing-header: b"}],"messages":[` + u + `]}`,
		`{"messages":[` + u + `],"system":"x-anthropic-billing-header:\\u000A\u000Arest"}`,
		"{\r\n\t\"messages\"\t:\r\n[\r\n{ \"content\" : \"a\\u0000\\ud800\\ud83d\\ude00\\/\" , \"role\":\"user\" }\r\n]\r\n}",
		"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe broken utf-8 \xe2\x82\"}]}",
		`{"messages":[{"role":"user","role":"assistant","content":"x","content":[{"type":"text","type":"text","text":"a","text":"b"}]}],"messages":[` + u + `]}`,
		list(user(`{"z":{"b":1,"a":[{}, [], null]},"content":[{"type":"image","source":{"type":"base64","data":"` + png + `"}}],"tool_use_id":"a","type":"tool_result"}`)),
		list(assistant(search + "," + found + "," + thought + "," + redacted + `,{"type":"compaction","content":null},7,"s",[{}]`)),
		list(user(`{"type":"document","source":{"type":"content","content":[{"type":"text","text":"d"},{"type":"document","source":{"type":"text","data":"e"}}]}}`)),
		list(assistant(`{"type":"tool_use","id":"a","name":"f","input":` + strings.Repeat(`{"a":[`, 200) + strings.Repeat(`]}`, 200) + `}`)),
		`{"messages":[]}`, `{"messages":[{}]}`, `{"messages":[{"content":[]}]}`, `{"messages":[{"content":null}]}`,
	} {
		f.Add([]byte(body), uint16(1), uint16(0), "hidden")
		f.Add([]byte(body), uint16(0), uint16(0), "")
		f.Add([]byte(body), uint16(0), uint16(3), `{"furl":1.0}`)
	}
}

// FuzzRoundTrip: a view without changes encodes to the body itself, and each
// message alone decodes and encodes as in the body.
func FuzzRoundTrip(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte, _, _ uint16, _ string) {
		before := bytes.Clone(body)
		req, err := Codec.DecodeRequest(body)
		if err != nil {
			return
		}
		if out, err := Codec.EncodeRequest(req, viewOf(req.Messages)); err != nil || !bytes.Equal(out, before) {
			t.Fatalf("identity: %v\n%q\n%q", err, before, out)
		}
		if longer, ok := Codec.HourPreamble(body); ok {
			if again, twice := Codec.HourPreamble(longer); twice || !json.Valid(longer) || !bytes.Equal(body, before) {
				t.Fatalf("instructions for an hour: %q, again %q", longer, again)
			}
		}
		if held, ok := Codec.WithBillingLine(body, billingHeader); ok {
			if again, twice := Codec.WithBillingLine(held, billingHeader); twice || json.Valid(body) != json.Valid(held) || !bytes.Equal(body, before) || Codec.BillingLine(held) != billingHeader {
				t.Fatalf("with another billing line: %q, again %q", held, again)
			}
			if same, err := Codec.DecodeRequest(held); err != nil || req.Ambiguous == "" && same.PreambleDigest != req.PreambleDigest {
				t.Fatalf("with another billing line, the instructions differ: %v, %q", err, held)
			}
		}
		for i := range req.Messages {
			m := &req.Messages[i]
			at := req.Offsets[i]
			if !bytes.Equal(m.Raw, body[at:at+len(m.Raw)]) {
				t.Fatalf("message %d is not at %d", i, at)
			}
			alone, err := Codec.DecodeMessage(m.Raw)
			if err != nil || !cmp.Equal(alone, m) {
				t.Fatalf("message %d alone: %v\n%s", i, err, cmp.Diff(m, alone))
			}
			raws, err := Codec.EncodeMessage(shownOf(m, i))
			if err != nil || len(raws) != 1 || !bytes.Equal(raws[0], m.Raw) {
				t.Fatalf("message %d: %q, %v", i, raws, err)
			}
		}
		if !bytes.Equal(body, before) {
			t.Fatal("the body changed")
		}
		for _, model := range []furl.Model{plain, prefills, insides, requires} {
			_ = Codec.Validate(req, model) // must not panic
		}
	})
}

// FuzzEdit: replacing the text of one block changes only bytes inside that
// block, and hiding a block removes only the block and a comma.
func FuzzEdit(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte, i, j uint16, text string) {
		req, err := Codec.DecodeRequest(body)
		if err != nil || int(i) >= len(req.Messages) || int(j) >= len(req.Messages[i].Blocks) {
			return
		}
		m := &req.Messages[i]
		b := &m.Blocks[j]
		v := viewOf(req.Messages)
		edit(v, int(i), int(j), text)
		out, err := Codec.EncodeRequest(req, v)
		if b.Kind == furl.KindThinking || b.Kind == furl.KindOpaque {
			if err == nil {
				t.Fatalf("the text of a block of kind %v was replaced: %q", b.Kind, out)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := req.Offsets[i]+b.Start, req.Offsets[i]+b.End
		if b.End == 0 {
			hi = req.Offsets[i] + len(m.Raw)
		}
		if !bytes.HasPrefix(out, body[:lo]) || !bytes.HasSuffix(out, body[hi:]) || len(out) < lo+len(body)-hi {
			t.Fatalf("changed outside of [%d,%d):\n%q\n%q", lo, hi, body, out)
		}
		again, err := Codec.DecodeRequest(out)
		if err != nil {
			t.Fatalf("%v\n%q", err, out)
		}
		// A message encoded alone has no cache breakpoint set by furl.
		if raw := encodeOne(t, v.Messages[i]); raw != string(again.Messages[i].Raw) && !shows(b, text) &&
			string(withBreakpoint(json.RawMessage(raw), b.ID, breakpointFor(req, int(i)))) != string(again.Messages[i].Raw) {
			t.Fatalf("alone the message is\n%q, in the body\n%q", raw, again.Messages[i].Raw)
		}
		got := again.Messages[i].Blocks[j]
		want := nonEmpty(string([]rune(text)))
		switch b.Kind {
		case furl.KindCall:
			if string(got.Args) != string(rawjson.ObjectOf(text, "furl_shortened")) || got.ID != b.ID || got.Name != b.Name {
				t.Fatalf("call shows %s", got.Args)
			}
		case furl.KindResult:
			if got.Text != want || got.Kind != b.Kind || got.ID != b.ID || got.Error != b.Error {
				t.Fatalf("got %+v, want text %q", got, want)
			}
		default:
			if got.Text != want || got.Kind != furl.KindText {
				t.Fatalf("got %+v, want text %q", got, want)
			}
		}
		for k := range again.Messages {
			for l := range again.Messages[k].Blocks {
				if (k != int(i) || l != int(j)) && !sameBlock(&again.Messages[k].Blocks[l], &req.Messages[k].Blocks[l]) {
					t.Fatalf("block %d.%d changed", k, l)
				}
			}
		}

		v = viewOf(req.Messages)
		hide(v, int(i), int(j))
		out, err = Codec.EncodeRequest(req, v)
		if len(req.Messages) == 1 && len(m.Blocks) == 1 {
			if err == nil {
				t.Fatalf("all blocks are hidden, but no error: %q", out)
			}
			return
		}
		again, derr := Codec.DecodeRequest(out)
		if err != nil || derr != nil {
			t.Fatalf("%v, %v\n%q", err, derr, out)
		}
		n, before := 0, 0
		for k := range again.Messages {
			n += len(again.Messages[k].Blocks)
		}
		for k := range req.Messages {
			before += len(req.Messages[k].Blocks)
		}
		if n != before-1 {
			t.Fatalf("%d blocks of %d after hiding one:\n%q\n%q", n, before, body, out)
		}
	})
}

func sameBlock(a, b *furl.Block) bool {
	x, y := *a, *b
	x.Start, x.End, y.Start, y.End = 0, 0, 0, 0
	return cmp.Equal(x, y)
}

// FuzzForeign: from any blocks of another format, a valid message without
// empty texts is built.
func FuzzForeign(f *testing.F) {
	f.Add("assistant", byte(furl.KindCall), "text", "id", "name", `{"a":1}`, `{"url":"data:image/png;base64,QUJD"}`, 3)
	f.Add("tool", byte(furl.KindResult), "", "", "", ``, ``, 0)
	f.Add("user", byte(furl.KindImage), "\xff", "\x00", "\"", `"x"`, `{"image_url":{"url":"https://x.example"}}`, 1)
	f.Fuzz(func(t *testing.T, role string, kind byte, text, id, name, args, raw string, signature int) {
		b := furl.Block{Kind: furl.Kind(kind % 7), Text: text, ID: id, Name: name, Args: []byte(args), End: len(raw), Signature: max(0, min(signature, 1000))}
		if b.Kind == furl.KindImage || b.Kind == furl.KindResult {
			b.Media = []furl.Media{{Kind: furl.KindImage, Type: name}}
		}
		m := &furl.Message{Role: furl.Role(role), Format: furl.FormatChat, Raw: []byte(raw), Blocks: []furl.Block{b}}
		for _, by := range []furl.Seq{0, 1} {
			s := shownOf(m, 0)
			s.Blocks[0].By, s.Blocks[0].Text = by, name
			got := encodeOne(t, s)
			if got == "" {
				continue
			}
			checkBuilt(t, message(t, got))
		}
		if m, err := Codec.NewMessage(furl.Role(role), []furl.Block{b}); err == nil {
			checkBuilt(t, m)
		}
	})
}

func checkBuilt(t *testing.T, m *furl.Message) {
	t.Helper()
	if len(m.Blocks) == 0 || m.Role != furl.RoleUser && m.Role != furl.RoleAssistant {
		t.Fatalf("built %s", m.Raw)
	}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if (b.Kind == furl.KindText || b.Kind == furl.KindResult && len(b.Media) == 0) && strings.TrimSpace(b.Text) == "" {
			t.Fatalf("an empty text in %s", m.Raw)
		}
		if b.Kind == furl.KindCall && b.Args[0] != '{' && strings.TrimSpace(string(b.Args))[0] != '{' {
			t.Fatalf("arguments that are not an object in %s", m.Raw)
		}
	}
}
