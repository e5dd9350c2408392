package recorded

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl/transcript"
)

// forkText is a session in an agent's format: copied steps of a parent, then own ones.
type forkText func(id, parent string, copied, own int) string

func claudeText(id, parent string, copied, own int) string {
	var b strings.Builder
	from, last := id, "null"
	for i := range copied + own {
		fork := ""
		if i < copied && parent != "" {
			from, fork = parent, fmt.Sprintf(`,"forkedFrom":{"sessionId":%q,"messageUuid":"u%d"}`, parent, i)
		} else {
			from = id
		}
		at := fmt.Sprintf("2026-09-10T10:%02d:%02d.%03dZ", i, len(from), from[0])
		user, said := fmt.Sprintf(`"%s-%d"`, id, i), fmt.Sprintf(`"%s-%d-r"`, id, i)
		fmt.Fprintf(&b, `{"parentUuid":%s,"sessionId":%q,"type":"user","uuid":%s,"timestamp":%q,"cwd":"/p","version":"2.1.150","message":{"role":"user","content":"Task %d of %s."}%s}`+"\n", last, id, user, at, i, from, fork)
		fmt.Fprintf(&b, `{"parentUuid":%s,"sessionId":%q,"type":"assistant","uuid":%s,"timestamp":%q,"message":{"id":"msg_%s_%d","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":2}}%s}`+"\n", user, id, said, at, from, i, 100+i, fork)
		last = said
	}
	return b.String()
}

// codexText is a rollout of Codex 0.140: a fork has other times.
func codexText(id, parent string, copied, own int) string {
	var b strings.Builder
	n := 0
	line := func(typ, payload string) {
		n++
		fmt.Fprintf(&b, `{"timestamp":"2026-06-%02dT10:00:00.%03dZ","type":%q,"payload":{%s}}`+"\n", 1+len(id), n, typ, payload)
	}
	meta := func(id, more string) { line("session_meta", fmt.Sprintf(`"id":%q,"cwd":"/p"%s`, id, more)) }
	if parent != "" {
		meta(id, fmt.Sprintf(`,"forked_from_id":%q`, parent))
		meta(parent, "")
	} else {
		meta(id, "")
	}
	for i := range copied + own {
		from := id
		if i < copied && parent != "" {
			from = parent
		}
		line("turn_context", `"model":"gpt-5.5"`)
		line("response_item", fmt.Sprintf(`"type":"message","role":"user","content":[{"type":"input_text","text":"Task %d of %s."}]`, i, from))
		line("response_item", `"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]`)
		line("event_msg", fmt.Sprintf(`"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"total_tokens":%[1]d},"last_token_usage":{"input_tokens":100,"output_tokens":2,"total_tokens":102}}`, 100*(i+1)))
	}
	return b.String()
}

func piText(id, parent string, copied, own int) string {
	var b strings.Builder
	of := ""
	if parent != "" {
		of = fmt.Sprintf(`,"parentSession":"/home/ada/.pi/agent/sessions/p/2026-08-19T10-00-00-000Z_%s.jsonl"`, parent)
	}
	fmt.Fprintf(&b, `{"type":"session","version":3,"id":%q,"timestamp":"2026-08-19T10:00:00.000Z","cwd":"/p"%s}`+"\n", id, of)
	last := "null"
	for i := range copied + own {
		from := id
		if i < copied && parent != "" {
			from = parent
		}
		at := fmt.Sprintf("2026-08-19T10:%02d:%02d.%03dZ", i, len(from), from[0])
		user, said := fmt.Sprintf(`"u%s%d"`, from, i), fmt.Sprintf(`"a%s%d"`, from, i)
		fmt.Fprintf(&b, `{"type":"message","id":%s,"parentId":%s,"timestamp":%q,"message":{"role":"user","content":[{"type":"text","text":"Task %d of %s."}],"timestamp":1}}`+"\n", user, last, at, i, from)
		fmt.Fprintf(&b, `{"type":"message","id":%s,"parentId":%s,"timestamp":%q,"message":{"role":"assistant","api":"anthropic-messages","provider":"anthropic","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Done."}],"usage":{"input":%d,"output":2},"stopReason":"stop","timestamp":1}}`+"\n", said, user, at, 100+i)
		last = said
	}
	return b.String()
}

