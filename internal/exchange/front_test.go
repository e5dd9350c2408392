package exchange_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/racetest"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
)

// sendAs sends a request with another history than the client's, which it keeps.
func (c *client) sendAs(history []json.RawMessage, reply ...furl.Block) (*protocol.Request, *exchange.Exchange) {
	c.t.Helper()
	whole := c.history
	c.history = history
	req, x := c.begin()
	c.history = whole
	c.reply(x, reply...)
	return req, x
}

// newestOf returns the newest n messages of a history, from a message of the user on.
func newestOf(history []json.RawMessage, n int) []json.RawMessage {
	from := max(0, len(history)-n)
	if from%2 == 1 {
		from++
	}
	return history[from:]
}

// countMessages returns the number of messages that a session has recorded.
func countMessages(s *session.Session) int { return strings.Count(kinds(s), "m") }

// A client changes its first message with each request, or sends only its newest
// messages, or both.
func TestChangingFront(t *testing.T) {
	clock := func(c *client, n int) json.RawMessage {
		return message(c.t, furl.RoleUser, text(fmt.Sprintf("[now %d] Find out why the tests fail.", n))).Raw
	}
	whole := func(c *client, n int) []json.RawMessage { return c.history }
	for name, habit := range map[string]func(c *client, n int) []json.RawMessage{
		"unchanged": whole,
		"changing first": func(c *client, n int) []json.RawMessage {
			return append([]json.RawMessage{clock(c, n)}, c.history[1:]...)
		},
		"newest": func(c *client, n int) []json.RawMessage { return newestOf(c.history, 15) },
		"first and newest": func(c *client, n int) []json.RawMessage {
			return slices.Concat(c.history[:1], c.history[max(1, len(c.history)-14):])
		},
		"changing first, newest": func(c *client, n int) []json.RawMessage {
			return append([]json.RawMessage{clock(c, n)}, c.history[max(1, len(c.history)-14):]...)
		},
		"changing summary": func(c *client, n int) []json.RawMessage {
			return append([]json.RawMessage{message(c.t, furl.RoleUser, text(fmt.Sprint(n, " steps were made. ", strings.Repeat(fmt.Sprint("step ", n), 9)))).Raw}, c.history[max(1, len(c.history)-14):]...)
		},
	} {
		for _, hint := range []string{"", "own"} {
			for _, policy := range []string{"none", "rolling-mask-5"} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, hint, policy), func(t *testing.T) {
					const requests = 40
					all, _ := open(t, session.Options{Policy: policy})
					c := newClient(t, all, "front")
					c.hints.Hint = hint
					c.history = c.history[:0]
					c.add(furl.RoleUser, text("Find out why the tests fail."))
					ids := make(map[furl.SessionID]bool)
					for n := range requests {
						req, x := c.sendAs(habit(c, n), text(fmt.Sprintf("Reply %d says what was found in the file.", n)))
						ids[x.Session.ID()] = true
						if policy == "none" && !bytes.Equal(req.Body, x.Body) {
							t.Fatalf("request %d was changed: %s\n%s", n, req.Body, x.Body)
						}
						if len(req.Messages) > 0 && !bytes.Contains(x.Body, req.Messages[0].Raw) {
							t.Fatalf("request %d was sent without the client's first message", n)
						}
						c.add(furl.RoleUser, text(fmt.Sprintf("Output %d: %s", n, strings.Repeat(fmt.Sprint("line ", n, "; "), 20))))
					}
					s := c.last.Session
					checked(t, s)
					if hint == "" && strings.Contains(name, "changing") {
						// The first few requests are not enough to be sure.
						if len(ids) > 8 {
							t.Errorf("%d sessions", len(ids))
						}
						return
					}
					if len(ids) != 1 {
						t.Errorf("%d sessions, want 1", len(ids))
					}
					if got := countMessages(s); got > 2*requests+6 {
						t.Errorf("%d messages recorded for %d", got, 2*requests)
					}
				})
			}
		}
	}
}

// A client that has left out messages sends them again. They are on the path, so
// nothing is recorded again.
func TestMessagesSentAgain(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "none"})
	c := newClient(t, all, "again")
	c.hints.Hint = "own"
	for n := range 30 {
		history := c.history
		if n%10 > 4 {
			history = newestOf(c.history, 7)
		}
		req, x := c.sendAs(history, text(fmt.Sprintf("Reply %d says what was found in the file.", n)))
		if !bytes.Equal(req.Body, x.Body) {
			t.Fatalf("request %d was changed", n)
		}
		st, err := furl.Fold(logOf(t, x.Session), x.Fit.Head)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(st.View(furl.Model{}).Messages); got != len(history) {
			t.Errorf("request %d: the view has %d messages, the request %d", n, got, len(history))
		}
		c.add(furl.RoleUser, text(fmt.Sprintf("Output %d: %s", n, strings.Repeat("line; ", 20))))
	}
	if got := countMessages(c.last.Session); got != 60 {
		t.Errorf("%d messages recorded, want 60", got)
	}
	checked(t, c.last.Session)
}

// logOf returns a log with the records of a session.
func logOf(t *testing.T, s *session.Session) *furl.Log {
	t.Helper()
	log := furl.NewLog()
	if err := log.Load(s.Records(0)); err != nil {
		t.Fatal(err)
	}
	return log
}

