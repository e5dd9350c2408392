package web

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/billed"
	"github.com/furlhq/furl/internal/tally"
	"github.com/furlhq/furl/storage"
)

// usagePage is the data of what all sessions have cost: that of furl usage --from store.
type usagePage struct {
	*tally.Report
	Since string // 7d, 30d, 90d, or all
	By    tally.By
	// Groups are the first ones, More is the number of the others.
	Groups []usageGroup
	More   int
	Days   *dayChart
	// Failed is the number of sessions that could not be read.
	Failed int
}

// usageGroup is a line of the table.
type usageGroup struct {
	tally.Group
	by   tally.By
	most float64 // the cost of the most expensive group
}

// Time ranges of the page. It reads the sessions that have changed in them.
const (
	usageDefault = "30d"
	usageAll     = "all"
)

// usageBy are the groupings of the page.
var usageBy = []tally.By{tally.Model, tally.Project, tally.Agent, tally.Session, tally.Kind, tally.Day}

// usage shows what all sessions have cost, by day and by a grouping.
func (p *Page) usage(v *visit) error {
	data := &usagePage{Since: cmp.Or(v.r.FormValue("since"), usageDefault), By: tally.By(cmp.Or(v.r.FormValue("by"), string(tally.Model)))}
	var since time.Time
	if data.Since != usageAll {
		age, ok := ageOf[data.Since]
		if !ok {
			return badRequest("invalid since %.20q: choose one of 1d, 7d, 30d, 90d, all", data.Since)
		}
		since = p.o.Now().Add(-age)
	}
	if _, err := tally.Parse(string(data.By)); err != nil {
		return badRequest("%v", err)
	}
	groups := tally.NewCollector(tally.Query{By: []tally.By{data.By}, Since: since, Location: time.Local})
	days := tally.NewCollector(tally.Query{By: []tally.By{tally.Day}, Since: since, Location: time.Local})
	models := func(format furl.Format) billed.Models {
		return func(name string) furl.Model { return v.Sessions.Model(name, format) }
	}
	for s, err := range tally.Stored(v.r.Context(), v.Sessions.Store(), v.Sessions.Tenant(), since, models, agents.Name, false) {
		if err != nil && (s.ID == "" || v.r.Context().Err() != nil) {
			return err
		}
		if err != nil {
			data.Failed++
			continue
		}
		groups.Add(&s.Session)
		days.Add(&s.Session)
	}
	data.Report = groups.Report()
	data.list()
	data.Days = usageChart(days.Report())
	v.render(http.StatusOK, "usage.tmpl", data)
	return nil
}

// list sets the lines of the table.
func (d *usagePage) list() {
	most := 0.0
	for i := range d.Report.Groups {
		most = max(most, d.Report.Groups[i].Cost)
	}
	for i := range d.Report.Groups {
		g := &d.Report.Groups[i]
		switch {
		case g.Requests == 0:
		case len(d.Groups) == maxLines:
			d.More++
		default:
			d.Groups = append(d.Groups, usageGroup{*g, d.By, most})
		}
	}
}

// usageChart is the chart of the costs of each day.
func usageChart(rep *tally.Report) *dayChart {
	var lines []storage.SavingsLine
	for i := len(rep.Groups) - 1; i >= 0; i-- {
		g := &rep.Groups[i]
		if g.Requests == 0 || g.Day == "" {
			continue
		}
		n := g.Tokens.Prompt()
		lines = append(lines, storage.SavingsLine{Day: g.Day, Savings: storage.Savings{Requests: g.Requests, Tokens: n, TokensWithout: n, Cost: g.Cost, CostWithout: g.Cost}})
	}
	return newDayChart(lines, true)
}

// Ages and Groupings are what to choose from.
func (d *usagePage) Ages() []choice {
	return append(ages[1:len(ages):len(ages)], choice{Value: usageAll, Name: "All days"})
}

func (d *usagePage) Groupings() (list []choice) {
	for _, by := range usageBy {
		list = append(list, choice{Value: string(by), Name: "By " + string(by)})
	}
	return list
}

// Column is the head of the first column.
func (d *usagePage) Column() string {
	return strings.ToUpper(string(d.By[:1])) + string(d.By[1:])
}

// Label is the name of a group for a person, and Full all of it.
func (g *usageGroup) Label() string {
	name := g.Name(g.by)
	switch g.by {
	case tally.Session:
		name = cmp.Or(g.Title, name)
	case tally.Model:
		name = (&listed{SessionInfo: storage.SessionInfo{Meta: storage.Meta{Model: name}}}).ModelName()
	}
	return cmp.Or(name, "unknown")
}

// Full is the whole name.
func (g *usageGroup) Full() string { return cmp.Or(g.Name(g.by), "unknown") }

// Link is the path of a session's page, "" for other groups.
func (g *usageGroup) Link() string {
	if g.by != tally.Session || !storage.ValidID(furl.SessionID(g.Session)) {
		return ""
	}
	return "/furl/sessions/" + g.Session + "/money"
}

// Indent is the level of a sub-agent, at most 3.
func (g *usageGroup) Indent() int { return min(g.Depth, 3) }

// Bar is the width of the cost's bar, in hundredths.
func (g *usageGroup) Bar() string {
	if g.most <= 0 {
		return "0"
	}
	return fmt.Sprintf("%.1f", 100*g.Cost/g.most)
}
