// Package tally sums up what requests have cost, by day, model, project and more.
package tally

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/billed"
)

// By is what requests are grouped by.
type By string

// Day, week and month are those of the query's location. A week begins on Monday.
const (
	Day     By = "day"
	Week    By = "week"
	Month   By = "month"
	Model   By = "model"
	Project By = "project"
	Agent   By = "agent"
	Session By = "session"
	Kind    By = "kind" // replies, compactions and others; see billed.Kind
)

// All are the groupings.
var All = []By{Day, Week, Month, Model, Project, Agent, Session, Kind}

// Parse returns the grouping with a name.
func Parse(name string) (By, error) {
	if by := By(name); slices.Contains(All, by) {
		return by, nil
	}
	names := make([]string, len(All))
	for i, by := range All {
		names[i] = string(by)
	}
	return "", fmt.Errorf("invalid grouping %q: expected one of %s", name, strings.Join(names, ", "))
}

// Query chooses requests and says how to group them.
type Query struct {
	By []By
	// Since and Until limit the times of requests, the second exclusively. Zero: no limit. With a limit,
	// requests without a time are left out.
	Since, Until time.Time
	InProject    func(project string) bool // nil: all
	Location     *time.Location            // of days; nil: UTC
}

// Tokens are sums of tokens.
type Tokens struct {
	Input        int `json:"input"` // neither read from nor written to a cache
	CacheRead    int `json:"cache_read"`
	CacheWrite   int `json:"cache_write"`    // with those of an hour
	CacheWrite1h int `json:"cache_write_1h"` // the part of CacheWrite that has a longer lifetime
	Output       int `json:"output"`         // with reasoning
	Reasoning    int `json:"reasoning"`      // where it was reported
}

// Prompt is the size of all prompts together.
func (t *Tokens) Prompt() int { return t.Input + t.CacheRead + t.CacheWrite }

func (t *Tokens) add(u *furl.Usage) {
	t.Input += u.Input
	t.CacheRead += u.CacheRead
	t.CacheWrite += u.CacheWrite + u.CacheWrite1h
	t.CacheWrite1h += u.CacheWrite1h
	t.Output += u.Output
	t.Reasoning += u.Reasoning
}

// Sum is what requests have cost.
type Sum struct {
	// Cost is in US dollars, by list prices, and CostSubagents its part that sub-agents have spent.
	Cost          float64 `json:"cost"`
	CostSubagents float64 `json:"cost_subagents"`
	// Requests are those with a recorded usage. Unpriced are those of them whose price is not known, and
	// Unrecorded others without a recorded usage.
	Requests   int    `json:"requests"`
	Unpriced   int    `json:"unpriced,omitempty"`
	Unrecorded int    `json:"unrecorded,omitempty"`
	Tokens     Tokens `json:"tokens"`
}

// Priced reports whether the price of a request is known.
func (s *Sum) Priced() bool { return s.Requests > s.Unpriced }

func (s *Sum) add(e *billed.Entry) {
	if !e.Recorded() && !e.Priced {
		s.Unrecorded++
		return
	}
	s.Requests++
	if !e.Priced {
		s.Unpriced++
	}
	s.Cost += e.Cost
	if e.Parent != "" {
		s.CostSubagents += e.Cost
	}
	s.Tokens.add(&e.Usage)
}

// Key identifies a group. Fields that it is not grouped by are "". Day and Week are dates, that of Week is
// a Monday; Month is such as 2026-11.
type Key struct {
	Day     string      `json:"day,omitempty"`
	Week    string      `json:"week,omitempty"`
	Month   string      `json:"month,omitempty"`
	Model   string      `json:"model,omitempty"`
	Project string      `json:"project,omitempty"`
	Agent   string      `json:"agent,omitempty"`
	Session string      `json:"session,omitempty"`
	Parent  string      `json:"parent,omitempty"` // of a sub-agent, if grouped by session
	Kind    billed.Kind `json:"kind,omitempty"`
}

