package anthropic

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// png is the header of a PNG of 800 by 600 pixels; only the header is read.
var png = base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x03\x20\x00\x00\x02\x58\x08\x06\x00\x00\x00"))

func TestDecodeBlocks(t *testing.T) {
	media := func(kind furl.Kind, typ, content string, w, h int) furl.Media {
		return furl.Media{Kind: kind, Type: typ, Bytes: len(content), Width: w, Height: h, Digest: furl.DigestOf([]byte(content))}
	}
	textSource := `{"type":"text","media_type":"text/plain","data":"the words"}`
	for _, test := range []struct {
		name, raw string
		want      furl.Block
	}{
		{"text", `{"type":"text","text":"a\n\"b\" \u00e9"}`, furl.Block{Kind: furl.KindText, Text: "a\n\"b\" é"}},
		{"text with a breakpoint", `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}`, furl.Block{Kind: furl.KindText, Text: "a", CacheMark: true}},
		{"null breakpoint", `{"cache_control":null,"text":"a","type":"text"}`, furl.Block{Kind: furl.KindText, Text: "a"}},
		{"escaped type", `{"\u0074ype":"te\u0078t","text":"a"}`, furl.Block{Kind: furl.KindText, Text: "a"}},
		{"last of two", `{"type":"image","type":"text","text":"a","text":"b"}`, furl.Block{Kind: furl.KindText, Text: "b"}},
		{"lone surrogate", `{"type":"text","text":"\ud800\u0000"}`, furl.Block{Kind: furl.KindText, Text: "\uFFFD\x00"}},
		{"thinking", `{"type":"thinking","thinking":"hm","signature":"QUJD"}`, furl.Block{Kind: furl.KindThinking, Text: "hm", Signature: 4}},
		{"redacted", `{"type":"redacted_thinking","data":"QUJDREVG"}`, furl.Block{Kind: furl.KindThinking, Signature: 8}},
		{"call", `{"type":"tool_use","id":"t1","name":"Read","input":{"n": 1.0,"big":12345678901234567890}}`,
			furl.Block{Kind: furl.KindCall, ID: "t1", Name: "Read", Args: []byte(`{"n": 1.0,"big":12345678901234567890}`)}},
		{"call without input", `{"type":"tool_use","id":"t1","name":"Now"}`, furl.Block{Kind: furl.KindCall, ID: "t1", Name: "Now", Args: []byte("{}")}},
		{"result", `{"type":"tool_result","tool_use_id":"t1","content":"done","is_error":false}`, furl.Block{Kind: furl.KindResult, ID: "t1", Text: "done"}},
		{"error", `{"is_error":true,"content":"no","tool_use_id":"t1","type":"tool_result"}`, furl.Block{Kind: furl.KindResult, ID: "t1", Text: "no", Error: true}},
		{"result without content", `{"type":"tool_result","tool_use_id":"t1"}`, furl.Block{Kind: furl.KindResult, ID: "t1"}},
		{"result of parts", `{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a"},` +
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}},` +
			`{"type":"text","text":"b","cache_control":{"type":"ephemeral"}},{"type":"tool_reference","tool_name":"grep"}]}`,
			furl.Block{Kind: furl.KindResult, ID: "t1", Text: "a\nb\ngrep", CacheMark: true, Fixed: true, Media: []furl.Media{media(furl.KindImage, "image/png", png, 800, 600)}}},
		{"image by url", `{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}`,
			furl.Block{Kind: furl.KindImage, Media: []furl.Media{media(furl.KindImage, "", "https://x.example/a.png", 0, 0)}}},
		{"image by file", `{"type":"image","source":{"type":"file","file_id":"file_1"}}`,
			furl.Block{Kind: furl.KindImage, Media: []furl.Media{media(furl.KindImage, "", "file_1", 0, 0)}}},
		{"pdf", `{"type":"document","title":"The plan","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0x"}}`,
			furl.Block{Kind: furl.KindDocument, Text: "The plan", Media: []furl.Media{media(furl.KindDocument, "application/pdf", "JVBERi0x", 0, 0)}}},
		{"plain text document", `{"type":"document","context":"why","source":` + textSource + `}`,
			furl.Block{Kind: furl.KindDocument, Text: "why\nthe words", Media: []furl.Media{{Kind: furl.KindDocument, Type: "text/plain", Digest: furl.DigestOf([]byte(textSource))}}}},
		{"server tool", `{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"furl a sail"}}`,
			furl.Block{Kind: furl.KindOpaque, ID: "s1", Name: "server_tool_use", Text: "web_search\nfurl a sail", Half: furl.HalfCall}},
		{"server result", `{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","title":"Sails","url":"https://x.example","encrypted_content":"QUJDRA=="}]}`,
			furl.Block{Kind: furl.KindOpaque, ID: "s1", Name: "web_search_tool_result", Text: "Sails\nhttps://x.example", Signature: 8, Half: furl.HalfAnswer}},
		{"found tools", `{"type":"tool_search_tool_result","tool_use_id":"s1","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"grep"}]}}`,
			furl.Block{Kind: furl.KindOpaque, ID: "s1", Name: "tool_search_tool_result", Text: "grep", Fixed: true, Half: furl.HalfAnswer}},
		{"found no tools", `{"type":"tool_search_tool_result","tool_use_id":"s1","content":{"type":"tool_search_tool_search_result","tool_references":[]}}`,
			furl.Block{Kind: furl.KindOpaque, ID: "s1", Name: "tool_search_tool_result", Half: furl.HalfAnswer}},
		{"server tool of the future", `{"type":"hologram_tool_use","id":"s1","name":"beam","input":{}}`,
			furl.Block{Kind: furl.KindOpaque, ID: "s1", Name: "hologram_tool_use", Text: "beam", Fixed: true, Half: furl.HalfCall}},
		{"server tool without an id", `{"type":"server_tool_use","name":"web_search","input":{}}`,
			furl.Block{Kind: furl.KindOpaque, Name: "server_tool_use", Text: "web_search"}},
		{"call by a program", `{"type":"tool_use","id":"t1","name":"grep","input":{},"caller":{"type":"code_execution_20250825","tool_id":"s1"}}`,
			furl.Block{Kind: furl.KindCall, ID: "t1", Name: "grep", Args: []byte("{}"), Caller: "s1"}},
		{"direct call", `{"type":"tool_use","id":"t1","name":"grep","input":{},"caller":{"type":"direct"}}`,
			furl.Block{Kind: furl.KindCall, ID: "t1", Name: "grep", Args: []byte("{}")}},
		{"compaction", `{"type":"compaction","content":"so far","encrypted_content":"QUI="}`,
			furl.Block{Kind: furl.KindOpaque, Name: "compaction", Text: "so far", Signature: 4}},
		{"unknown", `{"type":"hologram","beam":[1,true,{"label":"x"}]}`, furl.Block{Kind: furl.KindOpaque, Name: "hologram", Text: "x", Fixed: true}},
		{"no type", `{"text":"a"}`, furl.Block{Kind: furl.KindOpaque, Text: "a", Fixed: true}},
		{"no object", `"a"`, furl.Block{Kind: furl.KindOpaque, Text: "a", Fixed: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			raw := `{ "role":"user" ,"content": [ {"type":"text","text":"x"} , ` + test.raw + `] }`
			m := message(t, raw)
			got := m.Blocks[1]
			if span := string(m.Raw[got.Start:got.End]); span != test.raw {
				t.Errorf("spans %s", span)
			}
			got.Start, got.End = 0, 0
			if d := cmp.Diff(test.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDecodeRequest(t *testing.T) {
	body := "\r\n{ \"model\" : \"m\", \"max_tokens\":1024, \"stream\": true, \"unknown\":{\"a\":1e3},\r\n" +
		`"tools":[{"name":"Read","description":"reads","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}},{"type":"web_search_20250305","name":"web_search"}],` +
		`"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],` +
		`"messages":[ {"role":"user","content":"hi"} ,{"content":[{"type":"text","text":"yes"}],"role":"assistant"},{"role":"gnome","content":null}] }  `
	req := decode(t, body)
	if req.Format != furl.FormatAnthropic || req.Model != "m" || req.MaxTokens != 1024 || !req.Stream || string(req.Body) != body {
		t.Errorf("decoded %+v", req)
	}
	wantPreamble := []furl.Block{
		{Kind: furl.KindText, Text: "Be brief.", CacheMark: true},
		{Kind: furl.KindOpaque, ID: "Read", Name: "custom", CacheMark: true,
			Text: `{"name":"Read","description":"reads","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}`},
		{Kind: furl.KindOpaque, ID: "web_search", Name: "web_search_20250305", Text: `{"type":"web_search_20250305","name":"web_search"}`},
	}
	if d := cmp.Diff(wantPreamble, req.Preamble); d != "" {
		t.Error(d)
	}
	wantRaw := []string{`{"role":"user","content":"hi"}`, `{"content":[{"type":"text","text":"yes"}],"role":"assistant"}`, `{"role":"gnome","content":null}`}
	for i, want := range wantRaw {
		m := req.Messages[i]
		if string(m.Raw) != want || &m.Raw[0] != &req.Body[req.Offsets[i]] {
			t.Errorf("message %d: %s at %d", i, m.Raw, req.Offsets[i])
		}
		if m.Digest.IsZero() && len(m.Blocks) > 0 {
			t.Errorf("message %d is not sealed", i)
		}
	}
	if b := req.Messages[0].Blocks; len(b) != 1 || b[0].Start != 0 || b[0].End != 0 || b[0].Text != "hi" {
		t.Errorf("string content: %+v", b)
	}
	if req.Messages[2].Role != "gnome" || len(req.Messages[2].Blocks) != 0 {
		t.Errorf("unknown role: %+v", req.Messages[2])
	}
}

func TestDecodeRequestTakesTheLastOfTwoLists(t *testing.T) {
	req := decode(t, `{"messages":[{"role":"user","content":"a"}],"messages":[{"role":"user","content":"b","content":"c"}]}`)
	if len(req.Messages) != 1 || req.Messages[0].Blocks[0].Text != "c" {
		t.Errorf("%+v", req.Messages)
	}
}

func TestPreambleDigest(t *testing.T) {
	digest := func(rest string) furl.Digest { return decode(t, `{"messages":[],`+rest+`}`).PreambleDigest }
	base := digest(`"system":"Be brief.","tools":[{"name":"Read","input_schema":{"type":"object","properties":{"cache_control":{}}}}]`)
	for name, same := range map[string]string{
		"block form, marks, spacing, order of the two": `"tools" : [ {"name": "Read", "input_schema":{"type":"object","properties":{"cache_control":{}}},"cache_control":{"type":"ephemeral"}} ],
			"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"}}],"model":"other"`,
	} {
		if digest(same) != base {
			t.Errorf("%s: another digest", name)
		}
	}
	for name, other := range map[string]string{
		"other words":                  `"system":"Be brief!","tools":[{"name":"Read","input_schema":{"type":"object","properties":{"cache_control":{}}}}]`,
		"key order":                    `"system":"Be brief.","tools":[{"input_schema":{"type":"object","properties":{"cache_control":{}}},"name":"Read"}]`,
		"a property named like a mark": `"system":"Be brief.","tools":[{"name":"Read","input_schema":{"type":"object","properties":{}}}]`,
		"no tools":                     `"system":"Be brief."`,
		"two blocks":                   `"system":[{"type":"text","text":"Be "},{"type":"text","text":"brief."}],"tools":[{"name":"Read","input_schema":{"type":"object","properties":{"cache_control":{}}}}]`,
	} {
		if digest(other) == base {
			t.Errorf("%s: the same digest", name)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{``, "decode Anthropic request: JSON at offset 0: expected an object"},
		{`[]`, "decode Anthropic request: JSON at offset 0: expected an object"},
		{`{"model":"m"}`, "decode Anthropic request: field messages is missing"},
		{`{"messages":{}}`, "decode Anthropic request: JSON at offset 12: expected an array"},
		{`{"messages":[1]}`, "decode Anthropic request: messages.0: expected an object"},
		{`{"messages":[{"role":"user","content":7}]}`, "decode Anthropic request: messages.0: content: expected a string or a list of blocks"},
		{`{"messages":[{"role":"user","content":"a"},{"role":"user","content":"x` + "\n" + `"}]}`,
			"decode Anthropic request: messages.1: JSON at offset 70: control character in a string"},
		{`{"messages":[]} x`, "decode Anthropic request: JSON at offset 16: unexpected bytes after the value"},
		{`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}`, "decode Anthropic request: messages.0: JSON at offset 65: expected ',' or ']'"},
	} {
		_, err := Codec.DecodeRequest([]byte(test.body))
		if err == nil || err.Error() != test.want {
			t.Errorf("%s:\ngot  %v\nwant %s", test.body, err, test.want)
		}
	}
}

func TestDecodeDepth(t *testing.T) {
	body := func(n int) []byte {
		return []byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":` +
			strings.Repeat(`{"a":`, n) + `1` + strings.Repeat(`}`, n) + `}]}]}`)
	}
	if _, err := Codec.DecodeRequest(body(rawjson.MaxDepth - 5)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	_, err := Codec.DecodeRequest(body(rawjson.MaxDepth))
	if err == nil || !strings.Contains(err.Error(), "nested deeper than 10000 levels") {
		t.Errorf("over the limit: %v", err)
	}
	// Nested blocks are read level by level; the cost must not be the product
	// of depth and size.
	nest := func(n int) string {
		return strings.Repeat(`{"type":"tool_result","content":[`, n) + strings.Repeat(`]}`, n)
	}
	pad := strings.Repeat(" ", 8<<20)
	if _, err := Codec.DecodeRequest([]byte(`{"messages":[{"role":"user","content":[` + nest(4000) + pad + `]}]}`)); err != nil {
		t.Errorf("nested results: %v", err)
	}
}

func TestWordsAreBounded(t *testing.T) {
	long := strings.Repeat("é", maxWords)
	m := message(t, `{"role":"user","content":[{"type":"future","a":"`+long+`","b":"`+long+`"}]}`)
	if n := len(m.Blocks[0].Text); n > maxWords || n < maxWords-8 {
		t.Errorf("%d bytes of text, want about %d", n, maxWords)
	}
}

func TestImageSize(t *testing.T) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	sof := "\xff\xc0\x00\x11\x08\x02\x58\x03\x20\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01"
	jpeg := func(meta int) string {
		var s strings.Builder
		s.WriteString("\xff\xd8")
		for ; meta > 0; meta -= 60000 {
			s.WriteString("\xff\xe2\xea\x62" + strings.Repeat("m", 60000))
		}
		return s.String() + sof
	}
	for name, data := range map[string]string{
		"png":                       png,
		"png with escaped slashes":  strings.ReplaceAll(png, "/", `\/`),
		"gif":                       b64("GIF89a\x20\x03\x58\x02\x00\x00\x00"),
		"jpeg":                      b64(jpeg(0) + strings.Repeat("x", 2000)),
		"jpeg behind much metadata": b64(jpeg(300000) + strings.Repeat("x", 2000)),
	} {
		m := message(t, `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/x","data":"`+data+`"}}]}`)
		if got := m.Blocks[0].Media[0]; got.Width != 800 || got.Height != 600 || got.Bytes != len(data) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if w, h := imageSize([]byte("not an image")); w != 0 || h != 0 {
		t.Errorf("no image: %d x %d", w, h)
	}
}
