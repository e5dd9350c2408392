package transcript

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeTree writes files below a temporary folder.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each session stored in many files is one recording, in order. Truncated and
// unrelated files do not affect the others.
func TestWalkSessionsInPieces(t *testing.T) {
	opencode := func(session, message, part string) map[string]string {
		const usage = `"tokens":{"input":10,"output":3,"reasoning":0,"cache":{"read":0,"write":0}}`
		return map[string]string{
			session + "ses_1.json":    `{"id":"ses_1","projectID":"p","directory":"/w","title":"T","version":"1","time":{"created":1760000000000}}`,
			message + "msg_1.json":    `{"id":"msg_1","role":"user","time":{"created":1760000000000}}`,
			message + "msg_2.json":    `{"id":"msg_2","role":"assistant","modelID":"claude-sonnet-4-5","time":{"created":1760000001000},` + usage + `}`,
			message + "msg_3.json":    `{"id":"msg_3","role":"user","ti`,
			part + "msg_1/prt_1.json": `{"id":"prt_1","type":"text","text":"look"}`,
			part + "msg_2/prt_2.json": `{"id":"prt_2","type":"tool","tool":"ls","callID":"toolu_1","state":{"status":"completed","input":{},"output":"a.go","time":{"start":1,"end":2}}}`,
			part + "msg_2/prt_3.json": ``,
		}
	}
	events := map[string]string{"conv/base_state.json": `{"id":"c","agent":{"llm":{"model":"claude-sonnet-4-5"}},"workspace":{},"execution_status":"idle"}`}
	for i, e := range []string{
		`"source":"user","kind":"MessageEvent","llm_message":{"role":"user","content":[{"type":"text","text":"look"}]}`,
		`"source":"agent","kind":"ActionEvent","thought":[],"tool_call_id":"toolu_1","tool_call":{"id":"toolu_1","name":"ls","arguments":"{}"},"llm_response_id":"r"`,
		`"source":"environment","kind":"ObservationEvent","tool_call_id":"toolu_1","observation":{"content":[{"type":"text","text":"a.go"}]}`,
	} {
		events[fmt.Sprintf("conv/events/event-%05d-e%d.json", 9+i, i)] = fmt.Sprintf(`{"id":"e%d","timestamp":"2026-01-01T00:00:0%d",%s}`, i, i, e)
	}
	old := map[string]string{
		"sessions/s/events/9.json":  `{"id":9,"timestamp":"2025-01-01T00:00:00","source":"user","action":"message","args":{"content":"look"}}`,
		"sessions/s/events/10.json": `{"id":10,"timestamp":"2025-01-01T00:00:01","source":"agent","action":"message","args":{"content":"a.go"}}`,
	}
	for _, tt := range []struct {
		name, format, id, model string
		files                   map[string]string
		calls, shown            int
	}{
		{"opencode", "opencode", "ses_1", "claude-sonnet-4-5", opencode("storage/session/p/", "storage/message/ses_1/", "storage/part/"), 1, 3},
		{"opencode, early versions", "opencode", "ses_1", "claude-sonnet-4-5", opencode("storage/session/info/", "storage/session/message/ses_1/", "storage/session/part/ses_1/"), 1, 3},
		{"OpenHands", "openhands", "conv", "claude-sonnet-4-5", events, 1, 3},
		{"OpenHands before version 1", "openhands", "s", "", old, 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			for rec, err := range Walk(writeTree(t, tt.files)) {
				if err != nil {
					t.Fatal(err)
				}
				s := only(t, rec)
				if rec.Format != tt.format || s.ID != tt.id || s.Model != tt.model || s.Calls != tt.calls || s.Results != tt.calls || s.Log.State().Len() != tt.shown {
					t.Errorf("%s, session %q, model %q, %d calls, %d results, %d messages", rec.Format, s.ID, s.Model, s.Calls, s.Results, s.Log.State().Len())
				}
				checkRequests(t, s, false)
				n++
			}
			if n != 1 {
				t.Errorf("%d recordings, want 1", n)
			}
		})
	}
}

// A folder with the name of an event folder but other contents is walked like
// any other.
func TestWalkOtherEvents(t *testing.T) {
	dir := writeTree(t, map[string]string{"events/1.json": `[{"role":"system","content":"s"},{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]`, "events/2.json": `{"a":1}`})
	var formats []string
	for rec, err := range Walk(dir) {
		if err == nil {
			formats = append(formats, rec.Format)
		}
	}
	if fmt.Sprint(formats) != "[openai-chat]" {
		t.Errorf("read %v", formats)
	}
}

// The size of a file is checked before it is read, and the error names it.
func TestPieceTooLarge(t *testing.T) {
	event := func(n int, text string) string {
		return fmt.Sprintf(`{"id":%d,"source":"user","timestamp":"2026-01-01T00:00:00","action":"message","args":{"content":%q}}`, n, text)
	}
	dir := writeTree(t, map[string]string{"s/events/0.json": event(0, "look"), "s/events/1.json": event(1, strings.Repeat("x", 2000))})
	seen := 0
	rd := &Reader{MaxBytes: 1000}
	for rec, err := range rd.Walk(dir) {
		seen++
		large, ok := errors.AsType[*TooLargeError](err)
		if !ok || filepath.Base(large.Name) != "1.json" || large.Limit != 1000 {
			t.Errorf("got %v, %v", rec, err)
		}
	}
	if seen != 1 {
		t.Errorf("%d recordings, want 1", seen)
	}
}
