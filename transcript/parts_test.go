package transcript

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// largeClaude is a session of Claude Code: turns with a call each, some requests recorded, and a compaction
// before each turn whose number is a multiple of every, none for 0.
func largeClaude(turns, every, size int) []byte {
	var b bytes.Buffer
	parent, n := "null", 0
	add := func(format string, args ...any) {
		n++
		fmt.Fprintf(&b, `{"sessionId":"s","uuid":"u%d","parentUuid":%s,"timestamp":"2026-11-01T10:%02d:%02d.000Z",%s}`+"\n", n, parent, n/60%60, n%60, fmt.Sprintf(format, args...))
		parent = fmt.Sprintf(`"u%d"`, n)
	}
	text := strings.Repeat("word ", size/5)
	hash := newClaudeRequests().messageHash([]byte(claudeTestShape))
	fmt.Fprintf(&b, `{"type":"api-request-shape","sessionId":"s","shapeHash":"%x","shape":%s}`+"\n", hash, claudeTestShape)
	for i := range turns {
		if every > 0 && i > 0 && i%every == 0 {
			parent = "null"
			add(`"type":"system","subtype":"compact_boundary","logicalParentUuid":"u%d","compactMetadata":{"trigger":"auto","preTokens":1000}`, n)
			add(`"type":"user","isCompactSummary":true,"message":{"role":"user","content":"what was said before turn %d"}`, i)
		}
		add(`"type":"user","message":{"role":"user","content":"do %d"}`, i)
		if i == 0 || every > 0 && i%every == 0 {
			first := `{"role":"user","content":[`
			if i > 0 {
				first += fmt.Sprintf(`{"type":"text","text":"what was said before turn %d"},`, i)
			}
			first += fmt.Sprintf(`{"type":"text","text":"do %d"}]}`, i)
			h := newClaudeRequests().messageHash([]byte(first))
			fmt.Fprintf(&b, `{"type":"api-request-blob","sessionId":"s","hash":"%x","message":%s}`+"\n", h, first)
			fmt.Fprintf(&b, `{"type":"api-request","sessionId":"s","id":"r%d","shapeHash":"%x","params":{"model":"claude-opus-4-6"},"keep":0,"tail":["%x"]}`+"\n", i, hash, h)
		}
		add(`"type":"assistant","requestRef":"r%[1]d","message":{"id":"m%[1]d","role":"assistant","model":"claude-opus-4-6","content":[{"type":"tool_use","id":"toolu_%[1]d","name":"Read","input":{"file_path":"/f%[1]d"}}],"usage":{"input_tokens":%[1]d,"output_tokens":9}}`, i)
		add(`"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"%d %s"}]}`, i, i, text)
	}
	return b.Bytes()
}

