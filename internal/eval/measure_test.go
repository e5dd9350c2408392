package eval

import (
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
)

func TestAddSession(t *testing.T) {
	log := furl.NewLog()
	add := func(body furl.Body) furl.Seq {
		t.Helper()
		r, err := log.Append(log.Head(), time.Time{}, furl.Client, body)
		if err != nil {
			t.Fatal(err)
		}
		return r.Seq
	}
	call := func(id, tool, args string) furl.Block {
		return furl.Block{Kind: furl.KindCall, ID: id, Name: tool, Args: []byte(args)}
	}
	step := func(calls ...furl.Block) (results furl.Seq) {
		add(&furl.Exchange{Model: "m", Usage: furl.Usage{Output: 10}})
		add(&furl.Message{Role: furl.RoleAssistant, Blocks: calls})
		for _, c := range calls {
			results = add(&furl.Message{Role: furl.RoleTool, Blocks: []furl.Block{{Kind: furl.KindResult, ID: c.ID, Text: "what the file of call " + c.ID + " has, in a long line", Tokens: 100}}})
		}
		return results
	}
	add(furl.TextMessage(furl.RoleUser, "Look."))
	first := step(call("1", "read", `{"path":"a"}`))
	step(call("2", "read", `{"path": "a"}`), call("3", "read", `{"path":"b"}`)) // again, while it is visible
	hide := func(seq furl.Seq) furl.Item {
		at := furl.Pos{Msg: seq}
		return furl.Item{Spans: []furl.Span{{First: at, Last: at}}, Show: furl.In{Text: "hidden", Tokens: 2}}
	}
	add(&furl.Reduction{Stage: "test", Items: []furl.Item{hide(first), hide(first + 3)}})
	add(&furl.Exchange{Model: "m", Plan: []furl.PlanStep{{Stage: event.StageRepair, Skipped: "a", Before: 100, After: 350}, {Stage: "auto", Before: 350, After: 300}}})
	step(call("5", "edit", `{"path":"a","old_string":"what the file of call 1 has, in a long line"}`))
	step(call("6", "edit", `{"path":"c","old_string":"what the file of call 3 has, in a long line"}`))
	step(call("4", "read", `{"path":"a"}`)) // again, after both results were hidden
	add(&furl.Exchange{Model: "m", Usage: furl.Usage{Output: 5}})
	add(furl.TextMessage(furl.RoleAssistant, "Done."))

	var m Measures
	if err := m.AddSession(log.Records(0), log.Head(), func(string) furl.Model { return furl.Model{} }); err != nil {
		t.Fatal(err)
	}
	want := Measures{Sessions: 1, Steps: 5, Calls: 6, Again: 2, Repeated: 1, Output: 55, Reductions: 1, Edits: 2, Blind: 1, Repaired: 1, RepairTokens: 250}
	if m.Sessions != want.Sessions || m.Steps != want.Steps || m.Calls != want.Calls || m.Again != want.Again || m.Repeated != want.Repeated || m.Output != want.Output || m.Reductions != want.Reductions ||
		m.Edits != want.Edits || m.Blind != want.Blind || m.Repaired != want.Repaired || m.RepairTokens != want.RepairTokens {
		t.Errorf("measures %+v, want %+v", m, want)
	}
}
