package storage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/storage"
)

// A ledger has one entry a day and model, stays small, and loses nothing.
func TestLedger(t *testing.T) {
	var l storage.Ledger
	for i := range 1000 {
		l.Add(fmt.Sprintf("day-%04d", i/2), "m", storage.Savings{Requests: 1, Tokens: 10, TokensWithout: 30, SummaryTokens: 1, Cost: 1, CostWithout: 4, SummaryCost: 0.5})
	}
	if len(l.Days) != 200 || l.Days[199].Requests != 2 || l.Days[0].Day != "day-0300" {
		t.Errorf("%d entries, the first is %+v", len(l.Days), l.Days[0])
	}
	if s := l.Total(); s.Requests != 1000 || s.SavedTokens() != 19_000 || s.Saved() != 2500 {
		t.Errorf("the sum is %+v", s)
	}
	m := storage.Meta{Ledger: &l}
	c := m.Clone()
	c.Ledger.Add("day-0499", "m", storage.Savings{Requests: 5})
	if l.Days[199].Requests != 2 {
		t.Error("a copy shares its entries")
	}
	if s := (*storage.Ledger)(nil).Total(); s != (storage.Savings{}) {
		t.Errorf("no ledger has %+v", s)
	}
}

// Of sessions without a ledger, only those with an answered request were recorded by an
// older version.
func TestSessionsWithoutRequests(t *testing.T) {
	st := inmem.New()
	defer st.Close()
	add := func(id furl.SessionID, bodies ...furl.Body) {
		t.Helper()
		b := storage.Batch{Meta: &storage.Meta{}}
		for i, body := range bodies {
			b.Records = append(b.Records, furl.Record{Seq: furl.Seq(i + 1), Parent: furl.Seq(i), At: time.Now(), By: furl.Client, Body: body})
		}
		if err := st.Append(t.Context(), furl.SessionKey{Session: id}, b); err != nil {
			t.Fatal(err)
		}
	}
	m := &furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindText, Text: "Go."}}}
	m.Seal()
	add("failed", m)
	add("older", m, &furl.Exchange{Model: "m"})
	rep, err := storage.ReportSavings(t.Context(), st, "", "", func(client string) string { return client })
	if err != nil || rep.Unknown != 1 {
		t.Errorf("%d sessions are of an older version, want 1, %v", rep.Unknown, err)
	}
}
