package exchange_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// openings are sessions that begin with "hi" and have no id of their client's.
type openings struct {
	t     *testing.T
	store storage.Store
	all   *session.Sessions
	now   time.Time
}

func newOpenings(t *testing.T) *openings {
	o := &openings{t: t, store: inmem.New(), now: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}
	t.Cleanup(func() { o.store.Close() })
	o.restart()
	return o
}

// restart goes on as another process that knows only what is stored.
func (o *openings) restart() {
	all, err := session.New(o.store, &session.Options{Policy: "none", Now: func() time.Time { return o.now }})
	if err != nil {
		o.t.Fatal(err)
	}
	o.all = all
}

// restartAlone is restart with a process that knows that the others have ended.
func (o *openings) restartAlone() {
	o.now = o.now.Add(time.Millisecond)
	o.store = alone{o.store, o.now}
	o.restart()
}

// alone is a store that no other process had open when this one opened it.
type alone struct {
	storage.Store
	at time.Time
}

func (s alone) AloneAt() time.Time { return s.at }

func (o *openings) client() *client { return newClient(o.t, o.all, "a") }

// unanswered is a session of which only the question was recorded.
func (o *openings) unanswered() *session.Session {
	o.t.Helper()
	_, x := o.client().begin()
	x.Drop()
	return x.Session
}

// goOn is the client's next request, with the answer that was not recorded.
func (o *openings) goOn() *client {
	c := o.client()
	c.add(furl.RoleAssistant, text("hello"))
	c.add(furl.RoleUser, text("go on"))
	return c
}

func (o *openings) want(c *client, s *session.Session, what string) {
	o.t.Helper()
	_, x := c.begin()
	defer x.Drop()
	switch {
	case s == nil && kinds(x.Session)[0] == 'm' && x.Session.Records(0)[0].At.Before(o.now):
		o.t.Errorf("%s: it is in a session that was begun before", what)
	case s != nil && x.Session.ID() != s.ID():
		o.t.Errorf("%s: it is in session %s, want %s", what, x.Session.ID(), s.ID())
	}
	checked(o.t, x.Session)
}

// A first request that is sent again is recorded in the session that it began,
// if it got no whole answer and there is nothing to say that it is another's.
func TestFirstRequestAgain(t *testing.T) {
	after := func(o *openings, d time.Duration) { o.now = o.now.Add(d) }
	for name, play := range map[string]func(o *openings, s *session.Session) *session.Session{
		"at once":                     func(o *openings, s *session.Session) *session.Session { return s },
		"after ten minutes":           func(o *openings, s *session.Session) *session.Session { after(o, 10*time.Minute); return s },
		"after more than ten minutes": func(o *openings, s *session.Session) *session.Session { after(o, 10*time.Minute+1); return nil },
		"in a process started anew":   func(o *openings, s *session.Session) *session.Session { o.restart(); after(o, 5*time.Second); return s },
		"perhaps under way elsewhere": func(o *openings, s *session.Session) *session.Session {
			o.restart()
			after(o, 4*time.Second)
			return nil
		},
		"of a process that has ended": func(o *openings, s *session.Session) *session.Session { o.restartAlone(); return s },
		"with a newer one beside it":  func(o *openings, s *session.Session) *session.Session { return o.twin(s) },
		"with the first under way": func(o *openings, s *session.Session) *session.Session {
			after(o, time.Second)
			_, x := o.client().begin()
			o.t.Cleanup(x.Drop)
			after(o, time.Second)
			return nil
		},
		"with an answer to the first": func(o *openings, s *session.Session) *session.Session {
			c := o.client()
			c.send(text("hello"))
			after(o, time.Second)
			return nil
		},
		"with a whole answer that has no reason to stop": func(o *openings, s *session.Session) *session.Session {
			_, x := o.client().begin()
			reply := &protocol.Reply{Format: furl.FormatAnthropic, Complete: true, Messages: []*furl.Message{message(o.t, furl.RoleAssistant, text("hello"))}}
			if err := x.Done(o.t.Context(), reply); err != nil {
				o.t.Fatal(err)
			}
			after(o, time.Second)
			return nil
		},
		"with part of an answer to it": func(o *openings, s *session.Session) *session.Session { return o.cutOff(s) },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOpenings(t)
			s := play(o, o.unanswered())
			o.want(o.client(), s, name)
		})
	}
	t.Run("with another body", func(t *testing.T) {
		o := newOpenings(t)
		o.unanswered()
		o.now = o.now.Add(time.Second)
		c := o.client()
		c.fields = `,"temperature":0`
		o.want(c, nil, "another body")
	})
	t.Run("with an id of the client's", func(t *testing.T) {
		o := newOpenings(t)
		o.unanswered()
		o.now = o.now.Add(time.Second)
		c := o.client()
		c.hints.Hint = "one"
		_, x := c.begin()
		x.Drop()
		if at := x.Session.Records(0)[0].At; !at.Equal(o.now) {
			t.Error("a request with an id is in the session of one without")
		}
		o.now = o.now.Add(time.Hour)
		o.want(c, x.Session, "the same id")
		o.want(o.client(), nil, "no id, an hour later")
	})
}

