package exchange_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire/anthropic"
)

// Clients that send an answer back in other words than it was given stay in
// their session and on its path, also after a restart, and what they say
// goes out as it came, but where something is hidden.
func TestAnswersInOtherWords(t *testing.T) {
	arg := strings.Repeat("a long argument ", 120)
	for name, said := range map[string]func(n int) []furl.Block{
		"the words dropped": func(int) []furl.Block { return nil },
		"joined":            func(n int) []furl.Block { return []furl.Block{text(fmt.Sprintf("I look. Then number %d.", n))} },
		"joined by a line":  func(n int) []furl.Block { return []furl.Block{text(fmt.Sprintf("I look.\nThen number %d.", n))} },
		"others":            func(int) []furl.Block { return []furl.Block{text("Looking."), text("Still."), text("On.")} },
	} {
		for _, policy := range []string{"none", "rolling-mask-5", "auto"} {
			t.Run(name+"/"+policy, func(t *testing.T) {
				o := session.Options{Policy: policy, Window: 6_000}
				all, store := open(t, o)
				c := newClient(t, all, "a")
				var first furl.SessionID
				for n := range 14 {
					if n == 7 {
						c.all = reopen(t, store, o)
					}
					req, x := c.begin()
					if n == 0 {
						first = x.Session.ID()
					} else if id := x.Session.ID(); id != first {
						t.Fatalf("request %d is in session %s, want %s", n, id, first)
					}
					if policy == "none" && string(x.Body) != string(req.Body) {
						t.Fatalf("request %d does not go out as it came: %s", n, x.Body)
					}
					sent, err := anthropic.Codec.DecodeRequest(x.Body)
					if err != nil {
						t.Fatal(err)
					}
					if err := anthropic.Codec.Validate(sent, c.all.Model("claude-sonnet-4-5", furl.FormatAnthropic)); err != nil {
						t.Fatalf("X1: request %d would be refused: %v\n%s", n, err, x.Body)
					}
					do := call(fmt.Sprintf("toolu_%d", n), "read", fmt.Sprintf(`{"path":"f%d","why":%q}`, n, arg))
					c.reply(x, text("I look. "), text(fmt.Sprintf("Then number %d.", n)), do)
					c.history[len(c.history)-2] = message(t, furl.RoleAssistant, append(said(n), do)...).Raw
				}
				s := c.last.Session
				checked(t, s)
				if n := len(s.Branches()); n != 1 {
					t.Errorf("%d branches, want 1: %s", n, kinds(s))
				}
				if n := len(s.Reductions()); (n > 0) != (policy != "none") {
					t.Errorf("%d reductions", n)
				}
				if got, want := strings.Join(path(t, s), ""), "u"+strings.Repeat("au", 13)+"a"; got != want {
					t.Errorf("the path has %s, want %s", got, want)
				}
			})
		}
	}
}

// A client that sends answers in other words is looked for in the store once.
func TestAnswersInOtherWordsAskOnce(t *testing.T) {
	store := &asked{Store: inmem.New()}
	all, err := session.New(store, &session.Options{Policy: "none", Poll: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, all, "a")
	step := func(n int) furl.SessionID {
		_, x := c.begin()
		do := call(fmt.Sprintf("toolu_%d", n), "read", `{}`)
		c.reply(x, text("I look."), do)
		c.history[len(c.history)-2] = message(t, furl.RoleAssistant, do).Raw
		return x.Session.ID()
	}
	first := step(0)
	step(1)
	before := *store
	for n := range 5 {
		if id := step(2 + n); id != first {
			t.Fatalf("request %d is in session %s, want %s", n, id, first)
		}
	}
	if *store != before {
		t.Errorf("five requests more asked the store: %+v, before %+v", *store, before)
	}
	if err := store.Store.(storage.Deleter).Delete(t.Context(), c.last.Session.Info().SessionKey); err != nil {
		t.Fatal(err)
	}
	if id := step(9); id == first {
		t.Error("a deleted session goes on")
	}
}

// An answer without calls is known by its words, white space aside; one whose
// calls are others is another.
func TestOtherAnswers(t *testing.T) {
	do := call("toolu_1", "read", `{"path":"f"}`)
	for name, tt := range map[string]struct {
		was, now []furl.Block
		same     bool
	}{
		"trimmed":           {[]furl.Block{text(" Hello,\nyou. ")}, []furl.Block{text("Hello, you.")}, true},
		"joined":            {[]furl.Block{text("Hello, "), text("you.")}, []furl.Block{text("Hello, you.")}, true},
		"other words":       {[]furl.Block{text("Hello.")}, []furl.Block{text("Hi.")}, false},
		"the call is gone":  {[]furl.Block{text("Hello."), do}, []furl.Block{text("Hello.")}, false},
		"another id":        {[]furl.Block{text("Hello."), do}, []furl.Block{call("toolu_2", "read", `{"path":"f"}`)}, false},
		"another argument":  {[]furl.Block{text("Hello."), do}, []furl.Block{call("toolu_1", "read", `{"path":"g"}`)}, false},
		"keys in any order": {[]furl.Block{text("A"), call("toolu_1", "r", `{"a":1,"b":2}`)}, []furl.Block{call("toolu_1", "r", `{ "b":2, "a":1}`)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := open(t, session.Options{Policy: "none"})
			c := newClient(t, all, "a")
			id := c.send(tt.was...).Session.ID()
			c.history = c.history[:1]
			c.add(furl.RoleAssistant, tt.now...)
			after := text("go on")
			if last := tt.now[len(tt.now)-1]; last.Kind == furl.KindCall {
				after = result(last.ID, "it says so")
			}
			c.add(furl.RoleUser, after)
			_, x := c.begin()
			defer x.Drop()
			if got := x.Session.ID() == id; got != tt.same {
				t.Errorf("in the same session: %v, want %v", got, tt.same)
			}
		})
	}
}
