package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rebuild"
	"github.com/furlhq/furl/wire/anthropic"
)

// bodies rebuilds the requests of a session, with the messages that its log shows for each.
func bodies(t *testing.T, s *Session) (bodies []string) {
	t.Helper()
	records := s.Log.Records(0)
	for _, r := range records {
		if _, ok := r.Body.(*furl.Exchange); !ok {
			continue
		}
		body, err := rebuild.Body(records, r.Seq, false, rebuild.ByDigest(s.Contents))
		if errors.Is(err, rebuild.ErrNotRecorded) {
			bodies = append(bodies, "")
			continue
		}
		if err != nil {
			t.Fatalf("request of record %d: %v", r.Seq, err)
		}
		bodies = append(bodies, string(body))
		st, err := furl.Fold(s.Log, r.Parent)
		if err != nil {
			t.Fatal(err)
		}
		req, err := anthropic.Codec.DecodeRequest(body)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for i := range req.Messages {
			if m := &req.Messages[i]; len(m.Blocks) > 0 {
				want = append(want, saidIn(m))
			}
		}
		for _, sh := range st.View(furl.Model{}).Messages {
			raws, err := anthropic.Codec.EncodeMessage(sh)
			if err != nil {
				t.Fatal(err)
			}
			for _, raw := range raws {
				if m, err := anthropic.Codec.DecodeMessage(raw); err != nil {
					t.Fatal(err)
				} else if len(m.Blocks) > 0 {
					got = append(got, saidIn(m))
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("request of record %d: the log shows\n%s\nthe request has\n%s", r.Seq, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	return bodies
}

func saidIn(m *furl.Message) string {
	words := []string{string(m.Role)}
	for i := range m.Blocks {
		words = append(words, fmt.Sprintf("%s %q %s", m.Blocks[i].ID, strings.Fields(m.Blocks[i].Text), m.Blocks[i].Args))
	}
	return strings.Join(words, " ")
}

// The requests of a session of Claude Code 2.1.332, with a sub-agent, a resumption and a
// compaction, are those that it sent.
func TestClaudeRequests(t *testing.T) {
	rec, err := (&Reader{Bodies: true}).ReadFile("testdata/claude-requests.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s := rec.Sessions[0]
	list := bodies(t, s)
	if len(list) != 7 || slices.Contains(list, "") || len(rec.Notes) > 0 {
		t.Fatalf("%d requests, notes %q", len(list), rec.Notes)
	}
	for n, parts := range map[int][]string{
		0: {`{"model":"claude-opus-5-5","messages":[`, `"cache_control":{"type":"ephemeral"}}],"output_config":{"effort":"medium"}}],"system":[`, `"max_tokens":2000,"thinking":{"type":"adaptive"`},
		// What had a breakpoint is a list, and a string in the next request.
		3: {`{"role":"user","content":[{"type":"text","text":"Ask somebody.","cache_control":{"type":"ephemeral"}}]}`},
		4: {`{"role":"user","content":"Ask somebody."}`, `{"role":"system","content":"# Environment`},
		// After the compaction: a message without text, and a reply that was kept.
		5: {`{"role":"system","content":[],"output_config":{"effort":"medium"}},{"role":"assistant","content":[{"type":"text","text":"The sub-agent found nothing."}]}`},
	} {
		for _, part := range parts {
			if !strings.Contains(list[n], part) {
				t.Errorf("request %d has no %s", n+1, part)
			}
		}
	}
	for _, body := range list {
		if n := strings.Count(body, cacheControl); n != 3 || strings.Contains(body, "betas") {
			t.Errorf("%d breakpoints, want 3: %s", n, body)
		}
	}
	if len(s.Preamble) != 4 {
		t.Errorf("%d instructions and tools, want 4", len(s.Preamble))
	}
}

// A message that the file lacks: the requests that have it are estimated, and that is said.
func TestClaudeRequestsIncomplete(t *testing.T) {
	data, err := os.ReadFile("testdata/claude-requests.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	at := slices.IndexFunc(lines, func(l []byte) bool { return bytes.Contains(l, []byte("api-request-blob")) })
	rec, err := (&Reader{Bodies: true}).Read("x.jsonl", bytes.NewReader(bytes.Join(slices.Delete(lines, at, at+1), []byte("\n"))))
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, body := range bodies(t, rec.Sessions[0]) {
		if body != "" {
			known++
		}
	}
	if notes := fmt.Sprint(rec.Notes); known != 2 || !strings.Contains(notes, "estimated parts of 5 requests") {
		t.Errorf("%d requests are known, want the 2 after the compaction; notes: %s", known, notes)
	}
	if got, want := rec.Sessions[0].Messages, 23; got != want {
		t.Errorf("%d messages, want %d", got, want)
	}
}

// claudeFile writes a session as Claude Code does.
type claudeFile struct {
	lines  []string
	parent string
	n      int
}

func (f *claudeFile) line(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...))
}

func (f *claudeFile) message(role, rest, content string) {
	f.n++
	parent := "null"
	if f.parent != "" {
		parent = `"` + f.parent + `"`
	}
	uuid := fmt.Sprintf("u%d", f.n)
	f.line(`{"parentUuid":%s,"type":%q,"uuid":%q,"sessionId":"s","timestamp":"2026-11-29T10:00:%02dZ",%s"message":{"role":%q%s,"content":%s}}`,
		parent, role, uuid, f.n, map[bool]string{true: fmt.Sprintf(`"requestRef":"r%s",`, rest)}[role == "assistant"], role,
		map[bool]string{true: fmt.Sprintf(`,"id":"msg_%s","model":"claude-opus-5-5","usage":{"input_tokens":10,"output_tokens":2}`, rest)}[role == "assistant"], content)
	f.parent = uuid
}

func (f *claudeFile) user(content string) { f.message("user", "", content) }

// reply is the reply to request n.
func (f *claudeFile) reply(n int, content string) { f.message("assistant", fmt.Sprint(n), content) }

// request records request n with these messages, each with a blob.
func (f *claudeFile) request(n int, messages ...string) {
	q := newClaudeRequests()
	var tail []string
	for _, m := range messages {
		h := q.messageHash([]byte(m))
		tail = append(tail, hex.EncodeToString(h[:]))
		f.line(`{"type":"api-request-blob","sessionId":"s","hash":"%x","message":%s}`, h, m)
	}
	list, _ := json.Marshal(tail)
	f.line(`{"type":"api-request","sessionId":"s","id":"r%d","timestamp":"2026-11-29T10:00:%02dZ","shapeHash":"%x","params":{"model":"claude-opus-5-5","max_tokens":9},"keep":0,"tail":%s,"cacheControl":[{"path":["system",0],"value":{"type":"ephemeral","ttl":"1h"}}]}`,
		n, f.n, newClaudeRequests().messageHash([]byte(claudeTestShape)), list)
}

const claudeTestShape = `{"system":[{"type":"text","text":"You help."}],"tools":[{"name":"Bash"},{"name":"Web","defer_loading":true}]}`

func (f *claudeFile) shape() {
	f.line(`{"type":"api-request-shape","sessionId":"s","shapeHash":"%x","shape":%s}`, newClaudeRequests().messageHash([]byte(claudeTestShape)), claudeTestShape)
}

func (f *claudeFile) read(t *testing.T) *Recording {
	t.Helper()
	rec, err := (&Reader{Bodies: true}).Read("x.jsonl", strings.NewReader(strings.Join(f.lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Skipped) > 0 {
		t.Errorf("skipped %v", rec.Skipped)
	}
	return rec
}

func said(role, text string) string {
	return fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":%q}]}`, role, text)
}

// What the client changes in its history between two requests is a reduction if only texts
// differ, and a branch if messages do. A reply is the model's in any form.
func TestClaudeRequestsChange(t *testing.T) {
	call := `[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"ls"}}]`
	result := func(text string) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":%q}]}`, text)
	}
	f := new(claudeFile)
	f.shape()
	f.user(`"Look."`)
	f.request(1, said("user", "Look, and mind the date."))
	f.reply(1, call)
	f.user(`[{"type":"tool_result","tool_use_id":"c1","content":"a b c"}]`)
	assistant := `{"role":"assistant","content":` + call + `}`
	f.request(2, said("user", "Look, and mind the date."), assistant, result("a b c"))
	f.reply(2, `[{"type":"text","text":"Three  files."}]`)
	f.user(`"And now?"`)
	f.request(3, said("user", "Look, and mind the date."), assistant, result("[cleared]"), said("assistant", "Three files."), said("user", "And now?"))
	f.reply(3, `[{"type":"text","text":"Nothing."}]`)
	f.user(`"Again."`)
	f.request(4, said("user", "Look."), said("user", "More."), said("assistant", "Nothing."), said("user", "Again."))
	f.reply(4, `[{"type":"text","text":"Done."}]`)
	s := f.read(t).Sessions[0]
	list := bodies(t, s)
	if len(list) != 4 || slices.Contains(list, "") {
		t.Fatalf("requests %q", list)
	}
	if want := `{"model":"claude-opus-5-5","messages":[{"role":"user","content":[{"type":"text","text":"Look, and mind the date."}]}],"system":[{"type":"text","text":"You help.","cache_control":{"type":"ephemeral","ttl":"1h"}}],"tools":[{"name":"Bash"},{"name":"Web","defer_loading":true}],"max_tokens":9}`; list[0] != want {
		t.Errorf("the first request is %s\nwant %s", list[0], want)
	}
	var kinds []string
	for _, r := range s.Log.Records(0) {
		kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", r.Body), "*furl."))
	}
	want := "Message Exchange Message Message Exchange Message Reduction Message Exchange Message Head Reduction Message Message Message Exchange Message"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("records\n%s\nwant\n%s", got, want)
	}
	if len(s.Preamble) != 2 {
		t.Errorf("%d instructions and tools, want 2: a tool that is loaded later is not in the prompt", len(s.Preamble))
	}
}

// An older version wrote the beginning of the file: its messages stay as they are, and
// what follows is known.
func TestClaudeRequestsFromTheMiddle(t *testing.T) {
	f := new(claudeFile)
	f.shape()
	f.user(`"Look."`)
	f.reply(1, `[{"type":"text","text":"I looked."}]`)
	f.user(`"Go on."`)
	f.request(2, said("user", "Look. <date>"), said("assistant", "I looked."), said("user", "Go on. <date>"))
	f.reply(2, `[{"type":"text","text":"Done."}]`)
	s := f.read(t).Sessions[0]
	var words []string
	for _, r := range s.Log.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok {
			words = append(words, textOfBlocks(m))
		}
	}
	if got := strings.Join(words, "|"); got != "Look.|I looked.|Go on. <date>|Done." {
		t.Errorf("messages %s", got)
	}
}

// Hashes are those of JSON with sorted keys, of content as a list, without breakpoints.
func TestClaudeMessageHash(t *testing.T) {
	q := newClaudeRequests()
	want := sha256.Sum256([]byte(`{"content":[{"a":{"b":[1,null],"c":"x"},"text":"hé\n","type":"text"}],"role":"user"}`))
	for _, raw := range []string{
		`{"role":"user", "content":[{"type":"text","cache_control":{"type":"ephemeral"},"text":"hé\n","a":{"c":"x","b":[1, null]}}]}`,
		`{"content":[{"text":"hé\n","type":"text","a":{"b":[1,null],"cache_control":1,"c":"x"}}],"role":"user"}`,
	} {
		if got := q.messageHash([]byte(raw)); got != want {
			t.Errorf("%s has another hash", raw)
		}
	}
	if got, want := q.messageHash([]byte(`{"role":"user","content":"x"}`)), sha256.Sum256([]byte(`{"content":[{"text":"x","type":"text"}],"role":"user"}`)); got != want {
		t.Error("a string has another hash than its list")
	}
}