// Name is the part of the key for a grouping.
func (k *Key) Name(by By) string {
	switch by {
	case Day:
		return k.Day
	case Week:
		return k.Week
	case Month:
		return k.Month
	case Model:
		return k.Model
	case Project:
		return k.Project
	case Agent:
		return k.Agent
	case Session:
		return k.Session
	}
	return string(k.Kind)
}

// Group is the sum of a group.
type Group struct {
	Key
	Sum
	// Models are the names of its models, the most expensive first.
	Models []string `json:"models"`
	// Title, of a session, is "" if it has none. CostTree is its cost with that of its sub-agents and of
	// theirs. Depth is 0 for a session that is no sub-agent.
	Title    string  `json:"title,omitempty"`
	CostTree float64 `json:"cost_tree,omitempty"`
	Depth    int     `json:"depth,omitempty"`
	// First and Last are the times of its first and last request, zero if unknown.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`

	models map[string]float64
}

// Report is the answer to a query.
type Report struct {
	Total Sum `json:"total"`
	// Groups are in the order of time. Those of one time, or without times, are in the order of cost, the most
	// expensive first. Sub-agents follow the session that started them.
	Groups []Group `json:"groups"`
	By     []By    `json:"by"`
	// Undated is the number of requests that were left out because their time is not known.
	Undated int `json:"undated,omitempty"`
	// NotPriced are the terms that have no price; see billed.Entry.
	NotPriced []string `json:"not_priced,omitempty"`
}

// Collector groups requests.
type Collector struct {
	q      Query
	report Report
	groups map[Key]*Group
	days   map[int64]string // by hour
}

// NewCollector returns a collector for a query.
func NewCollector(q Query) *Collector {
	if q.Location == nil {
		q.Location = time.UTC
	}
	return &Collector{q: q, groups: make(map[Key]*Group), days: make(map[int64]string)}
}

// Add adds the requests of a session that no other session counts.
func (c *Collector) Add(s *billed.Session) {
	for i := range s.Entries {
		if e := &s.Entries[i]; c.chooses(e) {
			c.add(e, s.Title)
		}
	}
}

// chooses reports whether the query chooses a request, and notes one that has no time.
func (c *Collector) chooses(e *billed.Entry) bool {
	if e.Elsewhere || c.q.InProject != nil && !c.q.InProject(e.Project) {
		return false
	}
	if c.q.Since.IsZero() && c.q.Until.IsZero() {
		return true
	}
	if e.Time.IsZero() {
		c.report.Undated++
		return false
	}
	return !e.Time.Before(c.q.Since) && (c.q.Until.IsZero() || e.Time.Before(c.q.Until))
}

func (c *Collector) add(e *billed.Entry, title string) {
	c.report.Total.add(e)
	for _, t := range e.Unpriced {
		if !slices.Contains(c.report.NotPriced, t) {
			c.report.NotPriced = append(c.report.NotPriced, t)
		}
	}
	key := c.key(e)
	g := c.groups[key]
	if g == nil {
		g = &Group{Key: key, models: make(map[string]float64)}
		c.groups[key] = g
	}
	if slices.Contains(c.q.By, Session) {
		g.Title = cmp.Or(g.Title, title)
	}
	g.Sum.add(e)
	if e.Recorded() && e.Model != "" {
		g.models[e.Model] += e.Cost
	}
	if g.First.IsZero() || !e.Time.IsZero() && e.Time.Before(g.First) {
		g.First = e.Time
	}
	if e.Time.After(g.Last) {
		g.Last = e.Time
	}
}

