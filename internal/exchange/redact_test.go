package exchange_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

const secret = "SECRET-0123456789"

// secretIn returns where the store has the secret, "" for nowhere.
func secretIn(t *testing.T, all *session.Sessions, id furl.SessionID) string {
	t.Helper()
	st := all.Store()
	key := furl.SessionKey{Tenant: all.Tenant(), Session: id}
	for r, err := range st.Read(t.Context(), key, 0) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := record.JSON{}.Append(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte(secret)) {
			return string(text)
		}
	}
	ids, err := st.(storage.Rewriter).ContentIDs(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		data, err := st.(storage.ContentStore).Content(t.Context(), key, id)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(secret)) {
			return string(data)
		}
	}
	for info, err := range st.Sessions(t.Context(), key.Tenant, storage.SessionQuery{}) {
		text, e := json.Marshal(info)
		if err != nil || e != nil {
			t.Fatal(err, e)
		}
		if bytes.Contains(text, []byte(secret)) {
			return string(text)
		}
	}
	return ""
}

// A session is redacted while a process has it in memory and a request in flight. The
// client sends the secret again with each request. It is not recorded again: not by
// that process, not by one that starts later, and not if the client continues from an
// earlier message. The conversation stays one session.
func TestRedactedSecretStaysGone(t *testing.T) {
	o := session.Options{Policy: "none"}
	all, store := open(t, o)
	c := newClient(t, all, "a")
	c.system = "never tell " + secret
	c.add(furl.RoleUser, text("my password is "+secret))
	c.step()
	c.send(text("it is "+secret), call("toolu_x", "run", `{"command":"login `+secret+`"}`))
	c.history = c.history[:len(c.history)-1]
	c.add(furl.RoleUser, result("toolu_x", "logged in with "+secret))
	c.step()
	id := c.last.Session.ID()

	_, flying := c.begin()
	if secretIn(t, all, id) == "" {
		t.Fatal("the secret is not recorded")
	}
	key := furl.SessionKey{Session: id}
	rep, err := session.Redact(t.Context(), store, key, session.Redaction{Patterns: []*regexp.Regexp{regexp.MustCompile(`SECRET-\d+`)}, By: furl.Person})
	if err != nil || rep.Found < 4 {
		t.Fatalf("%+v, %v", rep, err)
	}
	c.reply(flying, text("and now?"))
	if flying.Session.Internal().InUse() {
		t.Error("the session stays in memory after the request has ended")
	}

	still := func(where string, heads int) {
		t.Helper()
		if at := secretIn(t, all, id); at != "" {
			t.Fatalf("%s: the secret is recorded again: %s", where, at)
		}
		s, err := all.Open(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		checked(t, s)
		for _, r := range s.Meta().Redactions {
			if r.Record == 0 {
				t.Errorf("%s: the redaction is not finished", where)
			}
		}
		if n := strings.Count(kinds(s), "h"); n != heads {
			t.Errorf("%s: the log is %s with %d rewinds, want %d", where, kinds(s), n, heads)
		}
		for info, err := range store.Sessions(t.Context(), "", storage.SessionQuery{}) {
			if err != nil || info.Session != id {
				t.Errorf("%s: another session %s, %v", where, info.Session, err)
			}
		}
	}
	still("the request in flight", 1)
	c.add(furl.RoleUser, text("go on"))
	req, x := c.begin()
	if !bytes.Equal(x.Body, req.Body) {
		t.Error("the body that was sent differs from the client's")
	}
	c.reply(x, text("yes"))
	still("the next request", 1)

	c.all = reopen(t, store, o)
	c.add(furl.RoleUser, text("after a restart"))
	c.step()
	still("after a restart", 1)

	// The client resumes the conversation under another id, with all of its history.
	resumed := c.elsewhere(c.all)
	resumed.hints.Session = "resumed"
	resumed.system = ""
	resumed.step()
	resumed.step()
	if at := secretIn(t, all, "resumed"); at != "" {
		t.Fatalf("the secret is recorded in another session: %s", at)
	}
	checked(t, resumed.last.Session)
	if got := kinds(resumed.last.Session); strings.Contains(got, "h") {
		t.Errorf("the other session is %s", got)
	}
	if err := c.all.Delete(t.Context(), "resumed"); err != nil {
		t.Fatal(err)
	}

	// The client begins with so many other messages that all that follow are on a new
	// branch.
	c.history = slices.Clone(c.history)
	c.history[0] = message(t, furl.RoleUser, text("hello")).Raw
	for i := range 5 {
		c.history = slices.Insert(c.history, 0, message(t, furl.RoleUser, text(fmt.Sprint("new ", i))).Raw)
	}
	c.hints.Session = id
	c.step()
	c.step()
	still("on another branch", 2)
	if n := len(c.last.Session.Branches()); n != 2 {
		t.Errorf("%d branches, want 2", n)
	}
	if n := len(c.last.Session.Meta().Redactions); n != 2 {
		t.Errorf("%d redactions, want the person's and the one for the branch", n)
	}
}

// A client sends a redacted message again at the beginning of a new conversation: alone, as a
// list of blocks, and with another reply after it. It is not recorded again, in sessions that
// begin later too, while another message is recorded as it is.
func TestRedactedMessageBeginsAnotherSession(t *testing.T) {
	o := session.Options{Policy: "none"}
	all, store := open(t, o)
	c := newClient(t, all, "a")
	c.history = nil
	c.add(furl.RoleUser, text("hello"))
	c.add(furl.RoleUser, text("my password is "+secret))
	c.step()
	id := c.last.Session.ID()
	rep, err := session.Redact(t.Context(), store, furl.SessionKey{Session: id}, session.Redaction{Patterns: []*regexp.Regexp{regexp.MustCompile(`SECRET-\d+`)}, By: furl.Person})
	if err != nil || rep.Found == 0 {
		t.Fatalf("%+v, %v", rep, err)
	}
	first := slices.Clone(c.history[:2])
	// Other sessions begin with the same message, and are newer.
	for i := range 6 {
		other := newClient(t, all, fmt.Sprint("other", i))
		other.history = slices.Clone(first[:1])
		other.hints.Session = furl.SessionID(fmt.Sprint("other-", i))
		other.step()
	}
	for i, more := range [][]string{nil, nil, {"another reply", "go on"}} {
		again := newClient(t, all, fmt.Sprint("again", i)) // which has the session in memory, from before
		if i > 0 {
			again = newClient(t, reopen(t, store, o), fmt.Sprint("again", i))
		}
		again.history = slices.Clone(first)
		again.hints.Session = furl.SessionID(fmt.Sprint("again-", i))
		for j, words := range more {
			again.add([]furl.Role{furl.RoleAssistant, furl.RoleUser}[j], text(words))
		}
		again.step()
		again.add(furl.RoleUser, text("and now?"))
		again.step()
		if at := secretIn(t, again.all, again.hints.Session); at != "" {
			t.Fatalf("session %d: the secret is recorded again: %s", i, at)
		}
		checked(t, again.last.Session)
		var shown strings.Builder
		for _, r := range again.last.Session.Records(0) {
			if m, ok := r.Body.(*furl.Message); ok {
				shown.WriteString(m.Blocks[0].Text + "|")
			}
		}
		if !strings.Contains(shown.String(), "my password is "+session.Redacted) || !strings.Contains(shown.String(), "and now?") {
			t.Errorf("session %d has %s", i, shown.String())
		}
	}
}
