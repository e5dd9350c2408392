package policy

import (
	"encoding/json"
	"testing"

	"github.com/furlhq/furl"
)

// A result that brings the definitions of deferred tools into the prompt stays visible, with
// its call, however old it is: without it the model cannot call these tools. Only a window
// that is too small for the rest hides it.
func TestDeferredToolsStay(t *testing.T) {
	for _, name := range NewSet().Variants() {
		s := newSession(t)
		s.say(furl.RoleUser, "go")
		s.add(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: "s", Name: "ToolSearch", Args: json.RawMessage(`{"query":"select:TaskCreate"}`)}}})
		found := s.add(&furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindResult, ID: "s", Text: text(300), Deferred: true}}})
		p := must(t, name)
		visible := func() bool { return !s.hiddenNow()[int(found.Seq)] }
		hid := false
		for i := range 60 {
			s.call("list", `{"n":`+string(rune('0'+i%10))+`}`, text(900), false)
			b := s.paid()
			b.Window, b.Reserve = 20_000, 2_000
			hid = len(s.plan(p, b).Reductions) > 0 || hid
			if !visible() {
				t.Fatalf("%s hides the definitions after %d steps", name, i+1)
			}
		}
		if !hid && name != "none" {
			t.Errorf("%s hides nothing", name)
		}
		if name == "none" {
			continue
		}
		b := s.budget(350)
		b.Model = priced
		if s.plan(p, b); visible() {
			t.Errorf("%s keeps the definitions although nothing else is left: %d tokens of %d", name, s.view().Tokens, b.Window)
		}
	}
}