// key returns the group of a request.
func (c *Collector) key(e *billed.Entry) (k Key) {
	for _, by := range c.q.By {
		switch by {
		case Day:
			k.Day = c.day(e.Time)
		case Week:
			if day, err := time.Parse(time.DateOnly, c.day(e.Time)); err == nil {
				k.Week = day.AddDate(0, 0, -(int(day.Weekday())+6)%7).Format(time.DateOnly)
			}
		case Month:
			k.Month = c.day(e.Time)
			k.Month = k.Month[:min(len(k.Month), len("2026-11"))]
		case Model:
			k.Model = e.Model
		case Project:
			k.Project = e.Project
		case Agent:
			k.Agent = e.Agent
		case Session:
			k.Session, k.Parent = e.Session, e.Parent
		case Kind:
			k.Kind = e.Kind
		}
	}
	return k
}

// day returns the date of a time, "" if it is zero. Zones differ by multiples of a quarter of an hour.
func (c *Collector) day(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	quarter := at.Unix() / (15 * 60)
	day, ok := c.days[quarter]
	if !ok {
		day = at.In(c.q.Location).Format(time.DateOnly)
		c.days[quarter] = day
	}
	return day
}

// Report returns the sums of what was added.
func (c *Collector) Report() *Report {
	r := c.report
	r.By = append([]By{}, c.q.By...)
	r.Groups = make([]Group, 0, len(c.groups))
	for _, g := range c.groups {
		out := *g
		out.Models = slices.SortedFunc(maps.Keys(g.models), func(a, b string) int {
			return cmp.Or(cmp.Compare(g.models[b], g.models[a]), cmp.Compare(a, b))
		})
		out.models = nil
		r.Groups = append(r.Groups, out)
	}
	slices.SortFunc(r.Groups, c.compare)
	if slices.Equal(c.q.By, []By{Session}) {
		r.Groups = tree(r.Groups)
	}
	return &r
}

func (c *Collector) compare(a, b Group) int {
	for _, by := range []By{Day, Week, Month} {
		if n := cmp.Compare(a.Name(by), b.Name(by)); n != 0 {
			return n
		}
	}
	if n := cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Tokens.Prompt(), a.Tokens.Prompt())); n != 0 {
		return n
	}
	for _, by := range All {
		if n := cmp.Compare(a.Name(by), b.Name(by)); n != 0 {
			return n
		}
	}
	return cmp.Compare(a.Parent, b.Parent)
}

// tree puts sub-agents after the session that started them, and sums up their costs. Parents that are not
// among the sessions, and circles of parents, end a path.
func tree(groups []Group) []Group {
	at := make(map[string]int) // the first with an id
	for i := range groups {
		if _, ok := at[groups[i].Session]; !ok {
			at[groups[i].Session] = i
		}
	}
	parent := make([]int, len(groups))
	children := make([][]int, len(groups))
	var roots []int
	for i := range groups {
		p, ok := at[groups[i].Parent]
		if parent[i] = p; groups[i].Parent == "" || !ok || p == i || leadsTo(parent[:i], p, i) {
			parent[i] = -1
			roots = append(roots, i)
			continue
		}
		children[p] = append(children[p], i)
	}
	var sum func(i, depth int) float64
	sum = func(i, depth int) float64 {
		g := &groups[i]
		g.CostTree, g.Depth = g.Cost, depth
		for _, child := range children[i] {
			g.CostTree += sum(child, depth+1)
		}
		return g.CostTree
	}
	for _, i := range roots {
		sum(i, 0)
	}
	byTree := func(a, b int) int {
		return cmp.Or(cmp.Compare(groups[b].CostTree, groups[a].CostTree), cmp.Compare(a, b))
	}
	out := make([]Group, 0, len(groups))
	var list func(i int)
	list = func(i int) {
		out = append(out, groups[i])
		slices.SortFunc(children[i], byTree)
		for _, child := range children[i] {
			list(child)
		}
	}
	slices.SortFunc(roots, byTree)
	for _, i := range roots {
		list(i)
	}
	return out
}

// leadsTo reports whether the parents of a group lead to another one. Those that are not known yet end the path.
func leadsTo(parent []int, from, to int) bool {
	for range parent {
		if from == to {
			return true
		}
		if from < 0 || from >= len(parent) {
			return false
		}
		from = parent[from]
	}
	return from == to
}
