package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
)

// onPath returns the number of messages of a session, and of those on its path.
func onPath(s *Session) (all, path int) {
	for i := 1; i <= s.Log.Len(); i++ {
		if _, ok := s.Log.At(furl.Seq(i)).Body.(*furl.Message); ok {
			all++
		}
	}
	for _, r := range s.Log.Path(s.Log.Head()) {
		if _, ok := r.Body.(*furl.Message); ok {
			path++
		}
	}
	return all, path
}

// Old versions of Claude Code wrote the summary of a compaction as a message without a
// parent and without a flag, and redaction removes lines that others name as parents.
// Both follow the record before them.
func TestClaudeLostLinks(t *testing.T) {
	line := func(typ, session, uuid, parent, words string) string {
		if parent != "null" {
			parent = `"` + parent + `"`
		}
		if typ == "system" {
			return fmt.Sprintf(`{"type":"system","subtype":"informational","sessionId":%q,"uuid":%q,"parentUuid":%s,"content":%q}`, session, uuid, parent, words)
		}
		return fmt.Sprintf(`{"type":%q,"sessionId":%q,"uuid":%q,"parentUuid":%s,"message":{"id":"m%s","role":%q,"model":"claude","content":%q}}`, typ, session, uuid, parent, uuid, typ, words)
	}
	const summary = continuedWords + " that ran out of context."
	for _, tt := range []struct {
		name  string
		lines []string
		shown string
		path  int
		cuts  int
	}{
		{"summary without a parent", []string{
			line("user", "s", "u1", "null", "One."), line("assistant", "s", "a1", "u1", "Two."),
			line("user", "s", "u2", "null", summary), line("user", "s", "u3", "u2", "Go on."), line("assistant", "s", "a2", "u3", "Three."),
		}, "user " + summary + " | user Go on. | assistant Three.", 4, 1},
		{"summary whose parent is missing", []string{
			line("user", "s", "u1", "null", "One."), line("assistant", "s", "a1", "u1", "Two."),
			line("user", "s", "u2", "gone", summary), line("user", "s", "u3", "u2", "Go on."), line("assistant", "s", "a2", "u3", "Three."),
		}, "user " + summary + " | user Go on. | assistant Three.", 4, 1},
		{"summary with a new session id", []string{
			line("user", "s", "u1", "null", "One."), line("assistant", "s", "a1", "u1", "Two."),
			line("user", "r", "u2", "null", summary), line("user", "r", "u3", "u2", "Go on."), line("assistant", "r", "a2", "u3", "Three."),
		}, "user " + summary + " | user Go on. | assistant Three.", 4, 1},
		{"summary of another file", []string{
			line("user", "s", "u1", "null", summary), line("assistant", "s", "a1", "u1", "Two."),
		}, "user " + summary + " | assistant Two.", 2, 0},
		{"missing parent", []string{
			line("user", "s", "u1", "null", "One."), line("assistant", "s", "a1", "u1", "Two."),
			line("user", "s", "u2", "gone", "Three."), line("assistant", "s", "a2", "u2", "Four."),
		}, "user One. | assistant Two. | user Three. | assistant Four.", 4, 0},
		{"start after another bookkeeping record", []string{
			line("system", "s", "l1", "null", "Started."),
			line("user", "s", "u1", "l1", "One."), line("assistant", "s", "a1", "u1", "Two."),
			line("system", "s", "l2", "null", "Resumed."),
			line("user", "s", "u2", "l2", "Three."), line("assistant", "s", "a2", "u2", "Four."),
		}, "user One. | assistant Two. | user Three. | assistant Four.", 4, 0},
		{"first prompt edited", []string{
			line("system", "s", "l1", "null", "Started."),
			line("user", "s", "u1", "l1", "One."), line("assistant", "s", "a1", "u1", "Two."),
			line("user", "s", "u2", "l1", "Three."), line("assistant", "s", "a2", "u2", "Four."),
		}, "user Three. | assistant Four.", 2, 0},
		{"first prompt edited, without a parent", []string{
			line("user", "s", "u1", "null", "One."), line("assistant", "s", "a1", "u1", "Two."),
			line("user", "s", "u2", "null", "Three."), line("assistant", "s", "a2", "u2", "Four."),
		}, "user Three. | assistant Four.", 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec, err := Read("x.jsonl", strings.NewReader(strings.Join(tt.lines, "\n")))
			if err != nil {
				t.Fatal(err)
			}
			s := only(t, rec)
			wantShown(t, s, strings.Split(tt.shown, " | ")...)
			if _, path := onPath(s); path != tt.path || s.Compactions != tt.cuts {
				t.Errorf("%d messages on the path, %d compactions; want %d, %d", path, s.Compactions, tt.path, tt.cuts)
			}
		})
	}
}