// largeCodex is the same as a rollout of Codex.
func largeCodex(turns, every, size int) []byte {
	var b bytes.Buffer
	n := 0
	add := func(typ, format string, args ...any) {
		n++
		fmt.Fprintf(&b, `{"timestamp":"2026-11-01T10:%02d:%02d.000Z","type":%q,"payload":%s}`+"\n", n/60%60, n%60, typ, fmt.Sprintf(format, args...))
	}
	add("session_meta", `{"id":"s","cwd":"/w","base_instructions":{"text":"be brief"}}`)
	text, total := strings.Repeat("word ", size/5), 0
	for i := range turns {
		add("turn_context", `{"cwd":"/w","model":"gpt-5.5"}`)
		if every > 0 && i > 0 && i%every == 0 {
			add("compacted", `{"message":"what was said before turn %d"}`, i)
		}
		add("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"do %d"}]}`, i)
		add("response_item", `{"type":"function_call","name":"shell","arguments":"{}","call_id":"call_%d"}`, i)
		total += i + 1
		add("event_msg", `{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"output_tokens":%d,"total_tokens":%d},"last_token_usage":{"input_tokens":%d,"output_tokens":1,"total_tokens":%d}}}`, total, i+1, total+i+1, i+1, i+2)
		add("response_item", `{"type":"function_call_output","call_id":"call_%d","output":"%d %s"}`, i, i, text)
	}
	return b.Bytes()
}

// partsTotal is what the parts of a file must have in common with the whole.
type partsTotal struct {
	messages, calls, results, compactions, requests, prompt int
	models                                                  string
}

func (c *partsTotal) add(rec *Recording) {
	for _, s := range rec.Sessions {
		c.messages += s.Messages
		c.calls += s.Calls
		c.results += s.Results
		c.compactions += s.Compactions
		for _, r := range s.Log.Records(0) {
			if ex, ok := r.Body.(*furl.Exchange); ok {
				c.requests++
				c.prompt += ex.Usage.Prompt()
				if !strings.Contains(c.models, ex.Model) || ex.Model == "" {
					c.models += ex.Model + ";"
				}
			}
		}
	}
}

// A large session is read in parts that have all of it: at compactions, or at messages of
// the user if there are none. Each is a session that a provider accepts.
func TestLargeSessionsAreReadInParts(t *testing.T) {
	for _, test := range []struct {
		name string
		data []byte
		say  string // a note of the later parts
	}{
		{"Claude Code, compacted", largeClaude(400, 10, 60_000), "it begins at a compaction"},
		{"Claude Code, never compacted", largeClaude(400, 0, 60_000), "it begins at a message of the user"},
		{"Codex, compacted", largeCodex(400, 10, 60_000), "it begins at a compaction"},
		{"Codex, never compacted", largeCodex(400, 0, 60_000), "it begins at a message of the user"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "s.jsonl")
			if err := os.WriteFile(file, test.data, 0o600); err != nil {
				t.Fatal(err)
			}
			whole, err := ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want, got partsTotal
			want.add(whole)
			if whole.Part != 0 || want.requests != 400 {
				t.Fatalf("as a whole: part %d, %+v", whole.Part, want)
			}
			reader := Reader{MaxMemory: 16 << 20}
			if _, err := reader.ReadFile(file); err == nil {
				t.Fatal("the memory limit does not refuse it as a whole")
			}
			parts, more := 0, true
			for rec, err := range reader.Walk(file) {
				if err != nil {
					t.Fatal(err)
				}
				parts++
				got.add(rec)
				if !more || rec.Part != parts || len(rec.Sessions) != 1 {
					t.Fatalf("part %d is %d with %d sessions, more before it: %v", parts, rec.Part, len(rec.Sessions), more)
				}
				more = rec.More
				s, id := rec.Sessions[0], "s"
				if parts > 1 {
					id = fmt.Sprintf("s-part%d", parts)
					if notes := strings.Join(rec.Notes, "\n"); !strings.Contains(notes, test.say) {
						t.Errorf("part %d: notes %q, want %q", parts, notes, test.say)
					}
				}
				if s.ID != id || s.Parent != "" || s.Project != whole.Sessions[0].Project {
					t.Errorf("part %d: session %q of %q in %q", parts, s.ID, s.Parent, s.Project)
				}
				if got, want := len(s.Preamble), len(whole.Sessions[0].Preamble); got != want && test.say == "it begins at a compaction" || want == 0 {
					t.Errorf("part %d: %d instructions and tools, want %d", parts, got, want)
				}
				checkRequests(t, s, false)
			}
			if parts < 3 || more || got != want {
				t.Errorf("%d parts, more %v: %+v, want %+v", parts, more, got, want)
			}
		})
	}
}

// A file in a folder, and one that fits, are read the same way.
func TestPartsOfFolders(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string][]byte{"large.jsonl": largeClaude(400, 10, 60_000), "small.jsonl": largeClaude(30, 10, 4_000)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := make(map[string]int)
	reader := Reader{MaxMemory: 16 << 20}
	for rec, err := range reader.Walk(dir) {
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(rec.File)] = cmp.Or(rec.Part, -1)
	}
	if files["large.jsonl"] < 3 || files["small.jsonl"] != -1 {
		t.Errorf("parts: %v", files)
	}
}
