package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
)

// The rollouts of a thread, of what followed a revert in it, and of a fork of that.
const (
	rolloutFirst  = "rollout-2026-11-27T16-47-42-01a21de7-d5e5-7080-a890-4c17b3e14ede.jsonl"
	rolloutRevert = "rollout-2026-11-27T16-47-43-01a21de7-d5e5-7080-a890-4c17b3e14ede_01a21de7-d93b-7732-b60d-28e0c91d468d.jsonl"
	rolloutFork   = "rollout-2026-11-27T16-47-43-01a21de7-d9dd-72c1-891a-512ea55e74dd.jsonl"
	rolloutParent = "rollout-2026-11-29T08-39-17-01a22675-653f-7d32-9038-d150b928c2ce.jsonl"
	rolloutAgent  = "rollout-2026-11-29T08-39-24-01a22675-7ecc-7901-a8df-5a51fbdee5ea.jsonl"
)

// codexHome puts rollouts into the folders of a home, and returns the home.
func codexHome(t *testing.T, files map[string]string) string {
	t.Helper()
	home := t.TempDir()
	for name, from := range files {
		text := []byte(from)
		if !strings.HasPrefix(from, "{") {
			var err error
			if text, err = os.ReadFile(filepath.Join("testdata", from)); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// saysOf returns the texts of the current branch, without those of Codex.
func saysOf(s *Session) (list []string) {
	v := s.Log.State().View(furl.Model{})
	for i := range v.Messages {
		for _, b := range v.Messages[i].Blocks {
			if text := b.Words(); b.Block.Kind == furl.KindText && !strings.HasPrefix(text, "<") {
				list = append(list, text)
			}
		}
	}
	return list
}

// usageIn sums the usage of requests, each once by the id of its response, and that of
// compactions.
func usageIn(recs ...*Recording) (sum furl.Usage, requests int) {
	known := make(map[string]bool)
	add := func(u furl.Usage) {
		sum.Input += u.Input
		sum.CacheRead += u.CacheRead
		sum.CacheWrite += u.CacheWrite
		sum.Output += u.Output
		sum.Reasoning += u.Reasoning
	}
	for _, rec := range recs {
		for _, s := range rec.Sessions {
			for _, r := range s.Log.Records(0) {
				switch b := r.Body.(type) {
				case *furl.Exchange:
					if !known[b.ResponseID] {
						known[b.ResponseID] = true
						add(b.Usage)
						requests++
					}
				case *furl.Reduction:
					if id := fmt.Sprint(b.Before, b.After, b.Summary.Usage); !known[id] {
						known[id] = true
						add(b.Summary.Usage)
						requests++
					}
				}
			}
		}
	}
	return sum, requests
}

// recordedUsage sums the usage records of files.
func recordedUsage(t *testing.T, files ...string) (sum furl.Usage, requests int) {
	t.Helper()
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var o struct {
				Type    string
				Payload struct {
					Usage struct {
						In      int `json:"input_tokens"`
						Cached  int `json:"cached_input_tokens"`
						Written int `json:"cache_write_input_tokens"`
						Out     int `json:"output_tokens"`
						Thought int `json:"reasoning_output_tokens"`
					}
				}
			}
			if err := json.Unmarshal([]byte(line), &o); err != nil {
				t.Fatal(err)
			}
			if u := o.Payload.Usage; o.Type == "token_usage_record" {
				requests++
				sum.Input += u.In - u.Cached - u.Written
				sum.CacheRead += u.Cached
				sum.CacheWrite += u.Written
				sum.Output += u.Out
				sum.Reasoning += u.Thought
			}
		}
	}
	return sum, requests
}

func walkAll(t *testing.T, paths ...string) (list []*Recording) {
	t.Helper()
	for rec, err := range Walk(paths...) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, rec)
	}
	return list
}

