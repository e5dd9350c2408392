package transcript

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// tried are the sessions of the agents in the table of docs/use/formats.md: those that the agent wrote, shortened,
// and where these lack something, records that were written by hand.
var tried = map[string][]string{
	"Claude Code": {"claude-requests.jsonl", "claude-compact.jsonl", "claude-branches.jsonl", "claude-agents.jsonl", "claude-extras.jsonl", "claude-main.jsonl"},
	"opencode":    {"opencode-agents.sql", "opencode-database.sql"},
	"pi":          {"pi-v3-system.jsonl", "pi-v3.jsonl"},
	"Codex":       {"rollout-*.jsonl", "codex-server-compaction.jsonl", "codex.jsonl"},
	"Gemini CLI":  {"gemini-resumed.jsonl", "gemini.jsonl"},
	"Qwen Code":   {"qwen.jsonl"},
	"Kimi Code":   {"kimi.jsonl", "kimi-agent.jsonl", "kimi-fork.jsonl"},
	"Cline":       {"cline.json", "cline-agent.json"},
	"Continue":    {"continue.json", "continue-fork.json"},
	"Droid":       {"droid.jsonl"},
	"Copilot CLI": {"copilot-usage.jsonl"},
	"Kilo":        {"kilo.sql"},
	"nanocoder":   {"nanocoder-failed.json"},
	"OpenClaw":    {"openclaw-database.sql", "openclaw-agents.sql"},
}

// testedElsewhere are cells that need more than these files, with their tests.
var testedElsewhere = map[string]string{
	"Claude Code: forks":               "TestRequestsCountOnce",
	"Claude Code: images":              "TestClaudeImages",
	"pi: forks":                        "TestRequestsCountOnce",
	"Qwen Code: undone turns":          "TestQwenRewind",
	"Qwen Code: sub-agents":            "TestQwenSubAgent",
	"Kimi Code: forks":                 "TestKimiFork",
	"Kimi Code: sub-agents":            "TestKimiFolder",
	"Continue: compactions, with cost": "TestContinueEditor",
	"Droid: usage of requests":         "TestDroidFolder",
	"Droid: compactions, with cost":    "TestDroidTree",
	"Droid: undone turns":              "TestDroidTree",
	"nanocoder: images":                "TestNanocoderSent",
}

// Each cell of the table says what furl reads of the sessions.
func TestFormatsTable(t *testing.T) {
	text, err := os.ReadFile("../docs/use/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| agent | tried |")
	table, _, _ = strings.Cut(table, "\n\n")
	lines := strings.Split(table, "\n")
	if !ok || len(lines)-2 != len(tried) {
		t.Fatalf("the table has %d agents, want %d", len(lines)-2, len(tried))
	}
	tests := sources(t, "*_test.go", "../internal/recorded/*_test.go")
	for cell, name := range testedElsewhere {
		if !strings.Contains(tests, "func "+name+"(t ") {
			t.Errorf("%s: there is no test %s", cell, name)
		}
	}
	columns := cells("| agent | tried |" + lines[0])
	for _, line := range lines[2:] {
		row := cells(line)
		agent := row[0]
		found := foundIn(t, tried[agent])
		for i, column := range columns {
			got, measured := found[column]
			if _, other := testedElsewhere[agent+": "+column]; measured && !other && got != row[i] {
				t.Errorf("%s: %s is %q in the table, the sessions have %q", agent, column, row[i], got)
			}
		}
	}
}

// sources returns the texts of files.
func sources(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}

func cells(line string) (list []string) {
	for c := range strings.SplitSeq(strings.Trim(line, "| "), "|") {
		list = append(list, strings.TrimSpace(c))
	}
	return list
}