// Conversations without ids have the same short texts, and only their first messages
// differ. Whatever their clients leave out, none is recorded in the session of another.
func TestConversationsAreNeverJoined(t *testing.T) {
	racetest.FewerChecks(t, 20)
	said := []string{"ok", "continue", "hi", "yes", "go on"}
	rapid.Check(t, func(rt *rapid.T) {
		base, _ := open(t, session.Options{Policy: rapid.SampledFrom([]string{"none", "rolling-mask-5"}).Draw(rt, "policy")})
		var list []*client
		window := make(map[*client]int)
		clock := make(map[*client]bool)
		for i := range rapid.IntRange(2, 4).Draw(rt, "conversations") {
			tenant := rapid.SampledFrom([]furl.Tenant{"", "other"}).Draw(rt, "tenant")
			c := newClient(t, base.For(tenant), fmt.Sprint("c", i))
			c.hints.Hint = ""
			c.hints.Client = rapid.SampledFrom([]string{"", "one", "two"}).Draw(rt, "client")
			c.history = c.history[:0]
			c.add(furl.RoleUser, text(fmt.Sprintf("Task %d.", i)))
			window[c], clock[c] = rapid.IntRange(3, 12).Draw(rt, "window"), rapid.Bool().Draw(rt, "clock")
			list = append(list, c)
		}
		of := make(map[furl.SessionKey]*client)
		for n := range rapid.IntRange(10, 40).Draw(rt, "requests") {
			c := rapid.SampledFrom(list).Draw(rt, "who")
			var history []json.RawMessage
			switch {
			case clock[c]:
				history = append([]json.RawMessage{message(t, furl.RoleUser, text(fmt.Sprintf("[%d] Task of %s.", n, c.name))).Raw}, c.history[1:]...)
			case rapid.Bool().Draw(rt, "newest"):
				if history = newestOf(c.history, window[c]); lastAnswered(history) == len(history) {
					history = c.history // the model has said nothing yet
				}
			default:
				history = c.history
			}
			reply := []furl.Block{text(rapid.SampledFrom(said).Draw(rt, "reply"))}
			calls := rapid.Bool().Draw(rt, "calls")
			if calls {
				reply = append(reply, call("call_0", "read", `{"path":"README.md"}`))
			}
			_, x := c.sendAs(history, reply...)
			key := furl.SessionKey{Tenant: c.all.Tenant(), Session: x.Session.ID()}
			if other := of[key]; other != nil && other != c {
				rt.Fatalf("request %d of %s is in a session of %s: %.2000s", n, c.name, other.name, history)
			}
			of[key] = c
			next := []furl.Block{text(rapid.SampledFrom(said).Draw(rt, "text"))}
			if calls {
				next = []furl.Block{result("call_0", strings.Repeat("the same file\n", 20))}
				c.history = c.history[:len(c.history)-1-lastAnswered(c.history)]
				c.add(furl.RoleAssistant, reply...)
			}
			c.add(furl.RoleUser, next...)
		}
	})
}

// lastAnswered is how many messages of a history follow the last reply.
func lastAnswered(history []json.RawMessage) int {
	n := 0
	for _, raw := range slices.Backward(history) {
		if bytes.Contains(raw, []byte(`"role":"assistant"`)) {
			break
		}
		n++
	}
	return n
}

// Conversations that begin with the same examples are not joined, although the examples have
// replies, and calls with ids that look random.
func TestExamplesDoNotJoin(t *testing.T) {
	long := text(strings.Repeat("An example of what to answer. ", 10))
	for name, example := range map[string][]furl.Block{
		"a long text": {long},
		"a call":      {call("toolu_01A09q90qw90lq917835lq9", "read", `{"path":"README.md"}`)},
	} {
		for _, clock := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, clock %v", name, clock), func(t *testing.T) {
				all, _ := open(t, session.Options{Policy: "none"})
				of := make(map[furl.SessionID]int)
				for n := range 3 {
					c := newClient(t, all, "examples")
					c.hints.Hint = ""
					c.history = c.history[:0]
					question := text("An example of a question.")
					if clock {
						question = text(fmt.Sprintf("It is %d o'clock. An example of a question.", n))
					}
					c.add(furl.RoleUser, question)
					c.add(furl.RoleAssistant, example...)
					if example[0].Kind == furl.KindCall {
						c.add(furl.RoleUser, result(example[0].ID, "furl"), text(fmt.Sprintf("Question %d.", n)))
					} else {
						c.add(furl.RoleUser, text(fmt.Sprintf("Question %d.", n)))
					}
					for range 3 {
						_, x := c.sendAs(c.history, text("OK"))
						of[x.Session.ID()]++
						c.add(furl.RoleUser, text("Go on."))
					}
				}
				for id, n := range of {
					if n > 3 {
						t.Errorf("session %s has %d requests, want at most 3", id, n)
					}
				}
			})
		}
	}
}

// The unanswered question of a session that begins with examples is repeated at once, not
// weeks later.
func TestUnansweredQuestionIsRepeatedSoon(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration
		same  bool
	}{{time.Second, true}, {30 * 24 * time.Hour, false}} {
		now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
		all, _ := open(t, session.Options{Policy: "none", Now: func() time.Time { return now }})
		c := newClient(t, all, "again")
		c.hints.Hint = ""
		c.history = c.history[:0]
		c.add(furl.RoleUser, text("An example."))
		c.add(furl.RoleAssistant, text("A reply."))
		c.add(furl.RoleUser, text("A question."))
		_, x := c.begin()
		first := x.Session.ID()
		x.Drop()
		now = now.Add(tt.after)
		_, x = c.begin()
		if got := x.Session.ID() == first; got != tt.same {
			t.Errorf("after %v the same session: %v, want %v", tt.after, got, tt.same)
		}
		x.Drop()
	}
}
