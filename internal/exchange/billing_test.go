package exchange_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire/anthropic"
)

// Two first requests of a session are in flight, in two processes: each is sent once, with
// its own billing line. The line of the one that is accepted first is that of all later
// requests, in both processes.
func TestBillingLinesUnderWay(t *testing.T) {
	store := inmem.New()
	defer store.Close()
	one, other := reopen(t, store, session.Options{}), reopen(t, store, session.Options{})
	begin := func(all *session.Sessions, n int, text string) *exchange.Exchange {
		t.Helper()
		body := fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":9,"system":[{"type":"text","text":%q}],"tools":[{"name":"read","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":%q}]}`, billingOf(n), text)
		req, err := anthropic.Codec.DecodeRequest([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		x, err := exchange.Of(all).Begin(t.Context(), req, exchange.BeginOptions{Hints: protocol.Hints{Hint: "same"}, HoldBilling: true})
		if err != nil || x.Err != nil {
			t.Fatal(err, x.Err)
		}
		return x
	}
	commit := func(x *exchange.Exchange, line string) {
		t.Helper()
		if resend, err := x.Commit(t.Context()); err != nil || x.Err != nil || resend || !strings.Contains(string(x.Body), line) {
			t.Errorf("send again %v, %v %v, want %s in %s", resend, err, x.Err, line, x.Body)
		}
		x.Drop()
	}
	x, y := begin(one, 1, "Look at everything."), begin(other, 2, "You are asked to look at the tests.")
	commit(y, billingOf(2))
	commit(x, billingOf(1))
	for n, all := range []*session.Sessions{one, other} {
		commit(begin(all, 3+n, fmt.Sprint("Look at more of it, part ", n)), billingOf(2))
	}
	long := strings.Repeat("a", 2000)
	req, err := anthropic.Codec.DecodeRequest([]byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"system":"x-anthropic-billing-header: ` + long + `","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"},{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	x, err = exchange.Of(one).Begin(t.Context(), req, exchange.BeginOptions{Hints: protocol.Hints{Hint: "long"}, HoldBilling: true})
	if err != nil || x.Reduced {
		t.Fatalf("%v, changed %v", err, x.Reduced)
	}
	if _, err := x.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(fmt.Sprint(x.Session.Meta().Settings)); n > 1000 {
		t.Errorf("%d bytes of settings are stored", n)
	}
	x.Drop()
}

func billingOf(n int) string {
	return fmt.Sprintf("x-anthropic-billing-header: cc_version=2.1.332.01c; cch=%05d;", n)
}
