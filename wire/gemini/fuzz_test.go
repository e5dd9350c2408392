package gemini

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

const png = `iVBORw0KGgoAAAANSUhEUgAAAAoAAAAUCAYAAAC07w7b`

// seeds are bodies with everything that a careless codec loses.
func seeds(f *testing.F) {
	for _, body := range []string{
		conversation,
		snakeConversation,
		`{"contents":[{"parts":{"text":"one part"}}],"system_instruction":{"parts":{"text":"s"}}, "tools":[{"function_declarations":[{"name":"f","parameters":{"a":[1.0,2e5,-0]}}]},{"googleSearch":{}}],"x":123456789012345678901234567890}`,
		"{\r\n\t\"contents\"\t:\r\n[\r\n{ \"parts\" : [ {\"text\":\"a\\u0000\\ud800\\ud83d\\ude00\\/\"} , { \"text\" : \"\" } ] , \"role\":\"user\" }\r\n]\r\n}",
		"{\"contents\":[{\"role\":\"model\",\"parts\":[{\"text\":\"\xff\xfe broken\"}, {\"text\":\"b\",\"thoughtSignature\":\"c2ln\"},{\"text\":\"\",\"thoughtSignature\":\"c2ln\"}]}]}",
		`{"contents":[{"role":"user","role":"model","parts":[{"text":"x"}],"parts":[{"text":"a","text":"b"},{"function_call":{"name":"f"},"functionCall":{"name":"g"}}]}],"contents":[{"parts":[{"text":"c"}]}]}`,
		`{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"` + png + `"}},{"fileData":{"fileUri":"gs://b/o","mimeType":"video/mp4"},"videoMetadata":{"fps":1}}]}]}`,
		`{"contents":[{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"x"},"parts":[{"inlineData":{"mimeType":"image/png","data":"` + png + `"}}]}},{"functionResponse":{"id":"a","name":"f","response":{"output":"x"}}}]}]}`,
		`{"contents":[{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},7,"s",[{}],{},{"new":1}]}]}`,
		`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":` + strings.Repeat(`{"a":[`, 200) + strings.Repeat(`]}`, 200) + `}}]}]}`,
		`{"contents":[]}`, `{"contents":[{}]}`, `{"contents":[{"parts":[]}]}`, `{"contents":[{"parts":null,"role":"narrator"}]}`,
	} {
		f.Add([]byte(body), uint16(1), uint16(0), "hidden")
		f.Add([]byte(body), uint16(0), uint16(0), "")
		f.Add([]byte(body), uint16(2), uint16(0), `{"furl":1.0}`)
		f.Add([]byte(body), uint16(3), uint16(1), `x`)
	}
}

// FuzzRoundTrip: a view without changes encodes to the body itself, and each
// content alone encodes as in the body.
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
		for i := range req.Messages {
			m := &req.Messages[i]
			at := req.Offsets[i]
			if !bytes.Equal(m.Raw, body[at:at+len(m.Raw)]) {
				t.Fatalf("content %d is not at %d", i, at)
			}
			alone, err := Codec.DecodeMessage(m.Raw)
			if err != nil || !hasRepeated(m) && !cmp.Equal(alone, m) {
				t.Fatalf("content %d alone: %v\n%s", i, err, cmp.Diff(m, alone))
			}
			raws, err := Codec.EncodeMessage(shownOf(m, i))
			if err != nil || len(raws) != 1 || !bytes.Equal(raws[0], m.Raw) {
				t.Fatalf("content %d: %q, %v", i, raws, err)
			}
		}
		if !bytes.Equal(body, before) {
			t.Fatal("the body changed")
		}
		for _, id := range []string{"gemini-2.5-pro", "gemini-3-pro"} {
			_ = Codec.Validate(req, furl.Model{ID: id}) // must not panic
		}
		for _, changed := range [][]byte{Codec.Unforced(body), Codec.Question(body, "m", "i", "q", 5)} {
			if json.Valid(body) && !json.Valid(changed) {
				t.Fatalf("%q", changed)
			}
		}
	})
}

