package exchange_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// altered gives records back otherwise than they were stored.
type altered struct {
	storage.Store
	alter func(*furl.Record)
}

func (a *altered) Read(ctx context.Context, key furl.SessionKey, after furl.Seq) iter.Seq2[furl.Record, error] {
	return func(yield func(furl.Record, error) bool) {
		for r, err := range a.Store.Read(ctx, key, after) {
			if a.alter != nil && err == nil {
				a.alter(&r)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	message := func(r *furl.Record, change func(m *furl.Message)) {
		if m, ok := r.Body.(*furl.Message); ok && r.Seq == 3 {
			own := *m
			own.Blocks = append([]furl.Block(nil), m.Blocks...)
			change(&own)
			r.Body = &own
		}
	}
	for _, tt := range []struct {
		name, want string
		alter      func(*furl.Record)
	}{
		{"another text", "digest", func(r *furl.Record) {
			message(r, func(m *furl.Message) { m.Blocks[0].ID = "toolu_other" })
		}},
		{"other bytes", "bytes", func(r *furl.Record) {
			message(r, func(m *furl.Message) { m.Raw = []byte(`{"role":"user","content":"other"}`) })
		}},
		{"no JSON", "bytes", func(r *furl.Record) {
			message(r, func(m *furl.Message) { m.Raw = []byte(`{"role":`) })
		}},
		{"another chain", "chain", func(r *furl.Record) {
			if r.Seq == 3 {
				r.Chain[0]++
			}
		}},
		{"another parent", "fold", func(r *furl.Record) {
			if r.Seq == 3 {
				r.Parent = 1
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := &altered{Store: inmem.New()}
			s := reopen(t, store, session.Options{}).Create(storage.Meta{})
			appendAll(t, s, steps(t, 3, 100))
			checked(t, s)
			store.alter = tt.alter
			problems, err := s.Check(t.Context())
			if err != nil || !strings.Contains(fmt.Sprint(problems), tt.want) {
				t.Errorf("found %v, %v; want one of the %s", problems, err, tt.want)
			}
		})
	}
}

// X3, X4: what a restoration would do is told before it is made.
func TestX3PreviewOfARestore(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "rolling-mask-5", Window: 100_000})
	s := all.Create(storage.Meta{Model: "m"})
	appendAll(t, s, steps(t, 8, 400))
	if _, err := s.Fit(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	head, red := s.Head(), s.Reductions()[0].Seq
	would, err := s.Restore(t.Context(), session.RestoreOptions{Reduction: red, DryRun: true})
	if err != nil || would.Record != 0 || would.Tokens == 0 || would.After <= would.Before || s.Head() != head {
		t.Errorf("the preview of a lift is %+v, %v", would, err)
	}
	one, err := s.Restore(t.Context(), session.RestoreOptions{Spans: []furl.Span{{First: furl.Pos{Msg: 3}, Last: furl.Pos{Msg: 3}}}, DryRun: true})
	if err != nil || one.Tokens == 0 || one.Tokens >= would.Tokens || s.Head() != head {
		t.Errorf("the preview of opening one result is %+v, %v", one, err)
	}
	did, err := s.Restore(t.Context(), session.RestoreOptions{Reduction: red})
	if err != nil || did.Tokens != would.Tokens || did.After != would.After {
		t.Errorf("the preview said %+v, what came was %+v, %v", would, did, err)
	}
	if _, err := s.Restore(t.Context(), session.RestoreOptions{Reduction: 1, DryRun: true}); !errors.Is(err, furl.ErrNotOnPath) {
		t.Errorf("lifting a message gave %v, want ErrNotOnPath", err)
	}
	moments, err := event.Timeline(sessiontest.Log(t, s), 0, s.Head(), s.Context("").Limit)
	if err != nil || len(moments) == 0 || moments[len(moments)-1].Record.Seq != did.Record {
		t.Errorf("the timeline is %+v, %v; want the restoration last", moments, err)
	}
}

func TestContextSharesThePreamble(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "none", Window: 50_000})
	s := all.Create(storage.Meta{Model: "m"})
	appendAll(t, s, steps(t, 2, 400))
	u := s.Context("", text(strings.Repeat("be good ", 100)), furl.Block{Kind: furl.KindOpaque, Text: `{"name":"read"}`})
	got := make(map[string]int)
	sum := 0
	for _, p := range u.Parts {
		got[p.Name] = p.Tokens
		sum += p.Tokens
	}
	if sum != 50_000 || got["system"] < 150 || got["tools"] == 0 || got["results"] < 200 || got["placeholders"] != 0 {
		t.Errorf("the parts are %+v", u.Parts)
	}
	data, err := json.Marshal(u)
	if err != nil || !strings.Contains(string(data), `"current_size":`) {
		t.Errorf("as JSON it is %s, %v", data, err)
	}
}

// What is beside the messages is in no record; how it is shared is known all
// the same, to another process as well.
func TestContextTellsToolsFromInstructions(t *testing.T) {
	o := session.Options{Policy: "none", Window: 50_000}
	all, store := open(t, o)
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 2, 400))
	tool := furl.Block{Kind: furl.KindOpaque, Text: `{"name":"read","description":"` + strings.Repeat("reads. ", 300) + `"}`}
	fit, err := s.Fit(t.Context(), "claude-sonnet-4-5", text(strings.Repeat("be good ", 100)), tool)
	if err != nil {
		t.Fatal(err)
	}
	reply := &protocol.Reply{ID: "msg_1", Messages: []*furl.Message{message(t, furl.RoleAssistant, text("Done."))}, Usage: furl.Usage{Input: 4000, Output: 5}}
	if err := s.Observe(t.Context(), fit, reply); err != nil {
		t.Fatal(err)
	}
	again, err := reopen(t, store, o).Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	for _, p := range again.Context("").Parts {
		got[p.Name] = p.Tokens
	}
	if system, tools := got["system"], got["tools"]; system <= 0 || tools < 2*system || tools > 4*system {
		t.Errorf("the instructions have %d tokens and the tools %d, want about 2.7 times as many", system, tools)
	}
}