// requestsOf reads files and returns how many requests count in each, and how many are repeated.
func requestsOf(t *testing.T, files map[string]string) (counted map[string]int, repeated int) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	source, err := Sources(nil, []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	counted = make(map[string]int)
	for rec := range source.Recordings {
		for _, s := range rec.Sessions {
			n := 0
			for range s.Replies() {
				n++
			}
			counted[filepath.Base(rec.File)] += n - len(s.Repeated)
			repeated += len(s.Repeated)
		}
	}
	if len(source.Failed) > 0 || len(source.Unknown) > 0 {
		t.Fatal(source.Failed, source.Unknown)
	}
	return counted, repeated
}

// A request counts once: in the parent, whichever file is read first, and in one of the forks if the
// parent is gone.
func TestRequestsCountOnce(t *testing.T) {
	for _, agent := range []struct {
		name string
		text forkText
	}{{"Claude Code", claudeText}, {"Codex", codexText}, {"pi", piText}} {
		t.Run(agent.name, func(t *testing.T) {
			parent := agent.text("p", "", 0, 5)
			for _, names := range [][2]string{{"x.jsonl", "y.jsonl"}, {"b.jsonl", "a.jsonl"}} { // after and before the parent
				got, repeated := requestsOf(t, map[string]string{"p.jsonl": parent, names[0]: agent.text("fx", "p", 5, 1), names[1]: agent.text("fyy", "p", 3, 2)})
				if want := map[string]int{"p.jsonl": 5, names[0]: 1, names[1]: 2}; !cmp.Equal(got, want) || repeated != 8 {
					t.Errorf("counted %v, repeated %d", got, repeated)
				}
			}
			got, repeated := requestsOf(t, map[string]string{"a.jsonl": agent.text("fx", "p", 5, 1), "b.jsonl": agent.text("fyy", "p", 3, 2)})
			if want := map[string]int{"a.jsonl": 6, "b.jsonl": 2}; !cmp.Equal(got, want) || repeated != 3 {
				t.Errorf("without the parent: counted %v, repeated %d", got, repeated)
			}
			// A file and its copies, one of them older and one on which the session went on.
			got, repeated = requestsOf(t, map[string]string{"a.jsonl": parent, "b.jsonl": parent, "c.jsonl": agent.text("p", "", 0, 3), "d.jsonl": agent.text("p", "", 0, 7)})
			if want := map[string]int{"a.jsonl": 5, "b.jsonl": 0, "c.jsonl": 0, "d.jsonl": 2}; !cmp.Equal(got, want) || repeated != 13 {
				t.Errorf("copies: counted %v, repeated %d", got, repeated)
			}
			// Other sessions with the same words are not copies.
			got, repeated = requestsOf(t, map[string]string{"a.jsonl": parent, "b.jsonl": strings.ReplaceAll(agent.text("qq", "", 0, 5), "of qq", "of p")})
			if want := map[string]int{"a.jsonl": 5, "b.jsonl": 5}; !cmp.Equal(got, want) || repeated != 0 {
				t.Errorf("the same words: counted %v, repeated %d", got, repeated)
			}
		})
	}
}

// Forks wait for their parents, also for those that are forks themselves. None is lost if they wait for
// each other.
func TestParentsFirst(t *testing.T) {
	all := map[string]*transcript.Recording{}
	for file, of := range map[string]string{"a": "b", "b": "d", "c": "gone", "d": "", "e": "f", "f": "e"} {
		all[file] = &transcript.Recording{File: file, Sessions: []*transcript.Session{{ID: file, ForkOf: of}}}
	}
	reads := 0
	var got []string
	seq := func(yield func(*transcript.Recording, error) bool) {
		for _, file := range slices.Sorted(maps.Keys(all)) {
			if !yield(all[file], nil) {
				return
			}
		}
	}
	for rec, err := range ParentsFirst(seq, func(path string) (*transcript.Recording, error) { reads++; return all[path], nil }) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, rec.File)
	}
	if want := []string{"d", "b", "a", "c", "e", "f"}; !cmp.Equal(got, want) || reads != 5 {
		t.Errorf("read %v, %d twice", got, reads)
	}
}