// The recordings of Claude Code with their compactions in the form of old versions, and
// with lines removed, have all messages on their path. Compactions alone leave the
// session as it is.
func TestClaudeOldRecordings(t *testing.T) {
	want := map[string]int{ // messages, all of them on the path
		"37-995ebed6e4-2": 86, "43-2b48f6b6e6-0": 531, "5e-5207b424e2-0": 498, "6d-123b9a5bc6-0": 156, "78-bb8d617c08-0": 336,
		"89-7eb280e769-12": 589, "8e-a9e4a4e751-0": 426, "98-78b713483d-0": 201, "aa-5706b3c44a-0": 70, "b6-f735fbac66-0": 443,
		"bc-cb77bb88fa-1": 398, "c1-c35c964733-0": 92, "cd-95adddad32-0": 465, "e9-a4a3c25669-0": 96,
	}
	for _, file := range recordings.Files(t, "entire-cli/*.jsonl.gz") {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl.gz")
		if raceDetector && want[name] > 250 {
			continue
		}
		data := recordings.Read(t, file)
		recorded, err := Read(name, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		old, err := Read(name, bytes.NewReader(asOldVersion(t, data)))
		if err != nil {
			t.Fatal(err)
		}
		all, path := onPath(old.Sessions[0])
		if all != want[name] || path != all || old.Sessions[0].Compactions != recorded.Sessions[0].Compactions {
			t.Errorf("%s as an old version: %d messages, %d on the path, %d compactions; want %d, %d", name, all, path, old.Sessions[0].Compactions, want[name], recorded.Sessions[0].Compactions)
		}
		r := rand.New(rand.NewPCG(1, 13))
		var kept []byte
		for line := range bytes.Lines(asOldVersion(t, data)) {
			if r.IntN(20) > 0 {
				kept = append(kept, line...)
			}
		}
		cut, err := Read(name, bytes.NewReader(kept))
		if err != nil {
			t.Fatal(err)
		}
		if all, path := onPath(cut.Sessions[0]); path != all || all < want[name]*8/10 {
			t.Errorf("%s with a line in twenty removed: %d of %d messages on the path", name, path, all)
		}
	}
}

// asOldVersion returns a recording with its compactions in the form of old versions:
// the summary is a message of the user without a parent and a flag.
func asOldVersion(t *testing.T, data []byte) (old []byte) {
	for line := range bytes.Lines(data) {
		if bytes.Contains(line, []byte(`"compact_boundary"`)) {
			continue
		}
		if bytes.Contains(line, []byte(`"isCompactSummary":true`)) {
			var o map[string]json.RawMessage
			if err := json.Unmarshal(line, &o); err != nil {
				t.Fatal(err)
			}
			delete(o, "isCompactSummary")
			delete(o, "isVisibleInTranscriptOnly")
			o["parentUuid"] = json.RawMessage("null")
			line, _ = json.Marshal(o)
			line = append(line, '\n')
		}
		old = append(old, line...)
	}
	return old
}
