package eval

import (
	"testing"
	"time"

	"github.com/furlhq/furl"
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
			results = add(&furl.Message{Role: furl.RoleTool, Blocks: []furl.Block{{Kind: furl.KindResult, ID: c.ID, Text: "the contents of the file", Tokens: 100}}})
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
	step(call("4", "read", `{"path":"a"}`)) // again, after both results were hidden
	add(&furl.Exchange{Model: "m", Usage: furl.Usage{Output: 5}})
	add(furl.TextMessage(furl.RoleAssistant, "Done."))

	var m Measures
	if err := m.AddSession(log.Records(0), log.Head(), func(string) furl.Model { return furl.Model{} }); err != nil {
		t.Fatal(err)
	}
	want := Measures{Sessions: 1, Steps: 3, Calls: 4, Again: 2, Repeated: 1, Output: 35, Reductions: 1}
	if m.Sessions != want.Sessions || m.Steps != want.Steps || m.Calls != want.Calls || m.Again != want.Again || m.Repeated != want.Repeated || m.Output != want.Output || m.Reductions != want.Reductions {
		t.Errorf("measures %+v, want %+v", m, want)
	}
}
