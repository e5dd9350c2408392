package transcript

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
)

func TestWireOf(t *testing.T) {
	tests := []struct {
		model string
		want  furl.Format
	}{
		{"claude-sonnet-4-5", furl.FormatAnthropic},
		{"anthropic/claude-opus-4.6", furl.FormatAnthropic},
		{"us.anthropic.claude-sonnet-4-5-v1:0", furl.FormatAnthropic},
		{"gpt-5.5", furl.FormatResponses},
		{"openai/gpt-4o", furl.FormatResponses},
		{"gpt-5.3-codex", furl.FormatResponses},
		{"o3", furl.FormatResponses},
		{"o4-mini", furl.FormatResponses},
		{"openrouter-llama-4", furl.FormatChat},
		{"gemini-2.5-flash", furl.FormatChat},
		{"kimi-k2", furl.FormatChat},
		{"", furl.FormatChat},
	}
	for _, tt := range tests {
		if got := wireOf(tt.model, furl.FormatResponses); got != tt.want {
			t.Errorf("wireOf(%q) is %s, want %s", tt.model, got, tt.want)
		}
	}
}

func TestCallObject(t *testing.T) {
	tests := []struct{ args, want string }{
		{``, `{}`},
		{`null`, `{}`},
		{`{"a":1.0}`, `{"a":1.0}`},
		{` {"a":1} `, `{"a":1}`},
		{`"{\"a\":12345678901234567890}"`, `{"a":12345678901234567890}`},
		{`""`, `{}`},
		{`"*** Begin Patch"`, `{"input":"*** Begin Patch"}`},
		{`[1,2]`, `{"input":[1,2]}`},
		{`7`, `{"input":7}`},
		{`{"a":`, `{"input":"{\"a\":"}`},
	}
	for _, tt := range tests {
		got := string(callObject(json.RawMessage(tt.args)))
		if got != tt.want || !json.Valid([]byte(got)) {
			t.Errorf("callObject(%s) is %s, want %s", tt.args, got, tt.want)
		}
	}
}

func TestDataPicture(t *testing.T) {
	tests := []struct {
		mime, url string
		want      picture
		ok        bool
	}{
		{"image/png", "data:image/jpeg;base64,QUJD", picture{mime: "image/jpeg", data: "QUJD"}, true},
		{"image/png", "data:;base64,QUJD", picture{mime: "image/png", data: "QUJD"}, true},
		{"image/png", "https://example.com/a.png", picture{url: "https://example.com/a.png"}, true},
		{"image/png", "data:image/png,plain", picture{}, false},
		{"text/plain", "data:text/plain;base64,QUJD", picture{mime: "text/plain", data: "QUJD"}, false},
		{"image/png", "file:///a.png", picture{url: "file:///a.png"}, false},
	}
	for _, tt := range tests {
		got, ok := dataPicture(tt.mime, tt.url)
		if ok != tt.ok || got != tt.want {
			t.Errorf("dataPicture(%q, %q) is %+v, %v; want %+v, %v", tt.mime, tt.url, got, ok, tt.want, tt.ok)
		}
	}
}

// Ids are valid for every provider, and unique.
func TestCallIDs(t *testing.T) {
	r := newRenderer(furl.FormatAnthropic, "claude")
	long := strings.Repeat("x", 100)
	var got []string
	for _, id := range []string{"call_1", "call_1", "", "fc|1:a", long, long} {
		got = append(got, r.callID(id))
	}
	want := []string{"call_1", "call_1_2", "call", "fc_1_a", long[:56], long[:56] + "_2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if id := r.answers("call_1"); id != "call_1_2" {
		t.Errorf("a result for call_1 answers %q, want the newest call", id)
	}
}

