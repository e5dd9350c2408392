package transcript

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// sumUsage adds up what requests and the compactions of a session used.
func sumUsage(s *Session) (requests int, sum furl.Usage) {
	add := func(u furl.Usage) {
		sum.Input += u.Input
		sum.CacheRead += u.CacheRead
		sum.CacheWrite += u.CacheWrite
		sum.Output += u.Output
		sum.Reasoning += u.Reasoning
	}
	for i := 1; i <= s.Log.Len(); i++ {
		switch b := s.Log.At(furl.Seq(i)).Body.(type) {
		case *furl.Exchange:
			requests++
			add(b.Usage)
		case *furl.Reduction:
			if b.Summary != nil {
				add(b.Summary.Usage)
			}
		}
	}
	return requests, sum
}

// copyTo copies fixtures to the places that an agent gives them, and writes
// other files.
func copyTo(t *testing.T, dir string, fixtures, texts map[string]string) {
	t.Helper()
	write := func(path string, data []byte) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, name := range fixtures {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		write(path, data)
	}
	for path, text := range texts {
		write(path, []byte(text))
	}
}

// allSessions reads a folder in which every file belongs to an agent.
func allSessions(t *testing.T, dir string) (all []*Session) {
	t.Helper()
	for rec, err := range Walk(dir) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rec.Sessions...)
	}
	return all
}

// The usage is the sum over the file's usage.record lines, 12 of them, each of
// which the file repeats in up to two other events. One was for the compaction.
func TestKimi(t *testing.T) {
	s := only(t, fixture(t, "kimi.jsonl"))
	if s.Project != "/home/mira/quay" || s.Wire != furl.FormatAnthropic || s.Compactions != 1 || s.Calls != 8 || s.Results != 7 {
		t.Errorf("project %q, wire %q, %d compactions, %d calls, %d results", s.Project, s.Wire, s.Compactions, s.Calls, s.Results)
	}
	n, sum := sumUsage(s)
	if want := (furl.Usage{CacheRead: 205230 + 22307, CacheWrite: 53209 + 1377, Output: 254 + 15}); n != 11 || sum != want {
		t.Errorf("%d requests used %+v, want 11 and %+v", n, sum, want)
	}
	wantShown(t, s, "user Look at this folder.", "user The conversation so far has been compacted to free up context. What follows is your own wo\n## Summary: listed, 3 lines.",
		"user "+kimiContinue, "user Do the second task.", "user Do it rightly.", "assistant I try. call:toolu_9", "user result:toolu_9", "user Go on.",
		"assistant call:toolu_10", "user result:toolu_10", "assistant Done.")
	checkRequests(t, s, true)
}

// An image that the log names by its digest is in a file beside it, or in the
// copy of the message.
func TestKimiImages(t *testing.T) {
	const ref = "blobref:image/png;3e9e61ac80c3dc2f30ac7cf7b24f187bcd0155ba7c05394eaeb377242fd473b6"
	log := func(url string) string {
		return `{"type":"metadata","protocol_version":"1.5","created_at":1}
{"type":"context.append_message","agentId":"main","message":{"role":"user","id":"p","content":[{"type":"text","text":"Look."},{"type":"image_url","imageUrl":{"url":"` + url + `"}}]},"time":1795799283213}
`
	}
	copied := `{"type":"agent.message.appended","message":{"message":{"role":"user","content":[{"type":"image_url","imageUrl":{"url":"data:image/png;base64,Q09QWQ=="}}]},"meta":{"promptId":"p"}},"time":1795799283214}`
	blobs := map[string]string{"blobs/3e9e61ac80c3dc2f30ac7cf7b24f187bcd0155ba7c05394eaeb377242fd473b6": "FILE", "secret": "SECRET"}
	for _, tt := range []struct {
		name, log, want string
		blobs           map[string]string
	}{
		{"a file", log(ref), "RklMRQ==", blobs},
		{"a copy", log(ref) + copied, "Q09QWQ==", nil},
		{"neither", log(ref), "", nil},
		{"a path", log("blobref:image/png;../secret"), "", blobs},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			copyTo(t, dir, nil, map[string]string{"wire.jsonl": tt.log})
			copyTo(t, dir, nil, tt.blobs)
			rec, err := ReadFile(filepath.Join(dir, "wire.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			raw := string(rec.Sessions[0].Log.At(1).Body.(*furl.Message).Raw)
			if tt.want == "" {
				if strings.Contains(raw, "image") || len(rec.Notes) != 1 || rec.Notes[0] != "1 image not in the recording" {
					t.Errorf("read %s, notes %q", raw, rec.Notes)
				}
			} else if !strings.Contains(raw, tt.want) {
				t.Errorf("read %s, want %s in it", raw, tt.want)
			}
		})
	}
}

