package openai

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/protocol"
)

// dialogues returns the recorded dialogues of tau-bench as request bodies of
// Chat Completions.
func dialogues(t testing.TB) [][]byte {
	var bodies [][]byte
	for _, file := range recordings.Files(t, "tau-bench/*.json.gz") {
		var runs []struct{ Traj json.RawMessage }
		if err := json.Unmarshal(recordings.Read(t, file), &runs); err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			bodies = append(bodies, append(append([]byte(`{"model":"gpt-4o","messages":`), run.Traj...), '}'))
		}
	}
	return bodies
}

// rollouts returns the items of each Codex rollout, by file, as one request
// of Responses each: all items, without compactions.
func rollouts(t testing.TB) map[string][]byte {
	bodies := make(map[string][]byte)
	for _, file := range recordings.Files(t, "*/*.codex.jsonl.gz") {
		body := []byte(`{"model":"gpt-5-codex","input":[`)
		for line := range bytes.Lines(recordings.Read(t, file)) {
			var r struct {
				Type    string
				Payload json.RawMessage
			}
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if r.Type != "response_item" {
				continue
			}
			if body[len(body)-1] != '[' {
				body = append(body, ',')
			}
			body = append(body, r.Payload...)
		}
		bodies[filepath.Base(file)] = append(body, "]}"...)
	}
	return bodies
}

func count(req *protocol.Request) (calls, results, failed int) {
	for i := range req.Messages {
		for _, b := range req.Messages[i].Blocks {
			switch b.Kind {
			case furl.KindCall:
				calls++
			case furl.KindResult:
				results++
			}
			if b.Error {
				failed++
			}
		}
	}
	return calls, results, failed
}

func TestRecordedDialogues(t *testing.T) {
	calls, results, messages := 0, 0, 0
	for i, body := range dialogues(t) {
		req := request(t, Chat, string(body))
		unchanged(t, Chat, req)
		c, r, _ := count(req)
		calls, results, messages = calls+c, results+r, messages+len(req.Messages)
		if err := Chat.Validate(req, furl.Model{}); err != nil {
			t.Errorf("dialogue %d: %v", i, err)
		}
		changed(t, Chat, req, i%len(req.Messages), "[masked]")
	}
	if calls != 1164 || results != 1164 || messages != 5308 {
		t.Errorf("%d messages, %d calls, %d results, want 5308, 1164, 1164", messages, calls, results)
	}
}

func TestRecordedRollouts(t *testing.T) {
	// Calls and results as counted when the recordings were chosen, and the
	// results whose wrapper contains a non-zero exit code.
	want := map[string][3]int{
		"79-6eaddfe2f9-0.codex.jsonl.gz": {528, 528, 28},
		"1f-4427577930-0.codex.jsonl.gz": {441, 441, 14},
		"33-5841c2d678-0.codex.jsonl.gz": {317, 315, 21},
	}
	for file, body := range rollouts(t) {
		t.Run("A6 "+file, func(t *testing.T) {
			req := request(t, Responses, string(body))
			unchanged(t, Responses, req)
			calls, results, failed := count(req)
			if got, known := [3]int{calls, results, failed}, want[file]; known != [3]int{} && got != known {
				t.Errorf("%d calls, %d results, %d of them failed, want %v", calls, results, failed, known)
			}
			for k := 0; k < len(req.Messages); k += 41 {
				changed(t, Responses, req, k, `{"cmd":"[shortened]"}`)
			}
			refused := refusal(t, Responses.Validate(req, furl.Model{}))
			if calls == results && refused != nil {
				t.Errorf("refused: %v", refused)
			} else if calls != results && refused == nil {
				t.Error("calls without outputs are not refused")
			}
			inChat(t, req)
		})
	}
}

// inChat encodes a rollout in Chat Completions and checks that the pairs are
// intact.
func inChat(t *testing.T, req *protocol.Request) {
	elems, err := EncodeChat(identity(req))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"messages": elems})
	if err != nil {
		t.Fatal(err)
	}
	chat := request(t, Chat, string(body))
	a, b, _ := count(req)
	c, d, _ := count(chat)
	if a != c || b != d {
		t.Errorf("%d calls and %d results become %d and %d", a, b, c, d)
	}
	if err := Chat.Validate(chat, furl.Model{}); err != nil && a == b {
		t.Errorf("in Chat Completions: %v", err)
	}
}
