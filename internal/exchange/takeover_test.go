package exchange_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
)

// diverged is a client that has masked results, steps back, and goes on
// otherwise: its reductions are taken over to a new branch.
func diverged(t *testing.T, all *session.Sessions) (*client, *session.Session, furl.Seq) {
	t.Helper()
	c := newClient(t, all, "a")
	for range 9 {
		c.step()
	}
	s := c.last.Session
	left := s.Head()
	c.history = c.history[:15]
	c.add(furl.RoleAssistant, text("I stop here."))
	c.add(furl.RoleUser, text("why?"))
	c.send(text("Because I was asked to."))
	c.add(furl.RoleUser, text("go on"))
	return c, s, left
}

func active(s *session.Session) (list []furl.Seq) {
	for _, r := range s.Reductions() {
		if r.State != "lifted" {
			list = append(list, r.Seq)
		}
	}
	return list
}

// A reduction that is taken over to a new branch stays the record that it is:
// it is listed by its number, shows the same text, survives a restart and a
// fork, and is not stored again.
func TestTakenOverReductions(t *testing.T) {
	o := session.Options{Policy: "rolling-mask-5"}
	all, store := open(t, o)
	c, s, left := diverged(t, all)
	records := s.Records(0)
	list := s.Reductions()
	if len(list) == 0 {
		t.Fatal("nothing was taken over")
	}
	for _, r := range list {
		red, ok := records[r.Seq-1].Body.(*furl.Reduction)
		if !ok || r.Seq > left || red.Copy != 0 || r.Copy != 0 || r.Stage != red.Stage || r.By != furl.Furl || r.Reason != red.Reason {
			t.Errorf("reduction %d is listed as %+v, want it as it was recorded: %+v", r.Seq, r, red)
		}
	}
	view := encoded(t, s.View("m"))
	if !strings.Contains(view, "observation masked") {
		t.Error("what was taken over does not show")
	}
	for name, again := range map[string]func() *session.Session{
		"restarted": func() *session.Session {
			s, err := reopen(t, store, o).Open(t.Context(), s.ID())
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		"forked": func() *session.Session {
			s, err := all.Fork(t.Context(), s, s.Head())
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		other := again()
		if got := encoded(t, other.View("m")); got != view {
			t.Errorf("%s, the view is\n%s\nwant\n%s", name, got, view)
		}
		if got := active(other); !slices.Equal(got, active(s)) {
			t.Errorf("%s, the reductions are %v, want %v", name, got, active(s))
		}
		checked(t, other)
	}
	moments, err := event.Timeline(sessiontest.Log(t, s), 0, s.Head(), s.Context("").Limit)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, m := range moments {
		for _, e := range m.Events {
			if e, ok := e.(event.Masked); ok && slices.Contains(active(s), e.Reduction) {
				told++
			}
		}
	}
	if told != len(list) {
		t.Errorf("the timeline tells of %d reductions, want %d", told, len(list))
	}
	c.begin()
	checked(t, s)
}

// Undoing a reduction that was taken over shows its blocks on this branch. The
// branch it comes from stays as it was.
func TestUndoATakenOverReduction(t *testing.T) {
	all, store := open(t, session.Options{Policy: "rolling-mask-5"})
	c, s, left := diverged(t, all)
	first := active(s)[0]
	before := active(s)
	done, err := s.Restore(t.Context(), session.RestoreOptions{Reduction: first})
	if err != nil || done.Tokens == 0 {
		t.Fatalf("undoing reduction %d gave %+v, %v", first, done, err)
	}
	if got := active(s); slices.Contains(got, first) || len(got) != len(before)-1 {
		t.Errorf("the reductions are %v, want %v without %d", got, before, first)
	}
	_, x := c.begin()
	if n := strings.Count(string(x.Body), "result of toolu_a_0"); n != 1 {
		t.Errorf("the undone result is sent %d times, want once", n)
	}
	x.Drop()
	s, err = reopen(t, store, session.Options{Policy: "rolling-mask-5"}).Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(active(s), first) {
		t.Error("the undo is forgotten after a restart")
	}
	if _, err := s.Rewind(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(active(s), first) {
		t.Error("the undo holds on the branch that the reduction comes from")
	}
	checked(t, s)
}

// What a person has undone or pinned is not hidden again by a new branch.
func TestDivergenceKeepsWhatAPersonWants(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "rolling-mask-5"})
	c := newClient(t, all, "a")
	for range 9 {
		c.step()
	}
	s := c.last.Session
	undone := active(s)[0]
	if _, err := s.Restore(t.Context(), session.RestoreOptions{Reduction: undone}); err != nil {
		t.Fatal(err)
	}
	spans, err := s.Spans("7")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Hold(t.Context(), furl.Pin, spans...); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		c.history = c.history[:15]
		c.add(furl.RoleAssistant, text(fmt.Sprint("I stop here: ", n)))
		c.add(furl.RoleUser, text("why?"))
		_, x := c.begin()
		if slices.Contains(active(s), undone) {
			t.Fatalf("branch %d: the undone reduction holds again", n)
		}
		if !bytes.Contains(x.Body, []byte("result of toolu_a_0")) {
			t.Errorf("branch %d: what was undone is hidden", n)
		}
		x.Drop()
	}
	checked(t, s)
}

// Branch after branch, the reductions are recorded once, and each branch costs
// one small record beside its own messages.
func TestManyBranchesRepeatNoReduction(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "rolling-mask-5"})
	c := newClient(t, all, "a")
	for range 40 {
		c.step()
	}
	s := c.last.Session
	view, had := active(s), strings.Count(kinds(s), "r")
	if had < 30 {
		t.Fatalf("%d reductions, want some", had)
	}
	history := slices.Clone(c.history[:61])
	for n := range 30 {
		records := len(s.Records(0))
		c.history = slices.Clone(history)
		c.add(furl.RoleAssistant, text(fmt.Sprint("I stop here: ", n)))
		c.add(furl.RoleUser, text("why?"))
		_, x := c.begin()
		x.Drop()
		size := 0
		for _, r := range s.Records(furl.Seq(records)) {
			if _, ok := r.Body.(*furl.Message); !ok {
				head, _, err := record.Encode(r)
				if err != nil {
					t.Fatal(err)
				}
				size += len(head)
			}
		}
		if size > 100 {
			t.Fatalf("branch %d takes %d bytes beside its messages", n, size)
		}
	}
	if got := strings.Count(kinds(s), "r"); got != had {
		t.Errorf("%d reductions are recorded, want the %d that there were", got, had)
	}
	if got := active(s); len(got) < 20 || !slices.Equal(got, view[:len(got)]) {
		t.Errorf("the reductions are %v, want the first of %v", got, view)
	}
	checked(t, s)
}
