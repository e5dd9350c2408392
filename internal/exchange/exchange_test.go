package exchange_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire/anthropic"
	"github.com/furlhq/furl/wire/openai"
)

// client is an agent that knows nothing of furl: it sends all it has with each
// request.
type client struct {
	t       testing.TB
	all     *session.Sessions
	hints   protocol.Hints
	history []json.RawMessage
	replies int
	name    string
	last    *exchange.Exchange
	system  string // "": You help.
	fields  string // further ones of its requests, with a comma before each
}

func (c *client) fatal(args ...any) { c.t.Helper(); c.t.Fatal(args...) }

func (c *client) add(role furl.Role, blocks ...furl.Block) {
	c.t.Helper()
	c.history = append(c.history, message(c.t, role, blocks...).Raw)
}

func (c *client) request() *protocol.Request {
	c.t.Helper()
	list, err := json.Marshal(c.history)
	if err != nil {
		c.fatal(err)
	}
	body := fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":1000,"system":%q,"messages":%s,"x_unknown":1.10%s}`, cmp.Or(c.system, "You help."), list, c.fields)
	req, err := anthropic.Codec.DecodeRequest([]byte(body))
	if err != nil {
		c.fatal(err)
	}
	return req
}

// begin sends the request to the provider, which accepts it.
func (c *client) begin() (*protocol.Request, *exchange.Exchange) {
	c.t.Helper()
	req, x := c.ask()
	if resend, err := x.Commit(c.t.Context()); err != nil || resend || x.Err != nil {
		c.fatal("commit: ", resend, err, x.Err)
	}
	return req, x
}

// ask sends the request to the provider.
func (c *client) ask() (*protocol.Request, *exchange.Exchange) {
	c.t.Helper()
	req := c.request()
	x, err := exchange.Of(c.all).Begin(c.t.Context(), req, exchange.BeginOptions{Hints: c.hints})
	if err != nil {
		c.fatal(err)
	}
	c.last = x
	return req, x
}

// send sends the request and takes the reply into the history, with calls
// answered.
func (c *client) send(blocks ...furl.Block) *exchange.Exchange {
	c.t.Helper()
	_, x := c.begin()
	c.reply(x, blocks...)
	return x
}

func (c *client) reply(x *exchange.Exchange, blocks ...furl.Block) {
	c.t.Helper()
	c.replies++
	m := message(c.t, furl.RoleAssistant, blocks...)
	r := &protocol.Reply{
		Format: furl.FormatAnthropic, ID: fmt.Sprintf("msg_%s_%d", c.name, c.replies), Model: "claude-sonnet-4-5",
		Messages: []*furl.Message{m}, Usage: furl.Usage{Input: 500 + len(x.Body)/4, Output: 20}, Stop: "end_turn", Complete: true,
	}
	if err := x.Done(c.t.Context(), r); err != nil {
		c.fatal(err)
	}
	c.compareAccount(x, r.ID)
	c.history = append(c.history, slices.Clone(m.Raw))
	var results []furl.Block
	for _, b := range blocks {
		if b.Kind == furl.KindCall {
			results = append(results, result(b.ID, "result of "+b.ID+" "+strings.Repeat("line of it ", 60)))
		}
	}
	if len(results) > 0 {
		c.add(furl.RoleUser, results...)
	}
}

// compareAccount compares the account of an exchange with the one that follows from
// the log.
func (c *client) compareAccount(x *exchange.Exchange, reply string) {
	c.t.Helper()
	if x.Session == nil || x.Fit == nil || x.Fit.Account == nil {
		return
	}
	list, err := x.Session.Requests()
	if err != nil {
		c.fatal(err)
	}
	for _, q := range list {
		if q.Exchange == 0 || x.Session.Records(q.Exchange - 1)[0].Body.(*furl.Exchange).ResponseID != reply {
			continue
		}
		if q.Account != *x.Fit.Account {
			c.fatal(fmt.Sprintf("request %d of session %s: the account was %+v, its records say %+v", q.Number, x.Session.ID(), *x.Fit.Account, q.Account))
		}
	}
}

