package tally_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/tally"
	"github.com/furlhq/furl/storage"
)

// entry is a priced request of a session.
func entry(session, parent string, at time.Time, model string, cost float64) billed.Entry {
	return billed.Entry{Time: at, Session: session, Parent: parent, Model: model, Kind: billed.Reply, Usage: furl.Usage{Input: 10, Output: 1}, Cost: cost, Priced: true}
}

func report(q tally.Query, sessions ...billed.Session) *tally.Report {
	c := tally.NewCollector(q)
	for i := range sessions {
		c.Add(&sessions[i])
	}
	return c.Report()
}

// Days are those of the location, also where a day has 23 hours or the offset is three quarters of an hour. A week
// begins on Monday.
func TestDays(t *testing.T) {
	for _, test := range []struct{ zone, at, day, week, month string }{
		{"UTC", "2026-11-29T23:59:59Z", "2026-11-29", "2026-11-23", "2026-11"},
		{"Europe/Berlin", "2026-11-29T23:59:59Z", "2026-11-30", "2026-11-30", "2026-11"},
		{"Europe/Berlin", "2026-03-29T22:00:00Z", "2026-03-30", "2026-03-30", "2026-03"},
		{"Europe/Berlin", "2026-03-29T21:59:59Z", "2026-03-29", "2026-03-23", "2026-03"},
		{"Asia/Kathmandu", "2026-01-31T18:15:00Z", "2026-02-01", "2026-01-26", "2026-02"},
		{"Asia/Kathmandu", "2026-01-31T18:14:59Z", "2026-01-31", "2026-01-26", "2026-01"},
		{"America/New_York", "2026-01-01T04:59:59Z", "2025-12-31", "2025-12-29", "2025-12"},
	} {
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, test.at)
		if err != nil {
			t.Fatal(err)
		}
		rep := report(tally.Query{By: []tally.By{tally.Day, tally.Week, tally.Month}, Location: zone}, billed.Session{Entries: []billed.Entry{entry("s", "", at, "m", 1)}})
		if got, want := rep.Groups[0].Key, (tally.Key{Day: test.day, Week: test.week, Month: test.month}); got != want {
			t.Errorf("%s in %s: got %+v, want %+v", test.at, test.zone, got, want)
		}
	}
}

// Sub-agents follow the session that started them, whose tree is as expensive as all of them. Circles, missing parents and
// a session that is its own parent end a path.
func TestTree(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	var list []billed.Session
	for _, s := range []struct {
		id, parent string
		cost       float64
	}{{"small", "", 1}, {"root", "", 2}, {"child", "root", 3}, {"grandchild", "child", 4}, {"other child", "root", 5}, {"orphan", "gone", 6}, {"self", "self", 0.5}, {"a", "b", 0.3}, {"b", "a", 0.2}} {
		list = append(list, billed.Session{ID: s.id, Parent: s.parent, Title: "title of " + s.id, Entries: []billed.Entry{entry(s.id, s.parent, at, "m", s.cost)}})
	}
	rep := report(tally.Query{By: []tally.By{tally.Session}}, list...)
	var got []string
	for _, g := range rep.Groups {
		got = append(got, fmt.Sprintf("%d %s %g %g", g.Depth, g.Session, g.Cost, g.CostTree))
	}
	want := []string{"0 root 2 14", "1 child 3 7", "2 grandchild 4 4", "1 other child 5 5", "0 orphan 6 6", "0 small 1 1", "0 self 0.5 0.5", "0 b 0.2 0.5", "1 a 0.3 0.3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := rep.Groups[0].Title; got != "title of root" {
		t.Errorf("the title is %q", got)
	}
}

