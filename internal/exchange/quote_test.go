package exchange_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire/anthropic"
)

// A program asks for a summary of its conversation with a request that quotes it.
func TestQuotedConversation(t *testing.T) {
	base, _ := open(t, session.Options{Policy: "none"})
	all := base.For("one")
	c := newClient(t, all, "agent")
	c.hints.Hint = ""
	c.history = c.history[:0]
	c.add(furl.RoleUser, text("Read all files and say what is in them."))
	var quoted strings.Builder
	quoted.WriteString("Human: Read all files and say what is in them.\n")
	for n := range 6 {
		said, found := fmt.Sprintf("I look at file %d, which may have it.", n), strings.Repeat(fmt.Sprintf("line of \"file %d\"; ", n), 20)
		c.sendAs(c.history, text(said), call(fmt.Sprintf("toolu_01Xy%dZq%dKw", n, n), "read", fmt.Sprintf(`{"path":"f%d"}`, n)))
		c.history = c.history[:len(c.history)-1]
		c.add(furl.RoleAssistant, text(said), call(fmt.Sprintf("toolu_01Xy%dZq%dKw", n, n), "read", fmt.Sprintf(`{"path":"f%d"}`, n)))
		c.add(furl.RoleUser, result(fmt.Sprintf("toolu_01Xy%dZq%dKw", n, n), found))
		if n < 5 { // the last result is not recorded yet
			quoted.WriteString("AI: " + said + "\nTool: " + found + "\n")
		}
	}
	user := func(text string) string {
		return string(message(t, furl.RoleUser, furl.Block{Kind: furl.KindText, Text: text}).Raw)
	}
	for _, tt := range []struct {
		name, messages, more string
		hints                protocol.Hints
		tenant               furl.Tenant
		want                 bool
	}{
		{name: "quoted", messages: user("Extract the context of these messages.\n" + quoted.String()), want: true},
		{name: "with instructions", messages: user(quoted.String()), more: `,"system":"You summarize."`, want: true},
		{name: "with an id", messages: user(quoted.String()), hints: protocol.Hints{Hint: "one"}},
		{name: "in a session that a person chose", messages: user(quoted.String()), hints: protocol.Hints{Session: "s1"}},
		{name: "with tools", messages: user(quoted.String()), more: `,"tools":[{"name":"read","input_schema":{"type":"object"}}]`},
		{name: "with a reply", messages: user(quoted.String()) + `,{"role":"assistant","content":"Yes."},` + user("Go on.")},
		{name: "a part of something else", messages: user(quoted.String() + strings.Repeat("This is another text. ", 200))},
		{name: "of another tenant", messages: user(quoted.String()), tenant: "two"},
		{name: "nothing of it", messages: user(strings.Repeat("This is another text. ", 200))},
	} {
		req, err := anthropic.Codec.DecodeRequest([]byte(`{"model":"claude-sonnet-4-5","max_tokens":100` + tt.more + `,"messages":[` + tt.messages + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		of := all
		if tt.tenant != "" {
			of = base.For(tt.tenant)
		}
		if got := exchange.Of(of).Quotes(req, tt.hints); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