// step is a reply with one call.
func (c *client) step() *exchange.Exchange {
	c.t.Helper()
	n := c.replies
	return c.send(text(fmt.Sprint("looking ", n)), call(fmt.Sprintf("toolu_%s_%d", c.name, n), "read", fmt.Sprintf(`{"path":"f%d"}`, n)))
}

// path describes the messages of a session's path by role.
func path(t testing.TB, s *session.Session) []string {
	t.Helper()
	var list []string
	st := sessiontest.Log(t, s).State()
	for i := range st.Len() {
		_, m := st.Message(i)
		list = append(list, string(m.Role[0]))
	}
	return list
}

func newClient(t testing.TB, all *session.Sessions, name string) *client {
	c := &client{t: t, all: all, name: name}
	c.add(furl.RoleUser, text("hi"))
	return c
}

func kinds(s *session.Session) string {
	var out strings.Builder
	for _, r := range s.Records(0) {
		switch r.Body.(type) {
		case *furl.Message:
			out.WriteString("m")
		case *furl.Reduction:
			out.WriteString("r")
		case *furl.Restoration:
			out.WriteString("t")
		case *furl.Takeover:
			out.WriteString("o")
		case *furl.Exchange:
			out.WriteString("x")
		case *furl.Head:
			out.WriteString("h")
		}
	}
	return out.String()
}

func TestBeginWithoutReductionsKeepsTheBody(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "none"})
	c := newClient(t, all, "a")
	for range 5 {
		req, x := c.begin()
		if !bytes.Equal(x.Body, req.Body) || x.Reduced {
			t.Fatalf("the body went out as %s", x.Body)
		}
		c.reply(x, call(fmt.Sprintf("toolu_%d", c.replies), "read", `{}`))
	}
	if got, want := kinds(c.last.Session), "mxmmxmmxmmxmmxm"; got != want {
		t.Errorf("the records are %s, want %s: each message once", got, want)
	}
	checked(t, c.last.Session)
}

// What no reduction touches goes out as the bytes that came in now, moved cache
// marks and unknown fields among them.
func TestBeginAppliesTheView(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "rolling-mask-5"})
	c := newClient(t, all, "a")
	for range 9 {
		c.step()
	}
	c.history[len(c.history)-1] = bytes.Replace(c.history[len(c.history)-1], []byte(`"type":"tool_result"`), []byte(`"type":"tool_result","cache_control":{"type":"ephemeral"}`), 1)
	req, x := c.begin()
	if !x.Reduced || !bytes.Contains(x.Body, []byte(`"x_unknown":1.10`)) || !bytes.Contains(x.Body, []byte("cache_control")) {
		t.Errorf("the body is %s", x.Body)
	}
	if n := strings.Count(string(x.Body), "observation masked"); n != 4 {
		t.Errorf("%d results are masked, want 4 of 9", n)
	}
	sent, err := anthropic.Codec.DecodeRequest(x.Body)
	if err != nil || len(sent.Messages) != len(req.Messages) {
		t.Fatalf("what is sent has %d messages, %v", len(sent.Messages), err)
	}
	if err := anthropic.Codec.Validate(sent, all.Model("claude-sonnet-4-5", furl.FormatAnthropic)); err != nil {
		t.Errorf("X1: what is sent would be refused: %v", err)
	}
	x.Drop()
	checked(t, x.Session)
}