// One step with every kind of content, in each format.
func TestRender(t *testing.T) {
	step := func() []piece {
		return []piece{
			{kind: furl.KindThinking, text: "hm", signature: "c2ln", itemID: "rs_1"},
			words("I look."),
			{kind: furl.KindCall, id: "a", name: "read", args: json.RawMessage(`{"n":1.0}`)},
		}
	}
	pic := picture{mime: "image/png", data: "QUJD"}
	tests := []struct {
		wire furl.Format
		want []string
	}{
		{furl.FormatAnthropic, []string{
			`{"content":[{"signature":"c2ln","thinking":"hm","type":"thinking"},{"text":"I look.","type":"text"},{"id":"a","input":{"n":1.0},"name":"read","type":"tool_use"}],"role":"assistant"}`,
			`{"content":[{"content":[{"text":"<ok>","type":"text"},{"source":{"data":"QUJD","media_type":"image/png","type":"base64"},"type":"image"}],"is_error":true,"tool_use_id":"a","type":"tool_result"}],"role":"user"}`,
		}},
		{furl.FormatChat, []string{
			`{"content":"I look.","role":"assistant","tool_calls":[{"function":{"arguments":"{\"n\":1.0}","name":"read"},"id":"a","type":"function"}]}`,
			`{"content":"<ok>","role":"tool","tool_call_id":"a"}`,
			`{"content":[{"image_url":{"url":"data:image/png;base64,QUJD"},"type":"image_url"}],"role":"user"}`,
		}},
		{furl.FormatResponses, []string{
			`{"encrypted_content":"c2ln","id":"rs_1","summary":[{"text":"hm","type":"summary_text"}],"type":"reasoning"}`,
			`{"content":[{"annotations":[],"text":"I look.","type":"output_text"}],"role":"assistant","type":"message"}`,
			`{"arguments":"{\"n\":1.0}","call_id":"a","name":"read","type":"function_call"}`,
			`{"call_id":"a","output":[{"text":"<ok>","type":"input_text"},{"detail":"auto","image_url":"data:image/png;base64,QUJD","type":"input_image"}],"type":"function_call_output"}`,
		}},
	}
	for _, tt := range tests {
		t.Run(string(tt.wire), func(t *testing.T) {
			r := newRenderer(tt.wire, "m")
			msgs, err := r.assistant(step())
			if err != nil {
				t.Fatal(err)
			}
			results, err := r.results([]piece{{kind: furl.KindResult, id: "a", text: "<ok>", failed: true, images: []picture{pic}}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			failed := 0
			for _, m := range append(msgs, results...) {
				got = append(got, string(m.Raw))
				for i := range m.Blocks {
					if m.Blocks[i].Error {
						failed++
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rendered (-want +got):\n%s", diff)
			}
			if failed != 1 {
				t.Errorf("%d results are marked as failed, want 1", failed)
			}
			// Thinking alone is not a reply.
			if msgs, err := r.assistant(step()[:1]); err != nil || len(msgs) > 0 {
				t.Errorf("thinking alone gives %d messages, %v", len(msgs), err)
			}
		})
	}
}

func TestReasoningContent(t *testing.T) {
	for model, want := range map[string]bool{"kimi-k2": true, "deepseek-r1": true, "gemini-3-pro": false} {
		msgs, err := newRenderer(furl.FormatChat, model).assistant([]piece{{kind: furl.KindThinking, text: "hm"}, words("yes")})
		if err != nil || len(msgs) != 1 || bytes.Contains(msgs[0].Raw, []byte(`"reasoning_content":"hm"`)) != want {
			t.Errorf("%s: %s, %v; want the reasoning: %v", model, msgs[0].Raw, err, want)
		}
	}
}

// Exactly one format recognises each file.
func TestDetectionIsExclusive(t *testing.T) {
	files := fixtures(t)
	if dir := os.Getenv("FURL_RECORDINGS"); dir != "" {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			data, _, err := unpack(path, f, 1<<30)
			files[path] = data
			return err
		})
	}
	for name, data := range files {
		p := newProbe(data)
		var names []string
		for _, f := range formats {
			if f.detect(p) {
				names = append(names, f.name)
			}
		}
		if len(names) > 1 {
			t.Errorf("%s is recognised as %v", name, names)
		}
	}
}

// Messages in a provider's format are in the log byte for byte.
func TestRawIsKept(t *testing.T) {
	for name, data := range fixtures(t) {
		switch name {
		case "codex.jsonl", "codex-early.jsonl", "tau-bench.json", "chat-request.json", "responses-request.json":
		default:
			continue
		}
		rec, err := Read(name, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rec.Sessions {
			for i := 1; i <= s.Log.Len(); i++ {
				m, ok := s.Log.At(furl.Seq(i)).Body.(*furl.Message)
				if ok && !bytes.Contains(data, m.Raw) && !bytes.Contains(m.Raw, []byte(`"aborted"`)) {
					t.Errorf("%s, record %d is not in the file: %s", name, i, m.Raw)
				}
			}
		}
	}
}