// FuzzEdit: replacing the text of one block changes only bytes inside that
// block, apart from repeated results, and hiding a block removes only the block and a comma.
func FuzzEdit(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte, i, j uint16, text string) {
		req, err := Codec.DecodeRequest(body)
		if err != nil || int(i) >= len(req.Messages) || int(j) >= len(req.Messages[i].Blocks) {
			return
		}
		for k := range req.Messages {
			if hasRepeated(&req.Messages[k]) {
				return
			}
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
		if !bytes.HasPrefix(out, body[:lo]) || !bytes.HasSuffix(out, body[hi:]) || len(out) < lo+len(body)-hi {
			t.Fatalf("changed outside of [%d,%d):\n%q\n%q", lo, hi, body, out)
		}
		if req.Ambiguous != "" {
			return // an edit changes one of two fields, and which one is read is unknown
		}
		again, err := Codec.DecodeRequest(out)
		if err != nil {
			t.Fatalf("%v\n%q", err, out)
		}
		if raw := encodeOne(t, v.Messages[i]); raw != string(again.Messages[i].Raw) && !shows(b, text) {
			t.Fatalf("alone the content is\n%q, in the body\n%q", raw, again.Messages[i].Raw)
		}
		if shows(b, text) {
			return
		}
		if b.Kind != furl.KindImage && b.Kind != furl.KindDocument { // a text may join its neighbours
			got := again.Messages[i].Blocks[j]
			want := nonEmpty(string([]rune(text)))
			switch b.Kind {
			case furl.KindCall:
				if string(got.Args) != string(rawjson.ObjectOf(text, "furl_shortened")) || got.ID != b.ID || got.Name != b.Name {
					t.Fatalf("call shows %s", got.Args)
				}
			case furl.KindResult:
				if got.Text != want || got.Kind != b.Kind || got.ID != b.ID || got.Error != b.Error || len(got.Media) > 0 {
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
		if _, derr := Codec.DecodeRequest(out); err != nil || derr != nil {
			t.Fatalf("%v, %v\n%q", err, derr, out)
		}
		if want := len(body) - (b.End - b.Start); len(out) > want {
			t.Fatalf("%d bytes after hiding %d of %d", len(out), b.End-b.Start, len(body))
		}
	})
}

func sameBlock(a, b *furl.Block) bool {
	x, y := *a, *b
	x.Start, x.End, y.Start, y.End = 0, 0, 0, 0
	return cmp.Equal(x, y)
}

// FuzzForeign: from any blocks of another format, a valid content without
// empty texts is built.
func FuzzForeign(f *testing.F) {
	f.Add("assistant", byte(furl.KindCall), "text", "id", "name", `{"a":1}`, `{"url":"data:image/png;base64,QUJD"}`, 3)
	f.Add("tool", byte(furl.KindResult), "", "", "", ``, ``, 0)
	f.Add("tool", byte(furl.KindResult), "t", "i", "n", ``, `{"type":"tool_result","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ=="}}]}`, 0)
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
			if got := encodeOne(t, s); got != "" {
				checkBuilt(t, message(t, got))
			}
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
		if b.Kind == furl.KindCall && rawjson.NewReader(b.Args).Kind() != '{' {
			t.Fatalf("arguments that are not an object in %s", m.Raw)
		}
	}
}

// FuzzStream: any events are read without a panic; a reply's message decodes again, and a
// stream cut into more pieces is the same reply.
func FuzzStream(f *testing.F) {
	f.Add([]byte(streamed), uint8(3))
	f.Add([]byte(`{"candidates":[{"content":{"parts":{"text":"x"}}}]}`+"\n"+`{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}`), uint8(1))
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"memory_get","args":{}}},{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1e9}}`), uint8(0))
	f.Fuzz(func(t *testing.T, stream []byte, _ uint8) {
		a := Codec.NewAssembler()
		j := Codec.NewJoiner(func(name string) bool { return strings.HasPrefix(name, "memory") })
		var failed error
		for line := range bytes.SplitSeq(stream, []byte("\n")) {
			if err := a.Feed("", line); err != nil && failed == nil {
				failed = err
			}
			for _, out := range [][]byte{j.Event("", line, line)} {
				checkPieces(t, line, out)
			}
			_, _ = Codec.Delta("", line)
			_, _ = Codec.Silent("", line), Codec.Ends("", line)
		}
		checkPieces(t, nil, j.End(furl.Usage{Input: 5, Output: 2}, true))
		reply, err := a.Reply()
		if reply == nil || failed != nil && err == nil {
			t.Fatalf("%v, %v after %v", reply, err, failed)
		}
		for _, m := range reply.Messages {
			again := message(t, string(m.Raw))
			if !cmp.Equal(again, m) {
				t.Fatal(cmp.Diff(m, again))
			}
		}
	})
}

// checkPieces checks that each piece written for a client, unless it is the provider's own,
// has parts: chats of @google/genai drop a reply with one that has none.
func checkPieces(t *testing.T, in, out []byte) {
	t.Helper()
	if bytes.Equal(in, out) || len(out) == 0 {
		return
	}
	for line := range bytes.SplitSeq(out, []byte("\n")) {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		if p, err := readPiece(data); err != nil || len(p.parts) == 0 {
			t.Fatalf("%q became %q: %v", in, data, err)
		}
	}
}