// A thread after a revert is one session, wherever its rollouts are. The undone turns are a branch.
func TestCodexRevert(t *testing.T) {
	home := codexHome(t, map[string]string{
		"archived_sessions/" + rolloutFirst:    rolloutFirst,
		"sessions/2026/11/28/" + rolloutRevert: rolloutRevert,
		"sessions/2026/12/01/" + rolloutFork:   rolloutFork,
	})
	recs := walkAll(t, home)
	if len(recs) != 2 {
		t.Fatalf("%d recordings, want the thread and its fork", len(recs))
	}
	thread, fork := recs[0].Sessions[0], recs[1].Sessions[0]
	want := []string{"Do the second task.", "Do the third task.", "Summary: the user asked to look at the folder; notes.txt has 3 lines.", "After the revert.", "After compaction.", "Third done."}
	if got := saysOf(thread); !cmp.Equal(got[len(got)-6:], want) {
		t.Errorf("the thread says\n%s", cmp.Diff(want, got[len(got)-6:]))
	}
	undone := 0
	for _, r := range thread.Log.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok && strings.Contains(string(m.Raw), "Now with another model.") {
			undone++
		}
	}
	if undone != 1 {
		t.Errorf("the undone turn is there %d times, want once", undone)
	}
	if got := saysOf(fork); !cmp.Equal(got[len(got)-8:], append(want, "In the fork.", "Other model done.")) {
		t.Errorf("the fork says %q", got)
	}
	for _, r := range fork.Log.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok && strings.Contains(string(m.Raw), "Now with another model.") {
			t.Error("the fork has the turn that was undone before it")
		}
	}
	got, n := usageIn(recs...)
	sum, requests := recordedUsage(t, rolloutFirst, rolloutRevert, rolloutFork)
	if got != sum || n != requests {
		t.Errorf("usage %+v of %d requests, the files have %+v of %d", got, n, sum, requests)
	}
	for _, rec := range recs {
		if len(rec.Skipped)+len(rec.Notes) != 0 {
			t.Errorf("skipped %v, notes %v", rec.Skipped, rec.Notes)
		}
	}

	// What was imported before the revert is the beginning of what is imported after it.
	before, err := ReadFile(filepath.Join(home, "archived_sessions", rolloutFirst))
	if err != nil {
		t.Fatal(err)
	}
	first, all := before.Sessions[0].Log, thread.Log
	if first.Len() >= all.Len() || first.State().Len() == 0 {
		t.Fatalf("%d records before, %d after", first.Len(), all.Len())
	}
	for i := 1; i <= first.Len(); i++ {
		a, b := first.At(furl.Seq(i)), all.At(furl.Seq(i))
		if a.Parent != b.Parent || !a.At.Equal(b.At) {
			t.Fatalf("record %d follows %d at %v before the revert, %d at %v after it", i, a.Parent, a.At, b.Parent, b.At)
		}
	}

	// Only what is below the folder that is read replaces a rollout.
	if recs := walkAll(t, filepath.Join(home, "archived_sessions")); len(recs) != 1 || recs[0].Sessions[0].Log.Len() != first.Len() {
		t.Errorf("the archive alone has %d recordings", len(recs))
	}
}

// Without the rollout that it continues, a rollout has only what is its own, and says so.
func TestCodexBaseMissing(t *testing.T) {
	home := codexHome(t, map[string]string{"sessions/2026/12/01/" + rolloutFork: rolloutFork})
	rec := walkAll(t, home)[0]
	if got := saysOf(rec.Sessions[0]); !cmp.Equal(got, []string{"In the fork.", "Other model done."}) {
		t.Errorf("it says %q", got)
	}
	want := []string{"the first 91 records are missing: they are in rollout 01a21de7-d93b-7732-b60d-28e0c91d468d, which is not in the folder of this one"}
	if !cmp.Equal(rec.Notes, want) {
		t.Errorf("notes %q", rec.Notes)
	}
}

// rolloutText writes a rollout: a header with these fields, and a message of the user and a reply for
// each text. The records of each text have two ordinals.
func rolloutText(id string, first int, head string, texts ...string) string {
	var b strings.Builder
	line := func(typ, payload string) {
		fmt.Fprintf(&b, `{"timestamp":"2026-11-01T10:00:00Z","ordinal":%d,"type":%q,"payload":{%s}}`+"\n", first, typ, payload)
		first++
	}
	line("session_meta", fmt.Sprintf(`"id":%q,"timestamp":"2026-11-01T10:00:00Z","cwd":"/p"%s`, id, head))
	for _, text := range texts {
		line("response_item", fmt.Sprintf(`"type":"message","role":"user","content":[{"type":"input_text","text":%q}]`, text))
		line("response_item", fmt.Sprintf(`"type":"message","role":"assistant","content":[{"type":"output_text","text":"%s done"}]`, text))
	}
	return b.String()
}

func uuid(n int) string { return fmt.Sprintf("019f0000-0000-7000-8000-%012d", n) }

func baseOf(id string, end int) string {
	return fmt.Sprintf(`,"history_base":{"thread_id":%q,"end_ordinal_exclusive":%d,"end_byte_offset":1}`, id, end)
}

