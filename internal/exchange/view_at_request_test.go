package exchange_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/racetest"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/transcript"
	"github.com/furlhq/furl/wire"
)

// TestX7ViewAtRequest: what a view of a request shows is what the provider received, for
// every request of random sessions in the three formats under each policy, on all
// branches, and after an export and an import.
func TestX7ViewAtRequest(t *testing.T) {
	racetest.FewerChecks(t, 10)
	formats := []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses}
	var n viewsSeen
	rapid.Check(t, func(rt *rapid.T) {
		c := &anyClient{
			T: rt, t: t, api: wire.For(rapid.SampledFrom(formats).Draw(rt, "format")), policy: rapid.SampledFrom(policy.NewSet().Names()).Draw(rt, "policy"),
			store: inmem.New(), window: 4000, system: "You help.", separator: ",", recall: rapid.Bool().Draw(rt, "recall"), want: make(map[furl.Seq][2][]byte),
		}
		c.restart()
		rt.Repeat(map[string]func(*rapid.T){
			"step":     c.step,
			"step 2":   c.step,
			"say":      c.say,
			"mark":     c.mark,
			"forget":   c.forget,
			"rewrite":  c.rewrite,
			"preamble": c.preamble,
			"restart":  func(*rapid.T) { c.restart() },
		})
		if len(c.want) == 0 {
			return
		}
		s, err := c.all.Open(t.Context(), "s")
		if err != nil {
			rt.Fatal(err)
		}
		sent := make(map[furl.Seq][]byte)
		for seq, bodies := range c.want {
			sent[seq] = bodies[1]
		}
		if rapid.Bool().Draw(rt, "imported") {
			s = importedAgain(rt, t, s)
		}
		n.check(rt, t, s, c.api, sent)
	})
	n.enough(t)
}

// TestViewAtRequestOfHabits is TestX7ViewAtRequest for clients that change their history
// before they send it again, so that it differs from the recorded one.
func TestViewAtRequestOfHabits(t *testing.T) {
	racetest.FewerChecks(t, 5)
	var n viewsSeen
	rapid.Check(t, func(rt *rapid.T) {
		c := newHabitual(t, inmem.New(), rapid.SampledFrom(policy.NewSet().Names()).Draw(rt, "policy"), drawHabits(rt))
		c.hints.Session = "s"
		sent := make(map[furl.Seq][]byte)
		for range rapid.IntRange(5, 25).Draw(rt, "requests") {
			c.step()
			for _, r := range slices.Backward(c.last.Session.Records(0)) {
				if _, ok := r.Body.(*furl.Exchange); ok {
					sent[r.Seq] = slices.Clone(c.last.Body)
					break
				}
			}
		}
		s := c.last.Session
		if rapid.Bool().Draw(rt, "imported") {
			s = importedAgain(rt, t, s)
		}
		n.check(rt, t, s, wire.For(furl.FormatAnthropic), sent)
	})
	n.enough(t)
}

// importedAgain exports a session and imports it into another store.
func importedAgain(rt *rapid.T, t *testing.T, s *session.Session) *session.Session {
	log := furl.NewLog()
	if err := log.Load(s.Records(0)); err != nil {
		rt.Fatal(err)
	}
	contents, err := s.Contents(t.Context(), furl.Seq(log.Len()))
	if err != nil {
		rt.Fatal(err)
	}
	var file bytes.Buffer
	of := &transcript.Session{ID: string(s.ID()), Wire: s.Meta().Format, Meta: s.Meta(), Log: log, Contents: contents}
	if _, err := transcript.Export(t.Context(), &file, "furl", of, nil); err != nil {
		rt.Fatal(err)
	}
	rec, err := transcript.Read("export.jsonl", &file)
	if err != nil {
		rt.Fatal(err)
	}
	again, err := reopen(t, inmem.New(), session.Options{}).Import(t.Context(), "again", rec.Sessions[0].Log, rec.Sessions[0].Meta, rec.Sessions[0].Contents...)
	if err != nil {
		rt.Fatal(err)
	}
	return again
}

// viewsSeen counts what a test has compared.
type viewsSeen struct{ requests, reduced, elsewhere int }

// check compares the views of all requests of a session with the bodies that the provider
// received.
func (n *viewsSeen) check(rt *rapid.T, t *testing.T, s *session.Session, api wire.API, sent map[furl.Seq][]byte) {
	list, err := s.Requests()
	if err != nil {
		rt.Fatal(err)
	}
	on := make(map[furl.Seq]int)
	for _, q := range list {
		on[q.Exchange] = q.Number
	}
	for seq, body := range sent {
		n.requests++
		v, err := s.ViewAtExchange(t.Context(), seq)
		if number := on[seq]; number != 0 {
			v, err = s.ViewAtRequest(t.Context(), number)
		} else {
			n.elsewhere++
		}
		if err != nil {
			rt.Fatalf("record %d: %v", seq, err)
		}
		received, err := api.DecodeRequest(body)
		if err != nil {
			rt.Fatal(err)
		}
		if len(v.View.Messages) != len(received.Messages) || len(v.Sent.Messages) != len(received.Messages) {
			rt.Fatalf("record %d: the view has %d messages, the provider received %d", seq, len(v.View.Messages), len(received.Messages))
		}
		hides := false
		for i := range received.Messages {
			m, sh := &received.Messages[i], &v.View.Messages[i]
			if !bytes.Equal(v.Sent.Messages[i].Msg.Raw, m.Raw) {
				rt.Fatalf("record %d, message %d is\n%s\nthe provider received\n%s", seq, i, v.Sent.Messages[i].Msg.Raw, m.Raw)
			}
			if got, want := readIn(sh), readIn(asReceived(m)); got != want {
				rt.Fatalf("record %d, message %d shows\n%s\nthe provider received\n%s", seq, i, got, want)
			}
			hides = hides || sh.By != 0
			for k := range sh.Blocks {
				b := &sh.Blocks[k]
				hides = hides || b.By != 0
				if _, ok := v.View.State.Reduction(b.By); b.By != 0 && !ok {
					rt.Fatalf("record %d, message %d: block %d names reduction %d, which is not on the path", seq, i, k, b.By)
				}
			}
		}
		if hides {
			n.reduced++
		}
	}
}