// twin is a session that was begun while the first request was under way again,
// and was not answered either.
func (o *openings) twin(s *session.Session) *session.Session {
	_, x := o.client().begin()
	_, y := o.client().begin()
	x.Drop()
	y.Drop()
	if x.Session.ID() != s.ID() || y.Session.ID() == s.ID() {
		o.t.Errorf("they are sessions %s and %s beside %s", x.Session.ID(), y.Session.ID(), s.ID())
	}
	return y.Session
}

// cutOff sends the first request again and has its answer cut off.
func (o *openings) cutOff(s *session.Session) *session.Session {
	_, x := o.client().begin()
	reply := &protocol.Reply{Format: furl.FormatAnthropic, Usage: furl.Usage{Input: 3}, Messages: []*furl.Message{message(o.t, furl.RoleAssistant, text("hel"))}}
	if err := x.Done(o.t.Context(), reply); err != nil {
		o.t.Fatal(err)
	}
	if x.Session.ID() != s.ID() {
		o.t.Errorf("the first repetition is in another session")
	}
	o.now = o.now.Add(time.Second)
	return s
}

// Requests that are alike and under way at the same time are conversations of
// their own, each with its answer.
func TestEqualFirstRequestsSideBySide(t *testing.T) {
	o := newOpenings(t)
	var open []*exchange.Exchange
	for range 5 {
		_, x := o.client().ask()
		open = append(open, x)
	}
	for _, x := range open {
		if _, err := x.Commit(t.Context()); err != nil || x.Err != nil {
			t.Fatal(err, x.Err)
		}
	}
	sessions := make(map[furl.SessionID]bool)
	for i, x := range open {
		c := o.client()
		c.replies = i
		c.reply(x, text("hello"))
		sessions[x.Session.ID()] = true
	}
	if len(sessions) != 5 {
		t.Errorf("five requests are in %d sessions", len(sessions))
	}
}

// A request that brings the first question and an answer that was not recorded,
// since the process ended before, goes on in the session that has the question.
func TestAnswerComesFromTheClient(t *testing.T) {
	for name, restart := range map[string]bool{"in the same process": false, "in a process started anew": true} {
		t.Run(name, func(t *testing.T) {
			o := newOpenings(t)
			old := o.unanswered()
			o.now = o.now.Add(time.Hour) // it would be no repetition any more
			s := o.unanswered()
			if s.ID() == old.ID() {
				t.Fatal("both are one session")
			}
			o.now = o.now.Add(time.Hour)
			if restart {
				o.restart()
			}
			c := o.goOn()
			o.want(c, s, "of two, the newest")
			c.send(text("done"))
			o.want(o.goOn(), s, "the same again") // by its history now
			d := o.client()
			d.add(furl.RoleAssistant, text("good morning"))
			d.add(furl.RoleUser, text("go on"))
			o.want(d, old, "another answer to the same question")
			d = o.client()
			d.add(furl.RoleAssistant, text("good evening"))
			d.add(furl.RoleUser, text("go on"))
			o.now = o.now.Add(time.Second)
			o.want(d, nil, "a third answer, with both answered")
		})
	}
	for name, change := range map[string]func(*openings, *client){
		"with other instructions": func(_ *openings, c *client) { c.system = "You do not help." },
		"with an id":              func(_ *openings, c *client) { c.hints.Hint = "one" },
		"with an answer under way": func(o *openings, c *client) {
			_, x := o.client().begin()
			o.t.Cleanup(x.Drop)
			o.now = o.now.Add(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // one of them waits
				o := newOpenings(t)
				o.unanswered()
				o.now = o.now.Add(time.Second)
				c := o.goOn()
				change(o, c)
				o.want(c, nil, name)
			})
		})
	}
}
