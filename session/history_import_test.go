package session_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// imported is a recording as a session.
func imported(t *testing.T, rec *transcript.Session) *session.Session {
	t.Helper()
	all := reopen(t, inmem.New(), session.Options{})
	for _, r := range rec.Log.Records(0) {
		if m, ok := r.Body.(*furl.Message); ok {
			m.Measure(sessiontest.Letters{})
		}
	}
	s, err := all.Import(t.Context(), "imported", rec.Log, storage.Meta{Model: rec.Model})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every exchange of an imported recording is a request, with a size, and the blocks of
// its view add up to that size.
func TestHistoryOfImports(t *testing.T) {
	files, err := filepath.Glob("../transcript/testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	reported, estimated := 0, 0
	for _, file := range files {
		rec, err := transcript.ReadFile(file)
		if err != nil {
			continue // some are broken on purpose
		}
		for _, one := range rec.Sessions {
			a, b := checkImported(t, file, one)
			reported, estimated = reported+a, estimated+b
		}
	}
	if reported == 0 || estimated == 0 {
		t.Errorf("%d requests with reported sizes and %d with estimated ones", reported, estimated)
	}
}

func TestHistoryOfImportedRecordings(t *testing.T) {
	for _, file := range recordings.Files(t, "entire-cli/*.jsonl.gz", "agentv/*.jsonl.gz", "nimbus/*.json.gz", "aider/*.gz") {
		rec, err := transcript.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range rec.Sessions {
			reported, estimated := checkImported(t, file, one)
			if len(rec.Sessions) == 1 {
				t.Logf("%s: %d requests, %d of them estimated", filepath.Base(file), reported+estimated, estimated)
			}
		}
	}
}

func checkImported(t *testing.T, file string, rec *transcript.Session) (reported, estimated int) {
	t.Helper()
	s := imported(t, rec)
	list, err := s.Requests()
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	exchanges := 0
	for _, r := range rec.Log.Path(rec.Log.Head()) {
		if _, ok := r.Body.(*furl.Exchange); ok {
			exchanges++
		}
	}
	st, at := new(furl.State), furl.Seq(0)
	for i, q := range list {
		if q.Number != i+1 || q.Imported != (rec.Log.At(max(q.Exchange, q.Sent)).By == furl.Import) || q.Estimated != (q.Usage.Prompt() == 0) || q.SizeWithout < q.Size {
			t.Fatalf("%s: request %d is %+v", file, i+1, q)
		}
		if q.Exchange > 0 {
			exchanges--
		}
		if q.Estimated {
			estimated++
		} else {
			reported++
		}
		path := rec.Log.Path(q.Sent)
		for _, r := range path {
			if r.Seq <= at {
				continue
			}
			if err := st.Apply(r); err != nil {
				t.Fatal(err)
			}
		}
		at = q.Sent
		v := st.View(s.Model(q.Model))
		if sum := q.Scale.Fixed + q.Scale.Of(v.Tokens, v.Items); sum < q.Size-2 || sum > q.Size+2 {
			t.Errorf("%s: request %d has %d tokens, its parts %d: %+v", file, q.Number, q.Size, sum, q.Scale)
		}
	}
	if exchanges != 0 {
		t.Errorf("%s: %d exchanges of %d requests are missing", file, exchanges, len(list))
	}
	return reported, estimated
}

// Without exchanges, each reply is a request, up to the first exchange.
func TestInferredRequests(t *testing.T) {
	all := reopen(t, inmem.New(), session.Options{Policy: "none", Window: 50_000, Now: still})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	appendAll(t, s, steps(t, 3, 400)) // 1 to 7
	h := session.NewHistory(s.HistoryOptions())
	extend := func() []session.Request {
		t.Helper()
		if _, err := h.Extend(s.Records(0), s.Head()); err != nil {
			t.Fatal(err)
		}
		return h.Requests()
	}
	type short struct {
		Number                int
		Exchange, Sent, Reply furl.Seq
		Estimated             bool
	}
	list := func() (out []short) {
		last := 0
		for _, q := range extend() {
			out = append(out, short{q.Number, q.Exchange, q.Sent, q.Reply, q.Estimated})
			if q.Size <= last || q.Model != "claude-sonnet-4-5" || q.Window != 50_000 || !q.Time.Equal(still()) || q.Priced {
				t.Errorf("request %d after one of %d tokens: %+v", q.Number, last, q)
			}
			last = q.Size
		}
		return out
	}
	want := []short{{1, 0, 1, 2, true}, {2, 0, 3, 4, true}, {3, 0, 5, 6, true}}
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Error(diff)
	}
	// The start of a reply that the client sends is not a reply. It is known by the
	// exchange that follows.
	appendAll(t, s, []*furl.Message{message(t, furl.RoleAssistant, text("The build"))})
	if got := list(); len(got) != 4 || got[3].Sent != 7 {
		t.Errorf("the requests are %+v", got)
	}
	appendAll(t, s, []*furl.Message{message(t, furl.RoleAssistant, text(" is slow because"))})
	exchange := &furl.Exchange{Model: "claude-sonnet-4-5"}
	log := furl.NewLog()
	if err := log.Load(s.Records(0)); err != nil {
		t.Fatal(err)
	}
	for _, body := range []furl.Body{exchange, message(t, furl.RoleAssistant, text("of tests.")), message(t, furl.RoleUser, text("And now?")), message(t, furl.RoleAssistant, text("Nothing."))} {
		if m, ok := body.(*furl.Message); ok {
			m.Measure(sessiontest.Letters{})
		}
		if _, err := log.Append(log.Head(), still(), furl.Client, body); err != nil {
			t.Fatal(err)
		}
	}
	same, err := h.Extend(log.Records(0), log.Head())
	if err != nil || same != 3 {
		t.Errorf("%d requests are the same, %v; want 3", same, err)
	}
	got := h.Requests()
	if q := got[len(got)-1]; len(got) != 4 || q.Exchange != 10 || q.Sent != 9 || q.Reply != 11 || !q.Estimated || q.Size <= got[2].Size {
		t.Errorf("the requests are %+v", got)
	}
	if _, err := h.Extend(log.Records(0), 99); err == nil {
		t.Error("a record that does not exist is accepted")
	}
}

// What is drawn of the next request adds up to its size.
func TestComposition(t *testing.T) {
	all := reopen(t, inmem.New(), session.Options{Policy: "none", Window: 50_000, Now: still})
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 20, 400))
	fit, err := s.Fit(t.Context(), "claude-sonnet-4-5", text("You help."), furl.Block{Kind: furl.KindOpaque, Text: `{"name":"read","description":"reads a file"}`})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{fit.Budget.Size + 5000, 500} { // the second is smaller than what is counted
		reply := &protocol.Reply{Usage: furl.Usage{Input: size}, Messages: []*furl.Message{message(t, furl.RoleAssistant, text("Yes."))}}
		if err := s.Observe(t.Context(), fit, reply); err != nil {
			t.Fatal(err)
		}
		c := s.Composition("")
		v := s.View("claude-sonnet-4-5")
		sum := c.System + c.Tools + c.Scale.Of(v.Tokens, v.Items)
		if c.Size == 0 || sum < c.Size-2 || sum > c.Size+2 || c.System+c.Tools != c.Scale.Fixed || size > 1000 && (c.Tools == 0 || c.System == 0) {
			t.Errorf("%+v has parts of %d tokens", c, sum)
		}
		if u := s.Context(""); u.Size != c.Size {
			t.Errorf("the context has %d tokens, the composition %d", u.Size, c.Size)
		}
		if fit, err = s.Fit(t.Context(), "claude-sonnet-4-5"); err != nil {
			t.Fatal(err)
		}
	}
}
