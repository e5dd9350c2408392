package anthropic

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/rawjson"
)

// recordedMessages returns the messages of each Claude Code transcript in
// $FURL_RECORDINGS, by file.
func recordedMessages(t *testing.T) map[string][]json.RawMessage {
	dir := recordings.Dir(t)
	out := make(map[string][]json.RawMessage)
	for _, pattern := range []string{"entire-cli/*.jsonl.gz", "claude-code-log/*.jsonl"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			out[filepath.Base(file)] = recorded(t, file)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no Claude Code transcripts in %s", dir)
	}
	return out
}

func recorded(t *testing.T, file string) (messages []json.RawMessage) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var record struct {
			Type    string
			Message json.RawMessage
		}
		if json.Unmarshal(lines.Bytes(), &record) == nil && (record.Type == "user" || record.Type == "assistant") && rawjson.NewReader(record.Message).Kind() == '{' {
			messages = append(messages, record.Message)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return messages
}

// Real messages are encoded unchanged, decode to the blocks that
// encoding/json finds, and change in one place only.
func TestRecordings(t *testing.T) {
	for name, messages := range recordedMessages(t) {
		t.Run(name, func(t *testing.T) {
			body := []byte(`{"model":"m","max_tokens":1024,"messages":[` + string(bytes.Join(raws(messages), []byte(", "))) + `]}`)
			req, err := Codec.DecodeRequest(body)
			if err != nil {
				t.Fatal(err)
			}
			if len(req.Messages) != len(messages) {
				t.Fatalf("%d messages of %d", len(req.Messages), len(messages))
			}
			for i := range messages {
				compare(t, messages[i], &req.Messages[i])
			}
			out, err := Codec.EncodeRequest(req, viewOf(req.Messages))
			if err != nil || &out[0] != &body[0] {
				t.Errorf("identity: %v", err)
			}

			// Mask every result: the rest of the body stays the same.
			v := viewOf(req.Messages)
			var want []byte
			at := 0
			for i := range v.Messages {
				for j := range v.Messages[i].Blocks {
					b := v.Messages[i].Blocks[j].Block
					if b.Kind != furl.KindResult {
						continue
					}
					edit(v, i, j, "[hidden]")
					old := req.Messages[i].Raw[b.Start:b.End]
					content := readContent(old)
					start := req.Offsets[i] + b.Start + bytes.Index(old, content)
					want = append(append(want, body[at:start]...), `"[hidden]"`...)
					at = start + len(content)
				}
			}
			want = append(want, body[at:]...)
			out, err = Codec.EncodeRequest(req, v)
			if err != nil || !bytes.Equal(out, want) {
				t.Errorf("masked body differs: %v", err)
			}
		})
	}
}

func raws(messages []json.RawMessage) [][]byte {
	out := make([][]byte, len(messages))
	for i := range messages {
		out[i] = messages[i]
	}
	return out
}

func readContent(block []byte) []byte {
	var b struct{ Content json.RawMessage }
	_ = json.Unmarshal(block, &b) // decoded before
	return b.Content
}

// compare checks the decoded message against encoding/json.
func compare(t *testing.T, raw json.RawMessage, m *furl.Message) {
	t.Helper()
	var ref struct {
		Role    string
		Content json.RawMessage
	}
	if err := json.Unmarshal(raw, &ref); err != nil {
		t.Fatal(err)
	}
	if string(m.Role) != ref.Role {
		t.Errorf("role %s, want %s", m.Role, ref.Role)
	}
	if len(ref.Content) == 0 {
		if len(m.Blocks) != 0 {
			t.Errorf("no content, but %d blocks", len(m.Blocks))
		}
		return
	}
	if ref.Content[0] == '"' {
		var s string
		if err := json.Unmarshal(ref.Content, &s); err != nil || len(m.Blocks) != 1 || m.Blocks[0].Text != s {
			t.Errorf("string content differs: %v", err)
		}
		return
	}
	var blocks []struct {
		Type, Text, Thinking, Signature, ID, Name string
		ToolUseID                                 string `json:"tool_use_id"`
		Input                                     json.RawMessage
		IsError                                   bool `json:"is_error"`
	}
	if err := json.Unmarshal(ref.Content, &blocks); err != nil {
		return // a list of something else
	}
	if len(blocks) != len(m.Blocks) {
		t.Fatalf("%d blocks, want %d", len(m.Blocks), len(blocks))
	}
	for i, want := range blocks {
		got := m.Blocks[i]
		ok := true
		switch want.Type {
		case "text":
			ok = got.Kind == furl.KindText && got.Text == want.Text
		case "thinking":
			ok = got.Kind == furl.KindThinking && got.Text == want.Thinking && got.Signature == len(want.Signature)
		case "tool_use":
			ok = got.Kind == furl.KindCall && got.ID == want.ID && got.Name == want.Name && bytes.Equal(got.Args, want.Input)
		case "tool_result":
			ok = got.Kind == furl.KindResult && got.ID == want.ToolUseID && got.Error == want.IsError
		}
		if !ok {
			t.Errorf("block %d: got %+v, want %+v", i, got, want)
		}
	}
}