// Requests outside of the limits, of other projects, and those that another session counts are left out. Without a usage
// they are counted as unrecorded, without a price as unpriced.
func TestChosen(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 11, n, 12, 0, 0, 0, time.UTC) }
	s := billed.Session{Entries: []billed.Entry{entry("s", "", day(1), "m", 1), entry("s", "", day(2), "m", 2), entry("s", "p", day(3), "n", 4), entry("s", "", day(4), "m", 8), entry("s", "", time.Time{}, "m", 16)}}
	s.Entries = append(s.Entries, entry("s", "", day(3), "m", 32), entry("s", "", day(3), "m", 0), entry("s", "", day(3), "m", 0), entry("s", "", day(3), "m", 64))
	s.Entries[5].Elsewhere = true
	s.Entries[6].Usage, s.Entries[6].Priced = furl.Usage{}, false
	s.Entries[7].Priced, s.Entries[7].Unpriced = false, []string{"a term"}
	s.Entries[8].Project = "other"
	rep := report(tally.Query{By: []tally.By{tally.Model}, Since: day(2), Until: day(4), InProject: func(p string) bool { return p == "" }}, s)
	want := &tally.Report{
		Total: tally.Sum{Cost: 6, CostSubagents: 4, Requests: 3, Unpriced: 1, Unrecorded: 1, Tokens: tally.Tokens{Input: 30, Output: 3}},
		Groups: []tally.Group{
			{Key: tally.Key{Model: "n"}, Sum: tally.Sum{Cost: 4, CostSubagents: 4, Requests: 1, Tokens: tally.Tokens{Input: 10, Output: 1}}, Models: []string{"n"}, First: day(3), Last: day(3)},
			{Key: tally.Key{Model: "m"}, Sum: tally.Sum{Cost: 2, Requests: 2, Unpriced: 1, Unrecorded: 1, Tokens: tally.Tokens{Input: 20, Output: 2}}, Models: []string{"m"}, First: day(2), Last: day(3)},
		},
		By: []tally.By{tally.Model}, Undated: 1, NotPriced: []string{"a term"},
	}
	if diff := cmp.Diff(want, rep, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".models" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
}

// A request of the store and of a recording counts once, whether its response has an id or not.
func TestKnown(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	with := func(id string, prompt int) billed.Entry {
		e := entry("", "", at, "m", 1)
		e.Response, e.Usage.Input = id, prompt
		return e
	}
	stored := tally.StoredSession{Session: billed.Session{ID: "k3y", Entries: []billed.Entry{with("r1", 10), with("r2", 20), with("", 30)}}, Info: storage.SessionInfo{Meta: storage.Meta{Hint: "parent/agents-id"}}}
	var known tally.Known
	known.Stored(&stored)
	if stored.ID != "agents-id" || stored.Entries[0].Session != "agents-id" {
		t.Errorf("the session is %q", stored.ID)
	}
	// The agent has recorded other outputs of the first two, and the third one twice.
	rec := billed.Session{ID: "agents-id", Entries: []billed.Entry{with("r1", 10), with("r2", 21), with("", 30), with("", 30), with("r3", 10)}}
	rec.Entries[0].Usage.Output = 3
	known.Recorded(&rec)
	var got []bool
	for _, e := range rec.Entries {
		got = append(got, e.Elsewhere)
	}
	if diff := cmp.Diff([]bool{true, false, true, false, false}, got); diff != "" {
		t.Error(diff)
	}
	// Gemini CLI sends no id of a session, and records none of a response.
	late := with("", 20)
	late.Agent, late.Time = stored.Entries[1].Agent, at.Add(time.Minute)
	gemini := billed.Session{ID: "another id", Entries: []billed.Entry{late, late}}
	if known.Recorded(&gemini); !gemini.Entries[0].Elsewhere || gemini.Entries[1].Elsewhere {
		t.Errorf("a request without ids is counted %v, %v elsewhere, want once", gemini.Entries[0].Elsewhere, gemini.Entries[1].Elsewhere)
	}
	late.Time = at.Add(time.Hour)
	far := billed.Session{Entries: []billed.Entry{late}}
	if known.Recorded(&far); far.Entries[0].Elsewhere {
		t.Error("a request an hour later is the same one")
	}
	other := billed.Session{ID: "other", Entries: []billed.Entry{with("", 30)}}
	if known.Recorded(&other); other.Entries[0].Elsewhere {
		t.Error("a request without an id is that of another session")
	}
}
