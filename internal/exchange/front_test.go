package exchange_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/racetest"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
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

// An agent that sends no id rewrites its first message when it is resumed, after a restart
// of the gateway. It drops a part of the message, as Qwen Code drops the date.
func TestResumedWithAnotherFirstMessage(t *testing.T) {
	date, task := text("The current date is: Saturday, November 28, 2026."), text("Work through the first pieces.")
	for name, tt := range map[string]struct {
		id       string // of call n
		hint     string
		others   int // newer sessions of the same agent
		messages int
		same     bool
	}{
		"calls with random ids":           {id: "toolu_01A09q90qw90lq9178%05d", messages: 12, same: true},
		"enough content":                  {id: "call_%d", messages: 12, same: true},
		"several newer sessions":          {id: "call_%d", messages: 12, others: 5, same: true},
		"too little content":              {id: "call_%d", messages: 4},
		"too many newer sessions":         {id: "call_%d", messages: 12, others: 20},
		"a session with an id of its own": {id: "call_%d", messages: 12, hint: "own"},
	} {
		t.Run(name, func(t *testing.T) {
			o := session.Options{Policy: "none", NewID: sessiontest.IDs()}
			all, store := open(t, o)
			work := func(hint string, who, from, to int, c *client) *client {
				if c == nil {
					c = newClient(t, all, fmt.Sprint("agent", who))
					c.history = c.history[:0]
					c.add(furl.RoleUser, text(fmt.Sprintf("Skills of folder %d.", who)), date, task)
				}
				c.hints.Hint = hint
				for n := from; n < to; n += 2 {
					reply := []furl.Block{text(fmt.Sprintf("Step %d of agent %d: look at the next file.", n, who)), call(fmt.Sprintf(tt.id, 100*who+n), "read", fmt.Sprintf(`{"path":"file%d-%d.go"}`, who, n))}
					c.send(reply...) // with a result
				}
				c.send(text(fmt.Sprintf("Agent %d is done with it.", who)))
				return c
			}
			c := work(tt.hint, 1, 0, tt.messages, nil)
			first := c.last.Session.ID()
			for i := range tt.others {
				work("", 2+i, 0, 12, nil)
			}
			all = reopen(t, store, o)
			c.all = all
			c.history[0] = message(t, furl.RoleUser, text("Skills of folder 1."), task).Raw
			c.add(furl.RoleUser, date, text("Go on with the rest."))
			work("", 1, tt.messages, tt.messages+4, c)
			if got := c.last.Session.ID() == first; got != tt.same {
				t.Errorf("the same session: %v, want %v", got, tt.same)
			}
			checked(t, c.last.Session)
		})
	}
}

// A store that lists its sessions slowly does not hold up requests: it is asked once.
func TestSlowListOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowLister{Store: inmem.New()}
		defer slow.Close()
		all := reopen(t, slow, session.Options{Policy: "none"})
		for n := range 3 {
			c := newClient(t, all, fmt.Sprint("client", n))
			c.hints.Hint, c.history = "", c.history[:0]
			for i := range 8 {
				c.add(furl.RoleUser, text(fmt.Sprintf("Question %d of %d.", i, n)))
				c.add(furl.RoleAssistant, text(fmt.Sprintf("Answer %d of %d.", i, n)))
			}
			c.add(furl.RoleUser, text("Go on."))
			began := time.Now()
			_, x := c.begin()
			if took := time.Since(began); took > 300*time.Millisecond || n > 0 && took > 0 {
				t.Errorf("request %d waited %s", n, took)
			}
			x.Drop()
		}
		if n := slow.listed.Load(); n != 1 {
			t.Errorf("the store was asked %d times for its sessions, want once", n)
		}
	})
}

// slowLister is a store that takes a minute to list its sessions.
type slowLister struct {
	storage.Store
	listed atomic.Int64
}

func (s *slowLister) Sessions(ctx context.Context, _ furl.Tenant, _ storage.SessionQuery) iter.Seq2[storage.SessionInfo, error] {
	return func(yield func(storage.SessionInfo, error) bool) {
		s.listed.Add(1)
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
			yield(storage.SessionInfo{}, ctx.Err())
		}
	}
}

// Conversations without ids have the same short texts, and only their first messages
// differ. Whatever their clients leave out, none is recorded in the session of another.
func TestConversationsAreNeverJoined(t *testing.T) {
	racetest.FewerChecks(t, 20)
	said := []string{"ok", "continue", "hi", "yes", "go on"}
	rapid.Check(t, func(rt *rapid.T) {
		o := session.Options{Policy: rapid.SampledFrom([]string{"none", "rolling-mask-5"}).Draw(rt, "policy"), NewID: sessiontest.IDs()}
		base, store := open(t, o)
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
			if rapid.IntRange(0, 9).Draw(rt, "restart") == 0 {
				base = reopen(t, store, o)
				for _, c := range list {
					c.all = base.For(c.all.Tenant())
				}
			}
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
// replies, and calls with ids that look random, also after a restart of the gateway.
func TestExamplesDoNotJoin(t *testing.T) {
	ask := func(n int) furl.Block { return text(fmt.Sprintf("Example %d of a question.", n)) }
	said := func(c *client, n int) {
		c.add(furl.RoleUser, ask(n))
		c.add(furl.RoleAssistant, text(strings.Repeat(fmt.Sprintf("Example %d of what to answer. ", n), 10)))
	}
	for name, examples := range map[string]func(c *client){
		"a long text": func(c *client) { said(c, 0) },
		"many texts": func(c *client) {
			for n := range 6 {
				said(c, n)
			}
		},
		"a call": func(c *client) {
			c.add(furl.RoleUser, ask(0))
			c.add(furl.RoleAssistant, call("toolu_01A09q90qw90lq917835lq9", "read", `{"path":"README.md"}`))
			c.add(furl.RoleUser, result("toolu_01A09q90qw90lq917835lq9", "furl"))
			c.add(furl.RoleAssistant, text("It is furl."))
		},
		"many calls": func(c *client) {
			for n := range 6 {
				id := fmt.Sprintf("toolu_01A09q90qw90lq91783%04d", n)
				c.add(furl.RoleUser, ask(n))
				c.add(furl.RoleAssistant, call(id, "read", `{"path":"README.md"}`))
				c.add(furl.RoleUser, result(id, "furl"))
				c.add(furl.RoleAssistant, text("It is furl."))
			}
		},
	} {
		for i := range 4 {
			clock, restart := i%2 == 1, i > 1
			t.Run(fmt.Sprintf("%s, clock %v, restart %v", name, clock, restart), func(t *testing.T) {
				o := session.Options{Policy: "none", NewID: sessiontest.IDs()}
				all, store := open(t, o)
				of := make(map[furl.SessionID]int)
				for n := range 3 {
					if restart {
						all = reopen(t, store, o)
					}
					c := newClient(t, all, "examples")
					c.hints.Hint = ""
					c.history = c.history[:0]
					examples(c)
					if clock {
						c.history[0] = message(t, furl.RoleUser, text(fmt.Sprintf("It is %d o'clock. Example 0 of a question.", n))).Raw
					}
					c.add(furl.RoleUser, text(fmt.Sprintf("Question %d.", n)))
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
