package exchange_test

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// A client is handed from one process to another and asks on before the first
// has recorded its answer (docs/internals/rough-edges.md): the conversation goes on where
// the client is, and the answer's exchange is not lost.
func TestAnswerIsRecordedElsewhereFirst(t *testing.T) {
	o := session.Options{Policy: "none"}
	all, store := open(t, o)
	c := newClient(t, all, "a")
	c.hints.Hint = "one"
	c.step()
	_, first := c.begin()
	other := *c // the other process has the answer already, from the client
	other.all = reopen(t, store, o)
	do := call("toolu_last", "read", `{}`)
	other.add(furl.RoleAssistant, text("looking on"), do)
	other.add(furl.RoleUser, result("toolu_last", "it says so"))
	_, second := other.begin()
	c.reply(first, text("looking on"), do)
	other.reply(second, text("Done."))
	s, err := reopen(t, store, o).Open(t.Context(), second.Session.ID())
	if err != nil {
		t.Fatal(err)
	}
	checked(t, s)
	if got, want := strings.Join(path(t, s), ""), "uauaua"; got != want || strings.Count(kinds(s), "x") != 3 {
		t.Errorf("the path has %s, want %s; the log has %s, want 3 exchanges", got, want, kinds(s))
	}
}
