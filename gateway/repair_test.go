package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

// editing is an agent that works on a file, through a gateway: its model calls what the test
// says.
type editing struct {
	*agent
	st   *fixture
	next furl.Block // of the model
}

// editingTools are the names of the tools and of the arguments of some agents, and what the result of a
// failed edit says.
var editingTools = map[furl.Format]struct{ read, edit, file, old, failure string }{
	furl.FormatAnthropic: {"Read", "Edit", "file_path", "old_string", "<tool_use_error>String to replace not found in file.\nString: %s</tool_use_error>"},
	furl.FormatChat:      {"read", "edit", "filePath", "oldString", "Error: oldString not found in content"},
	furl.FormatResponses: {"read_file", "replace", "path", "old_string", "Failed to edit, 0 occurrences found for old_string"},
}

func newEditing(t *testing.T, format furl.Format, set policy.Settings) *editing {
	e := &editing{agent: &agent{format: format, model: modelOf(format)}}
	player := sim.PlayerFunc(func(context.Context, *protocol.Request) (sim.Reply, error) {
		return sim.Reply{Blocks: []furl.Block{e.next}}, nil
	})
	e.st = newFixture(t, &sim.Options{Player: player}, &session.Options{Settings: set, Window: 40_000}, nil)
	e.say("Mend the parser.")
	return e
}

// call makes the model call a tool, and returns the body of that request.
func (e *editing) call(t *testing.T, tool string, args map[string]string, result string) string {
	t.Helper()
	e.next = furl.Block{Kind: furl.KindCall, Name: tool, Args: mustJSON(args)}
	e.step(t, e.st, func(furl.Block) string { return result })
	all := e.st.sim.Requests()
	return string(all[len(all)-1].Body)
}

// source is the text of a file.
func source(name string) string {
	var b strings.Builder
	for i := range 120 {
		fmt.Fprintf(&b, "%d\tfunc %s%d(input []byte) (parsed int, err error) { return parse(input, %d) }\n", i+1, name, i, i*7919)
	}
	return b.String()
}

const lineOfFile, wrongLine = "parse(input, 7919)", "func parser1(input []byte) (parsed int, err error) { return parsed(input) }"

func (e *editing) read(t *testing.T, file string) {
	t.Helper()
	k := editingTools[e.format]
	e.call(t, k.read, map[string]string{k.file: file}, source("parser"))
}

// edit makes the model edit a file, which fails.
func (e *editing) edit(t *testing.T, file string) {
	t.Helper()
	k := editingTools[e.format]
	failure := k.failure
	if strings.Contains(failure, "%s") {
		failure = fmt.Sprintf(failure, wrongLine)
	}
	e.call(t, k.edit, map[string]string{k.file: file, k.old: wrongLine, "new_string": "x"}, failure)
}

// work lets the model run commands until the file is hidden, and returns the last request.
func (e *editing) work(t *testing.T) {
	t.Helper()
	for i := range 200 {
		body := e.call(t, "bash", map[string]string{"command": fmt.Sprintf("make test%d", i)}, strings.Repeat(fmt.Sprintf("ok package%d/of/the/program\n", i), 150))
		if i > 0 && !strings.Contains(body, lineOfFile) {
			return
		}
	}
	t.Fatal("the file is still visible")
}

// sees reports whether the model sees the file in the next request.
func (e *editing) sees(t *testing.T) bool {
	t.Helper()
	return strings.Contains(e.call(t, "bash", map[string]string{"command": "git status"}, "clean"), lineOfFile)
}