func TestImportIsIdempotent(t *testing.T) {
	all, _ := open(t, session.Options{})
	log := furl.NewLog()
	for _, m := range steps(t, 2, 50) {
		if _, err := log.Append(log.Head(), still(), furl.Import, m); err != nil {
			t.Fatal(err)
		}
	}
	s, err := all.Import(t.Context(), "mine", log, storage.Meta{Source: "x.jsonl"})
	if err != nil || s.Meta().Source != "x.jsonl" || len(s.Records(0)) != 5 {
		t.Fatalf("imported %+v, %v", s.Info(), err)
	}
	if _, err := log.Append(log.Head(), still(), furl.Import, message(t, furl.RoleAssistant, text("done"))); err != nil {
		t.Fatal(err)
	}
	if m := s.Meta(); m.Imported != 5 || !m.Recorded.Equal(newestIn(log)) {
		t.Errorf("it says that %d records were imported, the newest of %v", m.Imported, m.Recorded)
	}
	if s, err = all.Import(t.Context(), "mine", log, storage.Meta{}); err != nil || len(s.Records(0)) != 6 {
		t.Errorf("what the file has more was not added: %v", err)
	}
	if m := s.Meta(); m.Imported != 6 || !m.Recorded.Equal(newestIn(log)) || m.Source != "x.jsonl" {
		t.Errorf("then it says that %d records were imported from %q, the newest of %v", m.Imported, m.Source, m.Recorded)
	}
	other := furl.NewLog()
	if _, err := other.Append(0, still(), furl.Import, message(t, furl.RoleUser, text("other"))); err != nil {
		t.Fatal(err)
	}
	if _, err := all.Import(t.Context(), "mine", other, storage.Meta{}); !errors.Is(err, furl.ErrConflict) {
		t.Errorf("another log of that id gave %v, want ErrConflict", err)
	}
	if _, err := all.Import(t.Context(), "not valid!", other, storage.Meta{}); err == nil {
		t.Error("an id that is not valid was taken")
	}
	checked(t, s)
}

// A session with an exchange under way stays in memory, however many others
// are used.
func TestBusySessionsStay(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "none", Keep: 1})
	c := newClient(t, all, "a")
	_, x := c.begin()
	for range 5 {
		appendAll(t, all.Create(storage.Meta{}), steps(t, 1, 10))
	}
	s, err := all.Open(t.Context(), x.Session.ID())
	if err != nil || s != x.Session {
		t.Errorf("the session was let go of, %v", err)
	}
	c.reply(x, text("hello"))
}

// newestIn is when the newest record of a log was recorded.
func newestIn(log *furl.Log) (at time.Time) {
	for _, r := range log.Records(0) {
		if r.At.After(at) {
			at = r.At
		}
	}
	return at
}

// Sessions that were taken in are listed, and given up, by the age of their
// recordings.
func TestImportedSessionsAreAsOldAsTheirRecordings(t *testing.T) {
	now := time.Now()
	store := inmem.New()
	all, err := session.New(store, &session.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	own := func(title string) {
		if _, err := all.Create(storage.Meta{Title: title}).Append(t.Context(), message(t, furl.RoleUser, text(title))); err != nil {
			t.Fatal(err)
		}
	}
	from := func(title string, age time.Duration) {
		log := furl.NewLog()
		if _, err := log.Append(0, now.Add(-age), furl.Import, message(t, furl.RoleUser, text(title))); err != nil {
			t.Fatal(err)
		}
		if _, err := all.Import(t.Context(), furl.SessionID(title), log, storage.Meta{Title: title}); err != nil {
			t.Fatal(err)
		}
	}
	own("first")
	from("month", 30*24*time.Hour)
	from("year", 365*24*time.Hour)
	from("day", 24*time.Hour)
	own("last")
	titles := func(list []storage.SessionInfo) (out []string) {
		for _, info := range list {
			out = append(out, info.Title)
		}
		return out
	}
	for limit, want := range map[int][]string{0: {"last", "first", "day", "month", "year"}, 3: {"last", "first", "day"}, 1: {"last"}} {
		var got []string
		for info, err := range all.List(t.Context(), storage.SessionQuery{Limit: limit}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, info.Title)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the newest %d are %v, want %v", limit, got, want)
		}
	}
	keep := session.Retention{Age: 90 * 24 * time.Hour}
	if gone, err := all.Retain(t.Context(), keep); err != nil || len(gone) > 0 {
		t.Errorf("just taken in, %v went, %v", titles(gone), err)
	}
	now = now.Add(2 * time.Hour)
	if gone, err := all.Retain(t.Context(), keep); err != nil || !slices.Equal(titles(gone), []string{"year"}) {
		t.Errorf("gone are %v, want the one of last year, %v", titles(gone), err)
	}
}