// A session is a folder. Other files in it are skipped, also copies of
// recordings.
func TestKimiFolder(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, dir, map[string]string{
		"wd_quay/session_7/agents/main/wire.jsonl":                 "kimi.jsonl",
		"wd_quay/session_7/agents/agent-0/wire.jsonl":              "kimi-agent.jsonl",
		"wd_quay/session_7/agents/agent-1/wire.jsonl":              "kimi-agent.jsonl",
		"wd_quay/session_7/agents/main/tool-results/toolu_1.jsonl": "kimi-agent.jsonl",
	}, map[string]string{
		"wd_quay/session_7/state.json":         `{"id":"session_7","cwd":"/home/mira/quay","title":"Count lines","forkedFrom":"session_6","agents":{"main":{},"agent-1":{"parentAgentId":"agent-0"}}}`,
		"wd_quay/session_7/notify/state.json":  `{"enabled":false}`,
		"wd_quay/session_7/logs/kimi-code.log": "INFO",
	})
	got := make(map[string]string)
	for _, s := range allSessions(t, dir) {
		got[s.ID] = s.Parent
		if s.ID == "session_7" && (s.Title != "Count lines" || s.ForkOf != "session_6") {
			t.Errorf("title %q, fork of %q", s.Title, s.ForkOf)
		}
		if n, sum := sumUsage(s); s.Parent == "session_7" && (n != 1 || sum != furl.Usage{CacheWrite: 18305, Output: 12}) {
			t.Errorf("%s: %d requests used %+v", s.ID, n, sum)
		}
	}
	if len(got) != 3 || got["session_7/agent-0"] != "session_7" || got["session_7/agent-1"] != "session_7/agent-0" {
		t.Errorf("read %v", got)
	}
}

// A fork of Kimi Code 2.1.0 repeats all events of its origin, and continues after the event "forked". The usage is that
// of the provider; that of the last request is the fork's own.
func TestKimiFork(t *testing.T) {
	fork := fixture(t, "kimi-fork.jsonl")
	got := contentsOf(only(t, fork))
	asked := slices.DeleteFunc(got.asked, func(text string) bool { return strings.HasPrefix(text, "<system-reminder>") })
	if strings.Join(asked, "|") != "First task: look around|Second task|Fork task" {
		t.Errorf("asked %q", asked)
	}
	if want := (furl.Usage{Output: 65, CacheRead: 44402, CacheWrite: 44591}); got.requests != 4 || got.calls != 1 || got.usage != want {
		t.Errorf("%d requests, %d calls, used %+v, want %+v", got.requests, got.calls, got.usage, want)
	}
	text := string(fixtures(t)["kimi-fork.jsonl"])
	origin, _, ok := strings.Cut(text, `{"type":"forked"`)
	ids, forked := repliesIn(t, origin), repliesIn(t, text)
	if !ok || len(ids) != 3 || !slices.Equal(ids, forked[:3]) || slices.Contains(ids, forked[3]) {
		t.Errorf("%x are not the first of %x", ids, forked)
	}
}

// Events in an impossible order are reported, not sent.
func TestKimiBroken(t *testing.T) {
	rec, err := Read("wire.jsonl", strings.NewReader(`{"type":"metadata","protocol_version":"1.5","created_at":1}
{"type":"context.append_loop_event","agentId":"main","event":{"type":"tool.result","toolCallId":"gone","result":{"output":"x"}},"time":1}
{"type":"context.append_loop_event","agentId":"main","event":{"type":"content.part","stepUuid":"s","part":{"type":"text","text":"x"}},"time":2}
{"type":"context.undo","agentId":"main","count":1e300,"time":3}
{"type":"context.apply_compaction","agentId":"main","keptUserMessageCount":-4,"keptHeadUserMessageCount":9,"summary":{},"time":4}
{"type":"context.append_message","agentId":"main","message":{"role":"robot","content":7},"time":5}
{"type":"context.append_message","agentId":"main","message":{"role":"user","content":"Go."},"time":6}
{"type":"usage.record","agentId":"main","model":"m","usage":{"inputOther":1200,"output":30},"usageScope":"session","time":7}
{"type":"context.append_loop_event","agentId":"main","event":{"type":"step.begin","uuid":"s"},"time":8}
{"type":"context.append_loop_event","agentId":"main","event":{"type":"content.part","stepUuid":"s","part":{"type":"text","text":"Yes."}},"time":9}
{"type":"context.append_loop_event","agentId":"main","event":{"type":"step.end","uu`))
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Skipped) != 5 || len(rec.Notes) != 1 || rec.Notes[0] != "skipped 1 request outside the conversation: 1,200 input and 30 output tokens" {
		t.Errorf("skipped %v, notes %q", rec.Skipped, rec.Notes)
	}
	wantShown(t, rec.Sessions[0], "user Go.", "assistant Yes.")
}

func TestKimiMemory(t *testing.T) {
	_, err := (&Reader{MaxMemory: 20_000}).ReadFile("testdata/kimi.jsonl")
	if _, ok := errors.AsType[*TooMuchMemoryError](err); !ok {
		t.Errorf("read more than the limit: %v", err)
	}
}