func (e *editing) session(t *testing.T) *session.Session {
	t.Helper()
	s, err := e.st.sessions.Find(t.Context(), session.Latest)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// repairs returns the events of repairs, and the restorations.
func (e *editing) repairs(t *testing.T) (told []event.EditRepaired, records []furl.Seq) {
	t.Helper()
	s := e.session(t)
	moments, err := s.Events(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range moments {
		for _, ev := range m.Events {
			if r, ok := ev.(event.EditRepaired); ok {
				told = append(told, r)
			}
		}
		if r, ok := m.Record.Body.(*furl.Restoration); ok && m.Record.By == furl.Furl && r.Open {
			records = append(records, m.Record.Seq)
		}
	}
	return told, records
}

// After an edit of a file that the model does not see has failed, it sees the file in the next
// request, where it was read. That happens once, the log and the figures have it, and a
// person can hide the file again for good.
func TestRepairedEdit(t *testing.T) {
	for _, format := range formats {
		t.Run(string(format), func(t *testing.T) {
			e := newEditing(t, format, policy.Settings{})
			e.read(t, "/src/parser.go")
			e.work(t)
			e.edit(t, "/src/parser.go")
			if !e.sees(t) {
				t.Fatal("the model does not see the file after its edit has failed")
			}
			sent := e.st.sim.Requests()
			body := sent[len(sent)-1].Body
			if at, failed := bytes.Index(body, []byte(lineOfFile)), bytes.LastIndex(body, []byte("return parsed(input)")); at > failed {
				t.Error("the file is not where it was read")
			}
			if n := bytes.Count(body, []byte(lineOfFile)); n != 1 {
				t.Errorf("the request has the file %d times", n)
			}
			e.edit(t, "/src/parser.go")
			for range 2 {
				if !e.sees(t) {
					t.Error("the model does not see the file any more")
				}
			}
			told, records := e.repairs(t)
			if len(told) != 1 || len(records) != 1 || told[0].Files != "/src/parser.go" || told[0].Tokens < 1000 {
				t.Fatalf("the events are %+v, the restorations %v, want one", told, records)
			}
			s := e.session(t)
			h := session.NewHistory(s.HistoryOptions())
			if _, err := h.Extend(s.Records(0), s.Head()); err != nil {
				t.Fatal(err)
			}
			sum, ledger := session.TotalsOf(h.Requests()), s.Meta().Ledger.Total()
			if sum.Repairs != 1 || sum.RepairTokens != told[0].Tokens || ledger.Repairs != 1 || ledger.RepairTokens != told[0].Tokens {
				t.Errorf("the figures are %d and %d, in the ledger %d and %d", sum.Repairs, sum.RepairTokens, ledger.Repairs, ledger.RepairTokens)
			}
			m := metricsOf(t, e.st)
			shown, rewritten := m[`furl_repair_tokens_total{kind="shown"}`], m[`furl_repair_tokens_total{kind="rewritten"}`]
			if m["furl_edits_repaired_total"] != 1 || shown != float64(told[0].Tokens) || rewritten <= shown {
				t.Errorf("the metrics are %v, %v shown and %v rewritten", m["furl_edits_repaired_total"], shown, rewritten)
			}
			if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
				t.Errorf("the session: %v, %v", problems, err)
			}

			spans := s.Records(records[0] - 1)[0].Body.(*furl.Restoration).Spans
			if _, err := s.Reduce(t.Context(), session.ReduceOptions{Stage: &policy.Hide{Spans: spans}}); err != nil {
				t.Fatal(err)
			}
			if e.sees(t) {
				t.Error("the file is visible after a person has hidden it")
			}
			if e.edit(t, "/src/parser.go"); e.sees(t) {
				t.Error("the file is visible again, which a person has hidden")
			}
		})
	}
}

// A retry of the request with the failed edit repairs nothing twice.
func TestRepairedEditIsRetried(t *testing.T) {
	e := newEditing(t, furl.FormatAnthropic, policy.Settings{})
	e.read(t, "/src/parser.go")
	e.work(t)
	e.edit(t, "/src/parser.go")
	history := e.history
	for range 3 {
		e.history = append([]json.RawMessage(nil), history...)
		if !e.sees(t) {
			t.Error("the model does not see the file")
		}
	}
	if _, records := e.repairs(t); len(records) != 1 {
		t.Errorf("%d restorations on the path", len(records))
	}
}

// Nothing is repaired if the model saw the file, has never read it, if the result says
// something else, or if the setting is off.
func TestNothingToRepair(t *testing.T) {
	for _, format := range formats {
		for name, f := range map[string]func(e *editing){
			"visible": func(e *editing) {
				e.work(t)
				e.read(t, "/src/parser.go")
			},
			"never read": func(e *editing) {
				e.read(t, "/src/other.go")
				e.work(t)
			},
		} {
			t.Run(string(format)+" "+name, func(t *testing.T) {
				e := newEditing(t, format, policy.Settings{})
				e.read(t, "/src/lexer.go")
				f(e)
				e.edit(t, "/src/parser.go")
				e.sees(t)
				if told, records := e.repairs(t); len(told)+len(records) > 0 {
					t.Errorf("repaired %+v", told)
				}
			})
		}
		t.Run(string(format)+" off", func(t *testing.T) {
			e := newEditing(t, format, policy.Settings{EditOptions: policy.EditOptions{RepairEdits: new(false)}})
			e.read(t, "/src/parser.go")
			e.work(t)
			if e.edit(t, "/src/parser.go"); e.sees(t) {
				t.Error("the file is visible with repair_edits off")
			}
			if err := e.session(t).Set(t.Context(), "repair_edits", "on"); err != nil {
				t.Fatal(err)
			}
			if e.edit(t, "/src/parser.go"); !e.sees(t) {
				t.Error("the file is hidden with the session's repair_edits on")
			}
		})
		t.Run(string(format)+" rejected", func(t *testing.T) {
			e := newEditing(t, format, policy.Settings{})
			e.read(t, "/src/parser.go")
			e.work(t)
			k := editingTools[format]
			e.call(t, k.edit, map[string]string{k.file: "/src/parser.go", k.old: wrongLine}, "The user doesn't want to proceed with this tool use. The tool use was rejected.")
			if e.sees(t) {
				t.Error("the file is visible after the user has rejected an edit")
			}
		})
	}
}
