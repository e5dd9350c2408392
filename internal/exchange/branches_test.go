package exchange_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// What is listed as a branch, and what is not.
func TestBranches(t *testing.T) {
	question := text("And what of the other file?")
	for name, tt := range map[string]struct {
		does func(t *testing.T, c *client)
		want int
	}{
		"one conversation": {func(*testing.T, *client) {}, 1},
		"a question asked otherwise and answered otherwise": {func(_ *testing.T, c *client) {
			earlier := slices.Clone(c.history)
			c.add(furl.RoleUser, question)
			c.send(text("It is empty."))
			c.history = earlier
			c.add(furl.RoleUser, text("What of the third file?"))
			c.send(text("It is long."))
		}, 2},
		"a request sent again and answered otherwise": {func(_ *testing.T, c *client) {
			c.add(furl.RoleUser, question)
			earlier := slices.Clone(c.history)
			c.send(text("It is empty."))
			c.history = earlier
			c.send(text("It has nothing in it."))
			c.add(furl.RoleUser, text("go on"))
			c.send(text("Done."))
		}, 1},
		"a question that got no answer": {func(_ *testing.T, c *client) {
			earlier := slices.Clone(c.history)
			c.add(furl.RoleUser, question)
			_, x := c.begin()
			x.Drop()
			c.history = earlier
			c.add(furl.RoleUser, text("Forget it."))
			c.send(text("All right."))
		}, 1},
		"an answer with other words before it, kept": {func(_ *testing.T, c *client) {
			c.add(furl.RoleUser, text("It is one o'clock."))
			c.send(text("I see."))
			c.history = slices.Delete(c.history, len(c.history)-2, len(c.history)-1)
			c.add(furl.RoleUser, text("It is two o'clock."))
			c.send(text("I see that too."))
		}, 1},
		"a rewind by a person, before anything was answered": {func(t *testing.T, c *client) {
			c.add(furl.RoleUser, question)
			_, x := c.begin()
			x.Drop()
			if _, err := x.Session.Rewind(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}, 2},
		"a branch of a branch": {func(_ *testing.T, c *client) {
			ask := func(n int) []json.RawMessage {
				c.add(furl.RoleUser, text(fmt.Sprint("What of file ", n, "?")))
				c.send(text(fmt.Sprint("It has ", n, " lines.")))
				return slices.Clone(c.history)
			}
			first := slices.Clone(c.history)
			second := ask(1)
			ask(2)
			c.history = second
			ask(3)
			c.history = first
			ask(4)
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := open(t, session.Options{Policy: "none"})
			c := newClient(t, all, "a")
			c.send(text("Hello."))
			c.add(furl.RoleUser, text("Look at the file."))
			c.send(text("It says hello."))
			tt.does(t, c)
			s := c.last.Session
			list := s.Branches()
			if len(list) != tt.want || !list[0].Current || list[0].Head != s.Head() {
				t.Errorf("%d branches, want %d with the current one first: %+v", len(list), tt.want, list)
			}
			for _, b := range list[1:] {
				if b.Messages < 1 || b.Messages > b.Total || b.From >= b.Head {
					t.Errorf("branch %+v has no messages of its own", b)
				}
			}
			checked(t, s)
		})
	}
}