// foundIn returns the cells of the table for recordings.
func foundIn(t *testing.T, names []string) map[string]string {
	t.Helper()
	has := make(map[string]bool)
	replies := make(map[ReplyID]string) // by the session
	for _, rec := range recordingsOf(t, names) {
		has["sums"] = has["sums"] || slices.ContainsFunc(rec.Notes, func(n string) bool { return strings.Contains(n, "tokens") })
		for _, s := range rec.Sessions {
			for _, id := range s.Replies() {
				if other, ok := replies[id]; ok && other != rec.File+s.ID {
					has["once"] = true
				}
				replies[id] = rec.File + s.ID
			}
			note(s, has)
		}
	}
	cell := func(yes string, keys ...string) string {
		var parts []string
		for i, k := range keys {
			if !has[k] {
				if i == 0 && len(keys) > 1 && !slices.ContainsFunc(keys, func(k string) bool { return has[k] }) {
					return "–"
				}
				parts = append(parts, "–")
			} else {
				parts = append(parts, yes)
			}
		}
		return strings.Join(parts, ", ")
	}
	found := map[string]string{
		"calls": cell("yes", "call"), "usage of requests": cell("yes", "usage"), "model": cell("yes", "model"), "times": cell("yes", "time"),
		"instructions, tools": cell("yes", "instructions", "tools"), "compactions, with cost": cell("yes", "compaction", "cost"),
		"undone turns": cell("branches", "branch"), "forks": cell("once", "once"), "sub-agents": cell("yes", "parent"),
		"images": cell("yes", "image"), "failed results": cell("yes", "failed"),
	}
	if !has["usage"] && has["sums"] {
		found["usage of requests"] = "sums"
	}
	if !has["time"] && has["start"] {
		found["times"] = "start"
	}
	return found
}

// recordingsOf reads fixtures, and databases from their statements.
func recordingsOf(t *testing.T, names []string) (list []*Recording) {
	t.Helper()
	for _, pattern := range names {
		files, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no fixture %s", pattern)
		}
		for _, file := range files {
			if filepath.Ext(file) != ".sql" {
				list = append(list, walked(t, file)...)
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "x.db")
			newDatabase(t, path, string(text))
			list = append(list, walked(t, path)...)
		}
	}
	return list
}

// note notes what a session has.
func note(s *Session, has map[string]bool) {
	set := func(key string, yes bool) { has[key] = has[key] || yes }
	set("model", s.Model != "")
	set("compaction", s.Compactions > 0)
	set("parent", s.Parent != "")
	for i := range s.Preamble {
		set("instructions", s.Preamble[i].Kind == furl.KindText)
		set("tools", s.Preamble[i].Kind != furl.KindText)
	}
	said := 0
	for _, r := range s.Log.Records(0) {
		switch b := r.Body.(type) {
		case *furl.Exchange:
			set("usage", b.Usage != furl.Usage{})
			set("time", !r.At.IsZero() && r.Seq > 3)
		case *furl.Reduction:
			set("cost", b.Summary != nil && b.Summary.Usage != furl.Usage{})
		case *furl.Message:
			said++
			set("start", !r.At.IsZero())
			set("instructions", b.Role == furl.RoleSystem)
			for _, block := range b.Blocks {
				set("call", block.Kind == furl.KindCall)
				set("image", len(block.Media) > 0)
				set("failed", block.Error || block.ErrorText)
			}
		}
	}
	set("branch", said > len(currentBranch(s)))
}

func TestClaudeImages(t *testing.T) {
	const text = `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-11-29T08:00:00Z","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"text","text":"Look."}]}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","timestamp":"2026-11-29T08:00:01Z","message":{"id":"m1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"a.png"}}],"usage":{"input_tokens":10,"output_tokens":4}}}
{"type":"user","uuid":"u2","parentUuid":"a1","sessionId":"s","timestamp":"2026-11-29T08:00:02Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]}]}}
`
	rec, err := Read("s.jsonl", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := contentsOf(only(t, rec)); got.images != 2 || got.calls != 1 {
		t.Errorf("%d images, %d calls, want 2 and 1", got.images, got.calls)
	}
}
