package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/tool"
	"github.com/furlhq/furl/transcript"
)

// played is what the user and the tools said in a recording.
type played struct {
	first   string                  // task
	after   map[string][]string     // texts of the user, by the id of the last call before
	results map[string][]furl.Block // by name and input of the call, in order
	names   map[string]bool
	mu      sync.Mutex
}

func readRecording(s *transcript.Session) *played {
	p := &played{after: map[string][]string{}, results: map[string][]furl.Block{}, names: map[string]bool{}}
	calls := map[string]string{}
	last := ""
	for _, r := range s.Log.Path(s.Log.Head()) {
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		for i := range m.Blocks {
			switch b := &m.Blocks[i]; {
			case b.Kind == furl.KindCall:
				calls[b.ID], last = b.Name+" "+compact(b.Args), b.ID
				p.names[b.Name] = true
			case b.Kind == furl.KindResult:
				p.results[calls[b.ID]] = append(p.results[calls[b.ID]], *b)
			case b.Kind == furl.KindText && m.Role == furl.RoleUser && !b.Observation && strings.TrimSpace(b.Text) != "":
				if p.first == "" {
					p.first = b.Text
				} else if last != "" {
					p.after[last] = append(p.after[last], b.Text)
				}
			}
		}
	}
	return p
}

func compact(args json.RawMessage) string {
	var v any
	if json.Unmarshal(args, &v) != nil {
		return string(args)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// tools return the recorded results.
func (p *played) tools(t *testing.T) (list []tool.Tool) {
	for name := range p.names {
		list = append(list, tool.Tool{
			Name: name, Schema: json.RawMessage(`{"type":"object"}`),
			Run: func(_ context.Context, input json.RawMessage) (tool.Result, error) {
				p.mu.Lock()
				defer p.mu.Unlock()
				key := name + " " + compact(input)
				results := p.results[key]
				if len(results) == 0 {
					return tool.Text("(the recording has no result)"), nil
				}
				if len(results) > 1 {
					p.results[key] = results[1:]
				}
				return tool.Result{Parts: []tool.Part{{Text: results[0].Text}}, Error: results[0].Error}, nil
			},
		})
	}
	return list
}

// The agent repeats recorded sessions in every format: the provider refuses nothing,
// and receives the bodies that the log has, also where much is hidden.
func TestRecordings(t *testing.T) {
	for _, file := range recordings.Files(t, "entire-cli/bc-*-1.jsonl.gz", "agentv/*.gz", "pi-mono/*.gz", "nimbus/*.gz", "tau-bench/*.gz", "openhands/*") {
		rec, err := transcript.ReadFile(file)
		if err != nil {
			continue // package transcript tests the import
		}
		for i, recorded := range rec.Sessions {
			if i > 0 || recorded.Calls == 0 {
				continue
			}
			for _, m := range models {
				if recorded.Wire != m.Format && rec.Format == "openai-chat" {
					continue // its ids repeat, which only its format allows
				}
				t.Run(filepath.Base(file)+"/"+string(m.Format), func(t *testing.T) {
					t.Parallel()
					said := readRecording(recorded)
					p, url := provide(t, sim.Options{Player: sim.NewPlayback(recorded), Window: 10_000_000, AnyField: true})
					s := newSession(t, session.Options{Policy: "rolling-mask-5", Window: 30_000})
					o := agent.Options{System: "You repeat a recording.", Tools: said.tools(t), Parallel: 1, MaxSteps: 20}
					a := newAgent(t, s, m, url, o)
					n := 0
					for e, err := range a.Run(t.Context(), agent.Text(said.first)) {
						if err != nil {
							t.Fatal(err)
						}
						switch e := e.(type) {
						case agent.CallResult:
							for _, text := range said.after[e.Call.ID] {
								a.Send(agent.Text(text))
							}
							delete(said.after, e.Call.ID)
						case agent.Replied:
							n++
						}
					}
					if n == 0 {
						t.Error("no replies")
					}
					noRefusals(t, p, s)
					fmt.Fprintf(t.Output(), "%d replies, %d reductions\n", n, len(s.Reductions()))
				})
			}
		}
	}
}