// A fork of a fork, and reverts: in a fork, to before the fork, and twice to the same place.
func TestCodexLineage(t *testing.T) {
	p, f, g := uuid(1), uuid(2), uuid(3)
	name := func(minute int, ids ...string) string {
		return fmt.Sprintf("sessions/2026/11/01/rollout-2026-11-01T10-%02d-00-%s.jsonl", minute, strings.Join(ids, "_"))
	}
	home := codexHome(t, map[string]string{
		name(0, p):           rolloutText(p, 0, "", "p1", "p2", "p3"),                                    // ordinals 0 to 6
		name(1, f):           rolloutText(f, 5, `,"forked_from_id":"`+p+`"`+baseOf(p, 5), "f1", "f2"),    // 5 to 9
		name(2, f, uuid(12)): rolloutText(f, 8, baseOf(f, 8), "f3"),                                      // f2 is undone
		name(3, f, uuid(13)): rolloutText(f, 3, baseOf(p, 3), "f4"),                                      // p2 and all later turns are
		name(4, f, uuid(14)): rolloutText(f, 3, baseOf(p, 3), "f5"),                                      // f4 is
		name(5, g):           rolloutText(g, 11, `,"forked_from_id":"`+f+`"`+baseOf(uuid(12), 11), "g1"), // of f before its second revert
	})
	want := map[string]string{
		p: "p1 p2 p3",
		f: "p1 f5",
		g: "p1 p2 f1 f3 g1",
	}
	messages := map[string]int{p: 6, f: 2 * (2 + 5), g: 10}
	recs := walkAll(t, home)
	if len(recs) != 3 {
		t.Fatalf("%d recordings, want 3", len(recs))
	}
	for _, rec := range recs {
		s := rec.Sessions[0]
		var said []string
		for _, text := range saysOf(s) {
			if !strings.HasSuffix(text, " done") {
				said = append(said, text)
			}
		}
		if got := strings.Join(said, " "); got != want[s.ID] || len(rec.Notes) > 0 {
			t.Errorf("session %s says %s, want %s; notes %v", s.ID, got, want[s.ID], rec.Notes)
		}
		if s.Messages != messages[s.ID] {
			t.Errorf("session %s has %d messages, want %d", s.ID, s.Messages, messages[s.ID])
		}
	}
}

// Headers that refer to themselves or to one another end.
func TestCodexBaseCycle(t *testing.T) {
	a, b := uuid(1), uuid(2)
	home := codexHome(t, map[string]string{
		"sessions/rollout-2026-11-01T10-00-00-" + a + ".jsonl":                 rolloutText(a, 5, baseOf(b, 5), "a"),
		"sessions/rollout-2026-11-01T10-01-00-" + b + ".jsonl":                 rolloutText(b, 5, baseOf(a, 5), "b"),
		"sessions/rollout-2026-11-01T10-02-00-" + uuid(3) + ".jsonl":           rolloutText(uuid(3), -1, baseOf(uuid(3), -7), "c"),
		"sessions/rollout-2026-11-01T10-02-00-" + b + "_" + uuid(4) + ".jsonl": `{"torn`,
	})
	for rec, err := range Walk(home) {
		if unknown := (*UnknownFilesError)(nil); errors.As(err, &unknown) {
			if len(unknown.Files) != 1 {
				t.Error(err)
			}
			continue
		}
		if len(rec.Sessions) != 1 || rec.Sessions[0].Messages != 2 || len(rec.Notes) == 0 {
			t.Errorf("%s: %d sessions, notes %v", rec.File, len(rec.Sessions), rec.Notes)
		}
	}
}

// A sub-agent begins with its parent's history, whose requests are the parent's.
func TestCodexSubAgent(t *testing.T) {
	home := codexHome(t, map[string]string{"sessions/2026/11/29/" + rolloutParent: rolloutParent, "sessions/2026/11/29/" + rolloutAgent: rolloutAgent})
	recs := walkAll(t, home)
	if len(recs) != 2 || recs[1].Sessions[0].Parent != recs[0].Sessions[0].ID {
		t.Fatalf("%d recordings, want a session and its sub-agent", len(recs))
	}
	for i, want := range []string{rolloutParent, rolloutAgent} {
		got, n := usageIn(recs[i])
		sum, requests := recordedUsage(t, want)
		if got != sum || n != requests {
			t.Errorf("%s: usage %+v of %d requests, the file has %+v of %d", want, got, n, sum, requests)
		}
	}
	s := recs[1].Sessions[0]
	var texts []string
	v := s.Log.State().View(furl.Model{})
	for i := range v.Messages {
		for _, b := range v.Messages[i].Blocks {
			texts = append(texts, b.Words())
		}
	}
	all := strings.Join(texts, "\n")
	for _, part := range []string{"Do the task.", "Listing.", "newly spawned child agent", "Message Type: NEW_TASK", "The agent counted 3 lines."} {
		if !strings.Contains(all, part) {
			t.Errorf("the sub-agent does not see %q", part)
		}
	}
}

// The request for a compaction is in no token_count if the service compacts.
func TestCodexCompactionCost(t *testing.T) {
	rec, err := ReadFile("testdata/codex-server-compaction.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got, n := usageIn(rec)
	sum, requests := recordedUsage(t, "codex-server-compaction.jsonl")
	if got != sum || n != requests {
		t.Errorf("usage %+v of %d requests, the file has %+v of %d", got, n, sum, requests)
	}
}