func TestMatchHistories(t *testing.T) {
	fresh := func(t *testing.T) *client {
		all, _ := open(t, session.Options{Policy: "rolling-mask-5"})
		c := newClient(t, all, "a")
		for range 8 {
			c.step()
		}
		return c
	}
	t.Run("a retry appends nothing and meets the reductions made for it", func(t *testing.T) {
		c := fresh(t)
		_, x := c.begin()
		before := kinds(x.Session)
		_, again := c.begin()
		if got := kinds(again.Session); got != before || again.Session != x.Session {
			t.Errorf("a retry made the records %s of %s", got, before)
		}
		if !bytes.Equal(again.Body, x.Body) {
			t.Error("a retry sends another body")
		}
	})
	t.Run("a retry after the reply meets the reductions too", func(t *testing.T) {
		c := fresh(t)
		history := slices.Clone(c.history)
		x := c.step()
		c.history = history
		_, again := c.begin()
		if !bytes.Equal(again.Body, x.Body) {
			t.Error("a retry sends another body")
		}
		if got := kinds(again.Session); !strings.HasSuffix(got, "h") {
			t.Errorf("the records are %s, want a rewind at the end and nothing else", got)
		}
	})
	t.Run("results by call id: cleared ones are the client's reductions", func(t *testing.T) {
		c := fresh(t)
		s := c.last.Session
		n := len(path(t, s))
		c.history[14] = message(t, furl.RoleUser, result("toolu_a_6", "[old result cleared]")).Raw
		_, x := c.begin()
		if got := len(path(t, s)); got != n+1 || x.Session != s {
			t.Errorf("the path has %d messages, want the %d it had and the last result", got, n)
		}
		list := s.Reductions()
		i := slices.IndexFunc(list, func(r session.Recorded) bool { return r.Stage == "client" })
		if i < 0 || list[i].By != furl.Client {
			t.Fatalf("the reductions are %+v, want one of the client's", list)
		}
		x.Drop()
		count := len(list)
		_, x = c.begin()
		if got := s.Reductions(); len(got) != count {
			t.Errorf("sent again, there are %d reductions, want %d", len(got), count)
		}
		if !bytes.Contains(x.Body, []byte("[old result cleared]")) {
			t.Error("the client's own text is not sent")
		}
		checked(t, s)
	})
	t.Run("a divergence takes over what still holds", func(t *testing.T) {
		c := fresh(t)
		c.begin()
		c.history = c.history[:15]
		c.add(furl.RoleAssistant, text("I stop here."))
		c.add(furl.RoleUser, text("why?"))
		_, x := c.begin()
		if n := strings.Count(string(x.Body), "observation masked"); n == 0 {
			t.Error("what was hidden on the path that was left shows again")
		}
		if got := kinds(x.Session); strings.Count(got, "o") != 1 || strings.Contains(got[strings.Index(got, "h"):], "r") {
			t.Errorf("the records are %s, want the reductions taken over by one record and none repeated", got)
		}
		checked(t, x.Session)
	})
	t.Run("two that begin alike are two", func(t *testing.T) {
		all, _ := open(t, session.Options{})
		a, b := newClient(t, all, "a"), newClient(t, all, "b")
		_, x := a.begin()
		_, y := b.begin()
		if x.Session == y.Session {
			t.Error("both are one session")
		}
		a.reply(x, text("hello a"))
		b.reply(y, text("hello b"))
		a.add(furl.RoleUser, text("more"))
		b.add(furl.RoleUser, text("more"))
		_, x2 := a.begin()
		_, y2 := b.begin()
		if x2.Session != x.Session || y2.Session != y.Session {
			t.Error("they do not go on where they began")
		}
	})
	t.Run("hints bind and separate", func(t *testing.T) {
		all, store := open(t, session.Options{})
		a, b := newClient(t, all, "a"), newClient(t, all, "b")
		a.hints.Hint, b.hints.Hint = "one", "two"
		x := a.send(text("hello"))
		y := b.send(text("hello"))
		if x.Session == y.Session {
			t.Error("different hints are one session")
		}
		a.history = nil // it compacted by itself
		a.add(furl.RoleUser, text("Summary of all: we said hi."))
		_, x2 := a.begin()
		if x2.Session != x.Session {
			t.Error("the same hint with nothing shared is another session")
		}
		if got := path(t, x2.Session); len(got) != 1 {
			t.Errorf("its path is %v, want a new root", got)
		}
		x2.Drop()
		again := reopen(t, store, session.Options{})
		a.all = again
		_, x3 := a.begin()
		if x3.Session.ID() != x.Session.ID() {
			t.Error("the hint is forgotten after a restart")
		}
	})
	t.Run("context that moves on at the end is beside the path", func(t *testing.T) {
		all, store := open(t, session.Options{Policy: "rolling-mask-5"})
		c := newClient(t, all, "a")
		moves := func(n int) (done func()) {
			c.add(furl.RoleUser, text(fmt.Sprint("context, number ", n)))
			return func() { c.history = slices.Delete(c.history, len(c.history)-3, len(c.history)-2) }
		}
		for n := range 12 {
			done := moves(n)
			x := c.step()
			done()
			if n > 6 && !bytes.Contains(x.Body, fmt.Append(nil, "context, number ", n)) {
				t.Fatalf("request %d went out without its context", n)
			}
			if n == 6 {
				c.all = reopen(t, store, session.Options{Policy: "rolling-mask-5"})
			}
		}
		s := c.last.Session
		if got := len(path(t, s)); got != len(c.history)-1 {
			t.Errorf("the path has %d messages, want the %d of the history but its last result", got, len(c.history)-1)
		}
		if n := strings.Count(kinds(s), "o"); n > 0 {
			t.Errorf("%d takeovers: each request was a divergence", n)
		}
		hits, err := s.Search(t.Context(), "context number 7", session.SearchOptions{Scope: session.OffPath, Limit: 1})
		if err != nil || len(hits) != 1 || !strings.Contains(hits[0].Excerpt, "number 7") {
			t.Errorf("what stood beside the path is found as %+v, %v", hits, err)
		}
		done := moves(99)
		_, x := c.begin()
		n := len(s.Records(0))
		_, y := c.begin()
		if !bytes.Equal(x.Body, y.Body) || len(y.Session.Records(0)) != len(x.Session.Records(0)) {
			t.Errorf("a retry is not the same, with %d records of %d", len(y.Session.Records(0)), n)
		}
		_ = done
		checked(t, s)
	})
	t.Run("a fork does not take the client over", func(t *testing.T) {
		c := fresh(t)
		s := c.last.Session
		if _, err := c.all.Fork(t.Context(), s, s.Head()); err != nil {
			t.Fatal(err)
		}
		if _, x := c.begin(); x.Session != s {
			t.Error("the client goes on in the fork")
		}
	})
	t.Run("other tenants share nothing", func(t *testing.T) {
		c := fresh(t)
		mine := c.last.Session
		c.all = c.all.For("other")
		if _, x := c.begin(); x.Session.Info().SessionKey == mine.Info().SessionKey || x.Session.Info().SessionKey.Tenant != "other" {
			t.Error("another tenant's request went on in the session")
		}
	})
	t.Run("messages of one role in a row are one run", func(t *testing.T) {
		all, _ := open(t, session.Options{Policy: "rolling-mask-5"})
		c := newClient(t, all, "a")
		c.add(furl.RoleUser, text("and look at this"))
		for range 8 {
			c.step()
		}
		s, n := c.last.Session, len(c.history)
		c.history = append([]json.RawMessage{message(t, furl.RoleUser, text("hi"), text("and look at this")).Raw}, c.history[2:]...)
		_, x := c.begin()
		if x.Session != s || len(path(t, s)) != n {
			t.Errorf("grouped otherwise, the path has %d messages, want %d", len(path(t, s)), n)
		}
		sent, err := anthropic.Codec.DecodeRequest(x.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := anthropic.Codec.Validate(sent, furl.Model{}); err != nil || !x.Reduced {
			t.Errorf("what is sent would be refused: %v", err)
		}
	})
}

// A client of Responses that does not send reasoning back: what is hidden is
// still hidden, and each item is where it belongs.
func TestReasoningLeftOut(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		all, _ := open(t, session.Options{Policy: "rolling-mask-5"})
		var items []string
		ask := func() (*protocol.Request, *exchange.Exchange) {
			t.Helper()
			body := `{"model":"gpt-5.2","store":false,"input":[` + strings.Join(items, ",") + `]}`
			req, err := openai.Responses.DecodeRequest([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			x, err := exchange.Of(all).Begin(t.Context(), req, exchange.BeginOptions{Hints: protocol.Hints{Hint: "one"}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := x.Commit(t.Context()); err != nil || x.Err != nil {
				t.Fatal(err, x.Err)
			}
			return req, x
		}
		items = append(items, `{"role":"user","content":"Read."}`)
		for n := range 9 {
			_, x := ask()
			reply := &protocol.Reply{ID: fmt.Sprint("resp_", n), Format: furl.FormatResponses, Usage: furl.Usage{Input: 100 * n, Output: 5}}
			for _, item := range []string{
				fmt.Sprintf(`{"type":"reasoning","id":"rs_%d","summary":[],"encrypted_content":"abc"}`, n),
				fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":"call_%d","name":"read","arguments":"{}"}`, n, n),
			} {
				m, err := openai.Responses.DecodeMessage([]byte(item))
				if err != nil {
					t.Fatal(err)
				}
				reply.Messages = append(reply.Messages, m)
				if keeps || !strings.Contains(item, "reasoning") {
					items = append(items, item)
				}
			}
			items = append(items, fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%q}`, n, strings.Repeat("words of it ", 50)))
			if err := x.Done(t.Context(), reply); err != nil {
				t.Fatal(err)
			}
		}
		req, x := ask()
		if got, want := kinds(x.Session), "m"+strings.Repeat("xmmm", 9); strings.ReplaceAll(got, "r", "") != want {
			t.Errorf("keeping reasoning %v: the records are %s, want %s and reductions", keeps, got, want)
		}
		sent, err := openai.Responses.DecodeRequest(x.Body)
		if err != nil || len(sent.Messages) != len(req.Messages) {
			t.Fatalf("keeping reasoning %v: %d items were sent of %d, %v", keeps, len(sent.Messages), len(req.Messages), err)
		}
		if n := strings.Count(string(x.Body), "observation masked"); n != 4 || strings.Count(string(x.Body), "reasoning") != map[bool]int{true: 9}[keeps] {
			t.Errorf("keeping reasoning %v: %d results are masked, sent %s", keeps, n, x.Body)
		}
		x.Drop()
		checked(t, x.Session)
	}
}

// The client may send its next request before the reply is recorded, since the
// bytes go to it first.
func TestNextRequestWaitsForTheReply(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "none"})
	c := newClient(t, all, "a")
	_, x := c.begin()
	hello := message(t, furl.RoleAssistant, text("hello"))
	c.history = append(c.history, hello.Raw)
	c.add(furl.RoleUser, text("more"))
	req := c.request()
	next := make(chan *exchange.Exchange)
	go func() {
		y, err := exchange.Of(all).Begin(context.Background(), req, exchange.BeginOptions{Hints: protocol.Hints{Session: x.Session.ID()}})
		if err != nil {
			t.Error(err)
		}
		next <- y
	}()
	if err := x.Done(t.Context(), &protocol.Reply{ID: "msg_1", Messages: []*furl.Message{hello}, Usage: furl.Usage{Input: 10, Output: 1}}); err != nil {
		t.Fatal(err)
	}
	y := <-next
	if _, err := y.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := kinds(y.Session); got != "mxmm" {
		t.Errorf("the records are %s, want mxmm: the reply once, after its exchange", got)
	}
}

// Pitfalls 4 and 6: the provider refuses the prompt; more is hidden, once.
func TestOverflow(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "sliding-window"})
	c := newClient(t, all, "a")
	for range 20 {
		c.step()
	}
	req, x := c.begin()
	if x.Reduced {
		t.Fatal("hidden too early")
	}
	if !x.Overflow(t.Context(), &protocol.Overflow{Tokens: 6000, Limit: 4000}) {
		t.Fatal("nothing was hidden after an overflow")
	}
	if len(x.Body) >= len(req.Body) || x.Recovered == nil || x.Recovered.Limit != 4000 {
		t.Errorf("the body has %d bytes of %d, recovered %+v", len(x.Body), len(req.Body), x.Recovered)
	}
	if x.Overflow(t.Context(), &protocol.Overflow{Tokens: 5000, Limit: 4000}) {
		t.Error("an exchange recovered twice")
	}
	c.reply(x, text("done"))
	moments, err := event.Timeline(sessiontest.Log(t, x.Session), 0, x.Session.Head(), 0)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, m := range moments {
		for _, e := range m.Events {
			if e == (event.OverflowRecovered{Reported: 6000, Limit: 4000}) {
				told++
			}
		}
	}
	if told != 1 {
		t.Errorf("readers are told of it %d times", told)
	}
	if m := all.Model("claude-sonnet-4-5", furl.FormatAnthropic); m.Window != 4000 {
		t.Errorf("the window is still taken for %d", m.Window)
	}
	checked(t, x.Session)
}

// A provider that refuses a prompt without saying how large one may be is not
// asked again and again: what it refused is too large from then on, and what it
// has taken is not.
func TestOverflowWithoutNumbers(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "sliding-window"})
	c := newClient(t, all, "a")
	for range 20 {
		c.step()
	}
	_, x := c.begin()
	size := x.Fit.Plan.After
	if !x.Overflow(t.Context(), new(protocol.Overflow)) {
		t.Fatal("nothing was hidden after an overflow")
	}
	window := func() int { return all.Model("claude-sonnet-4-5", furl.FormatAnthropic).Window }
	if w := window(); w < size*9/10 || w >= size {
		t.Errorf("a prompt of %d tokens was refused, and the window is taken for %d", size, w)
	}
	if x.Fit.Plan.After > window() {
		t.Errorf("%d tokens are sent again where %d is the window", x.Fit.Plan.After, window())
	}
	accepted := 500 + len(x.Body)/4
	c.reply(x, text("done"))
	for range 3 {
		_, x = c.begin()
		x.Overflow(t.Context(), new(protocol.Overflow))
	}
	if w := window(); w < accepted {
		t.Errorf("the window is taken for %d where a prompt of %d was taken", w, accepted)
	}
	checked(t, x.Session)
}

// A window that a refusal names is forgotten when the provider takes more.
func TestOverflowBelowWhatIsTaken(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "sliding-window"})
	c := newClient(t, all, "a")
	for range 3 {
		c.step()
	}
	_, x := c.begin()
	x.Overflow(t.Context(), &protocol.Overflow{Tokens: 9, Limit: 8})
	if m := all.Model("claude-sonnet-4-5", furl.FormatAnthropic); m.Window != 8 {
		t.Fatalf("the window is taken for %d", m.Window)
	}
	c.reply(x, text("done"))
	if m := all.Model("claude-sonnet-4-5", furl.FormatAnthropic); m.Window < 100_000 {
		t.Errorf("the window is still taken for %d", m.Window)
	}
}

// broken is a store that fails while it is down.
func TestFailsOpen(t *testing.T) {
	t.Run("nothing hidden: unchanged", func(t *testing.T) {
		store := &broken{Store: inmem.New()}
		c := newClient(t, reopen(t, store, session.Options{Policy: "none"}), "a")
		c.step()
		store.Down = true
		for failures, begins := range []bool{true, false} { // then the store is asked whether it has what it refused
			_, x := c.ask()
			if begins != (x.Err == nil) {
				t.Errorf("begun with the store down: %v", x.Err)
			}
			if resend, err := x.Commit(t.Context()); err != nil || resend || !errors.Is(x.Err, errDown) || x.Reduced || x.Why == "" {
				t.Errorf("with the store down: send again %v, %v, %v, reduced %v, why %q", resend, err, x.Err, x.Reduced, x.Why)
			}
			if n := exchange.Of(c.all).Failures(); n != int64(failures+1) {
				t.Errorf("%d failures counted, want %d", n, failures+1)
			}
			c.last = x
		}
		x := c.last
		c.reply(x, text("an answer"))
		store.Down = false
		c.add(furl.RoleUser, text("go on"))
		_, x = c.begin()
		if got := len(path(t, x.Session)); got != len(c.history) {
			t.Errorf("the gap did not heal: %d of %d messages", got, len(c.history))
		}
	})
	t.Run("something hidden: from memory", func(t *testing.T) {
		store := &broken{Store: inmem.New()}
		c := newClient(t, reopen(t, store, session.Options{Policy: "rolling-mask-5"}), "a")
		for range 10 {
			c.step()
		}
		store.Down = true
		for _, masked := range []int{5, 4} { // what was planned and not stored is not what comes after it
			_, x := c.ask()
			if _, err := x.Commit(t.Context()); err != nil || x.Err == nil || !x.Reduced {
				t.Fatalf("with the store down: %v, %v, reduced %v", err, x.Err, x.Reduced)
			}
			if n := strings.Count(string(x.Body), "observation masked"); n != masked {
				t.Errorf("%d results are masked, want %d", n, masked)
			}
		}
		store.Down = false
		_, y := c.begin()
		checked(t, y.Session)
	})
	t.Run("nothing known, and thinking that is bound to its prompt: without it", func(t *testing.T) {
		store := &broken{Store: inmem.New(), Down: true}
		all := reopen(t, store, session.Options{})
		body := `{"model":"claude-opus-5-5","max_tokens":1000,"messages":[{"role":"user","content":"hi"},` +
			`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"hello"}]},{"role":"user","content":"more"}]}`
		req, err := anthropic.Codec.DecodeRequest([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		x, err := exchange.Of(all).Begin(t.Context(), req, exchange.BeginOptions{})
		if err != nil || bytes.Contains(x.Body, []byte("thinking")) || !bytes.Contains(x.Body, []byte("hello")) || !strings.Contains(x.Why, "thinking") {
			t.Errorf("sent %s, %v, why %q", x.Body, err, x.Why)
		}
	})
	t.Run("refused if asked for", func(t *testing.T) {
		store := &broken{Store: inmem.New(), Down: true}
		c := newClient(t, reopen(t, store, session.Options{Refuse: true}), "a")
		if _, err := exchange.Of(c.all).Begin(t.Context(), c.request(), exchange.BeginOptions{Hints: c.hints}); !errors.Is(err, errDown) {
			t.Errorf("got %v, want the store's error", err)
		}
		store.Down = false
		_, x := c.ask()
		store.Down = true
		if _, err := x.Commit(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("committed: %v, want the store's error", err)
		}
	})
}

// TestClients holds over whatever a client does that its session's path is its
// history, that nothing is appended twice, that what is sent is valid, and that
// the session passes its check.
func TestClients(t *testing.T) {
	for _, name := range []string{"none", "rolling-mask-5", "sliding-window"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { playClients(t, rt, name) })
		})
	}
}

func playClients(t *testing.T, rt *rapid.T, policy string) {
	store := inmem.New()
	all := reopen(t, store, session.Options{Policy: policy, Window: 3000, Keep: 2})
	var clients []*client
	start := func() {
		c := newClient(t, all, fmt.Sprint(len(clients)))
		if rapid.Bool().Draw(rt, "hinted") {
			c.hints.Hint = "client " + c.name
		}
		clients = append(clients, c)
	}
	start()
	pick := func() *client { return rapid.SampledFrom(clients).Draw(rt, "client") }
	rt.Repeat(map[string]func(*rapid.T){
		"start": func(*rapid.T) {
			if len(clients) < 4 {
				start()
			}
		},
		"step": func(*rapid.T) { c := pick(); c.verify(c.step()) },
		"answer": func(*rapid.T) {
			c := pick()
			c.verify(c.send(text(fmt.Sprint("answer ", c.name, " ", c.replies))))
			c.add(furl.RoleUser, text(fmt.Sprint("question ", c.replies)))
		},
		"retry": func(*rapid.T) {
			c := pick()
			_, x := c.begin()
			n := len(x.Session.Records(0))
			_, y := c.begin()
			if len(c.history) > 1 && (y.Session.ID() != x.Session.ID() || len(y.Session.Records(0)) != n) {
				rt.Fatalf("a retry made %d records of %d", len(y.Session.Records(0)), n)
			}
			x.Drop()
			y.Drop()
		},
		"clear": func(rt *rapid.T) {
			c := pick()
			i := rapid.IntRange(0, len(c.history)-1).Draw(rt, "message")
			var m struct {
				Content []struct{ Type, ID, Tool_use_id string }
			}
			if json.Unmarshal(c.history[i], &m) == nil && len(m.Content) == 1 && m.Content[0].Type == "tool_result" {
				c.history[i] = message(t, furl.RoleUser, result(m.Content[0].Tool_use_id, rapid.SampledFrom([]string{"[cleared]", "[gone]"}).Draw(rt, "text"))).Raw
			}
		},
		"edit": func(rt *rapid.T) {
			c := pick()
			i := rapid.IntRange(0, len(c.history)-1).Draw(rt, "message")
			if i > 0 && bytes.Contains(c.history[i], []byte(`"question`)) {
				c.history = c.history[:i]
				c.add(furl.RoleUser, text(fmt.Sprint("question, put otherwise ", c.replies)))
			}
		},
		"compact": func(rt *rapid.T) {
			c := pick()
			if c.hints.Hint != "" {
				c.history = nil
				c.add(furl.RoleUser, text(fmt.Sprint("summary of ", c.name, " ", c.replies)))
			}
		},
		"forget": func(*rapid.T) { all.Drop() },
		"restart": func(*rapid.T) {
			n := 0
			all = reopen(t, store, session.Options{Policy: policy, Window: 3000, NewID: func() furl.SessionID {
				n++
				return furl.SessionID(fmt.Sprintf("r%d_%d", len(all.Tenant())+rapid.IntRange(1, 1<<40).Draw(rt, "id"), n))
			}})
			for _, c := range clients {
				c.all = all
			}
		},
		"": func(rt *rapid.T) {},
	})
	for info, err := range all.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		s, err := all.Open(t.Context(), info.Session)
		if err != nil {
			t.Fatal(err)
		}
		checked(t, s)
	}
}

// verify holds what is sent, and recorded, against the history.
func (c *client) verify(x *exchange.Exchange) {
	c.t.Helper()
	sent, err := anthropic.Codec.DecodeRequest(x.Body)
	if err != nil {
		c.fatal(err)
	}
	if err := anthropic.Codec.Validate(sent, furl.Model{}); err != nil {
		c.fatal("what is sent would be refused: ", err, string(x.Body))
	}
	st := sessiontest.Log(c.t, x.Session).State()
	for i := range min(st.Len(), len(c.history)) {
		_, m := st.Message(i)
		want, err := anthropic.Codec.DecodeMessage(c.history[i])
		if err != nil {
			c.fatal(err)
		}
		if m.Digest != want.Digest {
			c.fatal("message ", i, " of the path is not that of the history")
		}
	}
	if n := st.Len(); n != len(c.history) && n != len(c.history)-1 {
		c.fatal("the path has ", n, " messages, the history ", len(c.history))
	}
}
