package transcript

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// A resume of Gemini CLI 0.61 writes all messages again without tokens, models and calls. Those of the
// messages that they replace count, each once.
func TestGeminiResumed(t *testing.T) {
	s := only(t, fixture(t, "gemini-resumed.jsonl"))
	var sum furl.Usage
	ex, at := exchanges(s)
	for _, x := range ex {
		sum = sum.Add(x.Usage)
	}
	// The sum of the tokens of the 8 replies.
	if want := (furl.Usage{Input: 59252, CacheRead: 59249, Output: 262, Reasoning: 7}); sum != want || len(ex) != 8 || s.Calls != 5 || s.Results != 5 {
		t.Errorf("%d replies, %d calls, %d results, usage %+v, want %+v", len(ex), s.Calls, s.Results, sum, want)
	}
	if ex[0].Model != "gemini-2.5-pro" || at[0].Format("15:04:05") != "17:03:09" {
		t.Errorf("the first reply is of %s at %v", ex[0].Model, at[0])
	}
	images := 0
	for _, r := range s.Log.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok {
			for _, b := range m.Blocks {
				images += len(b.Media)
			}
		}
	}
	if images != 1 {
		t.Errorf("%d images, want the tool's once", images)
	}
	checkRequests(t, s, true)
}

// A file that begins with a resume has calls and results only among the parts.
func TestGeminiPartsOnly(t *testing.T) {
	rec, err := Read("chat.jsonl", strings.NewReader(`{"sessionId":"s","projectHash":"h","startTime":"2026-11-27T17:03:08.992Z","kind":"main"}
{"$set":{"messages":[{"id":"1","type":"user","content":[{"text":"Look."}]},{"id":"2","type":"gemini","content":[{"text":"Yes."},{"functionCall":{"id":"c","name":"ls","args":{"path":"."}}}]},{"id":"2_r","type":"user","content":[{"functionResponse":{"id":"c","name":"ls","response":{"error":"no"}}}]},{"id":"3","type":"user","content":[{"functionResponse":{"id":"c","name":"ls","response":{"error":"no"}}}]}]}}
{"id":"4","timestamp":"2026-11-27T17:03:10.224Z","type":"gemini","content":"Nothing there.","tokens":{"input":5,"output":3,"cached":0,"thoughts":0},"model":"gemini-2.5-pro"}
`))
	if err != nil {
		t.Fatal(err)
	}
	s := only(t, rec)
	wantShown(t, s, "user Look.", "assistant Yes. call:c", "tool result:c", "assistant Nothing there.")
	checkRequests(t, s, true)
}