// enough fails a test that has seen few reduced requests among many; a few random runs, as
// under the race detector, may have none.
func (n *viewsSeen) enough(t *testing.T) {
	t.Logf("%d requests, %d of them reduced, %d on other branches", n.requests, n.reduced, n.elsewhere)
	if n.requests >= 1000 && n.reduced < n.requests/50 {
		t.Error("too few requests were reduced")
	}
}

func asReceived(m *furl.Message) *furl.Shown {
	sh := &furl.Shown{Msg: m}
	for i := range m.Blocks {
		sh.Blocks = append(sh.Blocks, furl.ShownBlock{Block: &m.Blocks[i]})
	}
	return sh
}

// readIn is what the model reads in a message.
func readIn(sh *furl.Shown) string {
	var out strings.Builder
	out.WriteString(string(sh.Msg.Role))
	for i := range sh.Blocks {
		b := &sh.Blocks[i]
		fmt.Fprintf(&out, "\n%s %s %s: %s", b.Block.Kind, b.Block.Name, b.Block.ID, b.Words())
	}
	return out.String()
}

// What a view of a request says of records and reductions is what follows from the
// records, if the client sends what is recorded.
func TestViewAtRequestNamesReductions(t *testing.T) {
	for _, name := range policy.NewSet().Names() {
		all, _ := open(t, session.Options{Policy: name, Window: 3000})
		c, s, left := diverged(t, all)
		for range 12 {
			c.step()
		}
		if _, err := s.Rewind(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		list, err := s.Requests()
		if err != nil {
			t.Fatal(err)
		}
		log := furl.NewLog()
		if err := log.Load(s.Records(0)); err != nil {
			t.Fatal(err)
		}
		for _, r := range s.Records(0) {
			if _, ok := r.Body.(*furl.Exchange); !ok {
				continue
			}
			got, err := s.ViewAtExchange(t.Context(), r.Seq)
			if err != nil {
				t.Fatal(err)
			}
			if got.Requests != 0 && (got.Requests != len(list) || list[got.Number-1].Exchange != r.Seq) {
				t.Errorf("%s: record %d is request %d of %d", name, r.Seq, got.Number, got.Requests)
			}
			st, err := furl.Fold(log, r.Parent)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := labelled(got.View), labelled(st.View(s.Model("claude-sonnet-4-5"))); a != b {
				t.Errorf("%s: the view of record %d is\n%s\nwant\n%s", name, r.Seq, a, b)
			}
		}
	}
}

// labelled is what a view says of its messages.
func labelled(v *furl.View) string {
	var out strings.Builder
	for i := range v.Messages {
		sh := &v.Messages[i]
		fmt.Fprintf(&out, "%d %d by %d\n", sh.Seq, sh.Index, sh.By)
		for k := range sh.Blocks {
			b := &sh.Blocks[k]
			fmt.Fprintf(&out, "  %v by %d, %d tokens, was %d: %.80s\n", b.Pos, b.By, b.Tokens, b.Block.Tokens, b.Words())
		}
	}
	return out.String()
}

// A dry run hides nothing, so its view is whole; a request number outside of the session
// is an error that says which there are.
func TestViewAtRequestOfDryRun(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "rolling-mask-5"})
	c := newClient(t, all, "a")
	for range 10 {
		c.step()
	}
	_, x := c.dry()
	body := slices.Clone(x.Body)
	c.reply(x, text("done"))
	v, err := x.Session.ViewAtRequest(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if !v.Dry || v.Number != 11 || bytes.Contains(body, []byte("masked")) {
		t.Fatalf("request %d is no dry run", v.Number)
	}
	for i := range v.View.Messages {
		for k := range v.View.Messages[i].Blocks {
			if b := &v.View.Messages[i].Blocks[k]; b.By != 0 || strings.Contains(b.Words(), "masked") {
				t.Errorf("message %d shows %q", i, b.Words())
			}
		}
	}
	before, err := x.Session.ViewAtRequest(t.Context(), 10)
	if err != nil || !strings.Contains(labelled(before.View), "masked") {
		t.Errorf("request 10 hides nothing, %v", err)
	}
	for _, n := range []int{-1, 12} {
		if _, err := x.Session.ViewAtRequest(t.Context(), n); err == nil || !strings.Contains(err.Error(), "the session has requests 1 to 11") {
			t.Errorf("request %d: %v", n, err)
		}
	}
	empty := all.Create(x.Session.Meta())
	if _, err := empty.ViewAtRequest(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "has no requests") {
		t.Errorf("a session without requests: %v", err)
	}
}
