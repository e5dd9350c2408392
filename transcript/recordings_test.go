package transcript

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl"
)

// listed is what the manifest of the recordings says of one file.
type listed struct {
	File, Format string
	Stats        listedStats
}

type listedStats struct {
	Messages    int `json:"messages"`
	Calls       int `json:"tool_calls"`
	Results     int `json:"tool_results"`
	Compactions int `json:"compactions"`
	Peak        int `json:"max_input_tokens"`
}

// listing gives the folder of recordings and what its manifest says of the
// files of one format.
func listing(t *testing.T, format string) (dir string, files []listed) {
	t.Helper()
	dir = os.Getenv("FURL_RECORDINGS")
	if dir == "" {
		t.Skip("FURL_RECORDINGS does not name the folder of recordings")
	}
	data, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, raw := range all {
		var l listed
		if err := json.Unmarshal(raw, &l); err == nil && l.Format == format { // some formats count otherwise
			files = append(files, l)
		}
	}
	if len(files) == 0 {
		t.Fatalf("the manifest lists no %s", format)
	}
	return dir, files
}

// The counts of the manifest are those of the conversation itself, not of its
// sub-agents. Of a file with several sessions they are the sum.
func TestClaudeRecordings(t *testing.T) {
	skipped := map[string]int{"claude-code-log/edge_cases.jsonl": 7} // made to be broken
	dir, files := listing(t, "claude-code-jsonl")
	for _, f := range files {
		t.Run(filepath.Base(f.File), func(t *testing.T) {
			rec, err := ReadFile(filepath.Join(dir, f.File))
			if err != nil {
				t.Fatal(err)
			}
			if rec.Format != "claude-code" {
				t.Errorf("read as %q", rec.Format)
			}
			if len(rec.Skipped) != skipped[f.File] {
				t.Errorf("skipped %v, want %d records", rec.Skipped, skipped[f.File])
			}
			var got listedStats
			for _, s := range rec.Sessions {
				if s.Parent != "" {
					continue
				}
				got.Messages += s.Messages
				got.Calls += s.Calls
				got.Results += s.Results
				got.Compactions += s.Compactions
				list, _ := exchanges(s)
				for _, ex := range list {
					got.Peak = max(got.Peak, ex.Usage.Prompt())
				}
				compactions := 0
				for _, red := range s.Log.State().Reductions() {
					if red.Stage == "compact" {
						compactions++
					}
				}
				if compactions != s.Compactions {
					t.Errorf("%d reductions of %d compactions", compactions, s.Compactions)
				}
			}
			if got != f.Stats {
				t.Errorf("counted %+v\nwant    %+v", got, f.Stats)
			}
		})
	}
}

// Line 128 of this recording holds two objects, the first of which is a part
// of the last reply.
func TestClaudeTwoObjectsOnALine(t *testing.T) {
	dir, _ := listing(t, "claude-code-jsonl")
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
