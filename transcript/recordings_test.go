package transcript

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
)

// listed is the entry of one file in the manifest of the recordings.
type listed struct {
	File, Format string
	Stats        struct {
		Messages    *total `json:"messages"`
		Calls       *total `json:"tool_calls"`
		Results     *total `json:"tool_results"`
		Compactions *total `json:"compactions"`
		Peak        *total `json:"max_input_tokens"`
	}
}

// total is a number, or the sum of several.
type total int

func (n *total) UnmarshalJSON(data []byte) error {
	var one int
	if err := json.Unmarshal(data, &one); err == nil {
		*n = total(one)
		return nil
	}
	var many []int
	if err := json.Unmarshal(data, &many); err != nil {
		return err
	}
	for _, one := range many {
		*n += total(one)
	}
	return nil
}

// listing returns the folder of recordings and the entries of its manifest.
func listing(t *testing.T) (dir string, files []listed) {
	t.Helper()
	dir = recordings.Dir(t)
	data, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &files); err != nil {
		t.Fatal(err)
	}
	return dir, files
}

// formatOf maps the formats of the manifest to the formats of this package;
// "" for files that are not recordings of an agent.
var formatOf = map[string]string{
	"claude-code-jsonl":    "claude-code",
	"codex-rollout-jsonl":  "codex",
	"copilot-cli-jsonl":    "copilot-cli",
	"gemini-cli-json":      "gemini-cli",
	"opencode-export-json": "opencode",
	"pi-jsonl":             "pi",
	"swe-agent-traj":       "swe-agent",
	"tau-bench-json":       "openai-chat",
	"openhands-jsonl":      "openhands",
	"aider-markdown":       "aider",
	"qmsum-jsonl":          "",
}

// The expected counts are from the manifest. It counts the conversation
// without its sub-agents, and for a file with several sessions their sum.
func TestManifest(t *testing.T) {
	skipped := map[string]int{"claude-code-log/edge_cases.jsonl": 7} // broken on purpose
	dir, files := listing(t)
	for _, f := range files {
		t.Run(filepath.Base(f.File), func(t *testing.T) {
			format, known := formatOf[f.Format]
			if !known {
				t.Skipf("unknown format %q in the manifest", f.Format)
			}
			if isLarge(filepath.Join(dir, f.File)) {
				return
			}
			rec, err := ReadFile(filepath.Join(dir, f.File))
			if _, ok := errors.AsType[*UnknownFormatError](err); ok && format == "" {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if rec.Format != format {
				t.Errorf("read as %q, want %q", rec.Format, format)
			}
			if len(rec.Skipped) != skipped[f.File] {
				t.Errorf("skipped %v, want %d records", rec.Skipped, skipped[f.File])
			}
			var messages, calls, results, compactions, peak int
			for _, s := range rec.Sessions {
				if s.Parent != "" {
					continue
				}
				messages += s.Messages
				calls += s.Calls
				results += s.Results
				compactions += s.Compactions
				list, _ := exchanges(s)
				for _, ex := range list {
					peak = max(peak, ex.Usage.Prompt())
				}
			}
			for _, c := range []struct {
				what string
				got  int
				want *total
			}{
				{"messages", messages, f.Stats.Messages},
				{"calls", calls, f.Stats.Calls},
				{"results", results, f.Stats.Results},
				{"compactions", compactions, f.Stats.Compactions},
				{"tokens in the largest prompt", peak, f.Stats.Peak},
			} {
				if c.want != nil && c.got != int(*c.want) {
					t.Errorf("%d %s, want %d", c.got, c.what, *c.want)
				}
			}
		})
	}
}

// Every recorded compaction of Claude Code is a reduction.
func TestClaudeCompactionsRecorded(t *testing.T) {
	dir, files := listing(t)
	for _, f := range files {
		if f.Format != "claude-code-jsonl" {
			continue
		}
		rec, err := ReadFile(filepath.Join(dir, f.File))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rec.Sessions {
			n := 0
			for red := range s.Log.State().Reductions() {
				if red.Stage == "compact" {
					n++
				}
			}
			if n != s.Compactions {
				t.Errorf("%s: %d reductions of %d compactions", f.File, n, s.Compactions)
			}
		}
	}
}

// Line 128 of this recording contains two objects. The first belongs to the
// last reply.
func TestClaudeTwoObjectsOnALine(t *testing.T) {
	dir, _ := listing(t)
	rec, err := ReadFile(filepath.Join(dir, "entire-cli/37-995ebed6e4-2.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	s := only(t, rec)
	st := s.Log.State()
	found := 0
	for i := range st.Len() {
		_, m := st.Message(i)
		if m.Role != furl.RoleAssistant || len(m.Blocks) != 2 || m.Blocks[0].Kind != furl.KindThinking {
			continue
		}
		if m.Blocks[0].Text == "All tests pass and no lint issues. The change is complete." && m.Blocks[1].Kind == furl.KindText {
			found++
		}
	}
	if found != 1 || s.Title != "Add agent name to logging context" {
		t.Errorf("the reply was found %d times, title %q", found, s.Title)
	}
}
