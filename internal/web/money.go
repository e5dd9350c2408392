package web

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/price"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// moneyPage is the data of the savings of all sessions: those of furl usage --savings.
type moneyPage struct {
	*storage.SavingsReport
	Since string // 7d, 30d, 90d; "": all days
	// Lines are the newest ones, More is the number of the others.
	Lines []moneyLine
	More  int
	Days  *dayChart
}

// maxLines is the number of lines of the table.
const maxLines = 400

// moneyLine is a line of the table. Model has no date at its end.
type moneyLine struct {
	storage.SavingsLine
	First bool // of its day
}

// ModelName is the name of the line's model without the date at its end.
func (l *moneyLine) ModelName() string {
	return (&listed{SessionInfo: storage.SessionInfo{Meta: storage.Meta{Model: l.Model}}}).ModelName()
}

// money shows what furl has saved, by day, agent and model.
func (p *Page) money(v *visit) error {
	data := &moneyPage{Since: v.r.FormValue("since")}
	first := ""
	if data.Since != "" {
		age, ok := ageOf[data.Since]
		if !ok {
			return badRequest("invalid since %.20q: choose one of 1d, 7d, 30d, 90d", data.Since)
		}
		first = p.o.Now().Add(-age).Format(time.DateOnly)
	}
	var err error
	if data.SavingsReport, err = storage.ReportSavings(v.r.Context(), v.Sessions.Store(), v.Sessions.Tenant(), first, agents.Name); err != nil {
		return err
	}
	data.More = max(0, len(data.SavingsReport.Lines)-maxLines)
	for i, l := range data.SavingsReport.Lines[:len(data.SavingsReport.Lines)-data.More] {
		data.Lines = append(data.Lines, moneyLine{l, i == 0 || l.Day != data.SavingsReport.Lines[i-1].Day})
	}
	data.Days = newDayChart(data.SavingsReport.Lines, false)
	v.render(http.StatusOK, "money.tmpl", data)
	return nil
}

// Ages are the time ranges to choose from.
func (d *moneyPage) Ages() []choice { return ages[1:] }

// priceClass is a line of the table of what a session's requests consist of.
type priceClass struct {
	Name string
	session.Class
}

// sessionMoneyPage is the data of the costs of a session.
type sessionMoneyPage struct {
	ID   furl.SessionID
	Info listed
	session.Totals
	// Sums compares the requests that furl has sent with the same without furl. There are
	// none in an imported session. Imported is the number of the others.
	Imported int
	Sums     storage.Savings
	Classes  []priceClass
	Overhead []priceClass
	Chart    *costChart
	Uses     uses
	Breaks   []choice
	// Billed is what all branches have cost, with the agent's compactions.
	Billed billed.Bill
	// Other is the number of requests in the ledger that are not on the current branch.
	Other int
	model furl.Model // the session's
}

// sessionMoney shows what the requests of a session consist of and what they have cost.
func (p *Page) sessionMoney(v *visit) error {
	return v.readRequests(func(snap *snapshot) (err error) {
		requests := v.requests
		data := &sessionMoneyPage{ID: v.s.ID(), Info: v.listed(v.s.Info()), Totals: session.TotalsOf(requests), model: v.s.Model(v.s.Meta().Model)}
		imported := 0
		for imported < len(requests) && requests[imported].Sent < v.s.Meta().Imported {
			imported++
		}
		data.Imported, data.Sums = imported, savingsOf(session.TotalsOf(requests[imported:]))
		data.Billed = billed.Sum(billed.OfStored(v.s.ID(), new(v.s.Meta()), snap.log.Records(0), v.s.Model))
		t := &data.Totals
		data.Classes = nonzero(priceClass{"Cache write", t.Write}, priceClass{fmt.Sprintf("Cache write (%s)", numbers.Count(int(price.LongLifetime(&data.model)/time.Hour), "hour")), t.WriteHour}, priceClass{"Cache read", t.Read},
			priceClass{"Fresh input", t.Fresh}, priceClass{"Output", t.Output}, priceClass{"The provider's tools", session.Class{Cost: t.Tools}})
		data.Overhead = nonzero(priceClass{"Summaries", t.Own}, priceClass{"Keep-alive", t.KeepAlive})
		data.Chart = newCostChart(requests, imported, t.Unpriced < t.Requests)
		if data.Uses, err = usesOf(snap.log); err != nil {
			return err
		}
		for _, reason := range slices.Sorted(maps.Keys(t.Breaks)) {
			data.Breaks = append(data.Breaks, choice{Name: reason, Count: t.Breaks[reason]})
		}
		if data.Info.Ledger != nil {
			data.Other = max(0, data.Info.Saved.Requests-data.Sums.Requests)
		}
		v.render(http.StatusOK, "sessionmoney.tmpl", data)
		return nil
	})
}

// nonzero returns the classes with tokens.
func nonzero(list ...priceClass) []priceClass {
	return slices.DeleteFunc(list, func(c priceClass) bool { return c.Tokens == 0 && c.Cost == 0 })
}

// With is what the requests that furl has sent have cost with their summaries.
func (d *sessionMoneyPage) With() float64 { return d.Sums.Spent() }

// IsPriced reports whether the list price of a request is known.
func (d *sessionMoneyPage) IsPriced() bool { return d.Requests > d.Unpriced }

// PriceUnknown reports whether the price of the session's model is unknown.
func (d *sessionMoneyPage) PriceUnknown() bool { return !price.Known(d.model.Prices) }

// BilledElsewhere reports whether more was billed, or less, than for the requests of the
// current branch.
func (d *sessionMoneyPage) BilledElsewhere() bool {
	return d.Billed.Cost > 0 && dollars(d.Billed.Cost) != dollars(d.Total())
}

// AllTokens are the tokens of all price classes.
func (d *sessionMoneyPage) AllTokens() (n int) {
	for _, c := range slices.Concat(d.Classes, d.Overhead) {
		n += c.Tokens
	}
	return n
}

// Total is what the requests with their overhead have cost, in US dollars.
func (d *sessionMoneyPage) Total() float64 { return d.Cost + d.Own.Cost + d.KeepAlive.Cost }

// breakWords say why a cache was not used.
var breakWords = map[string]string{
	"planned": "the prompt was reduced", "client": "the client changed its history", "model": "another model", "preamble": "instructions or tools changed",
	"expired": "the cache expired", "unexpected": "for an unknown reason",
}

func breakName(reason string) string { return cmp.Or(breakWords[reason], reason) }
