// Package spending sums up what the sessions of a store have cost, and says which limits
// in dollars and tokens that reaches.
//
// The sums are those of the sessions' ledgers (storage.Ledger), so every process that
// uses a store can compute them. A Book keeps them in memory: it is told what its own
// process records, and reads what other processes have recorded every readInterval.
package spending

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/storage"
)

const (
	// readInterval is how old the sums of other processes may be.
	readInterval = 10 * time.Second
	// readMargin is by how much the clocks of processes may differ.
	readMargin = time.Minute
	// remembered is the age at which a session without requests is forgotten. It bounds
	// for how long a sub-agent counts for its parent, and is longer than a day.
	remembered = 7 * 24 * time.Hour
	// maxTenants bounds the tenants in memory. Others are read again.
	maxTenants = 4096
)

// near is the share of a limit from which it is reported.
const near = 0.8

// Use is how much of a limit is used.
type Use struct {
	// Limit is the name of the limit in the configuration.
	Limit string `json:"limit"`
	// Most is the limit and Used what is used of it, in US dollars or tokens.
	Most float64 `json:"most"`
	Used float64 `json:"used"`
	// Tenant is whose limit it is, "" without tenants.
	Tenant furl.Tenant `json:"tenant,omitempty"`
	// Project is the folder of a limit per project, Session the session of a limit per
	// session.
	Project string         `json:"project,omitempty"`
	Session furl.SessionID `json:"session,omitempty"`
}

// Reached reports whether requests are refused.
func (u *Use) Reached() bool { return u.Used >= u.Most }

// Near reports whether the use is to be shown as a warning: 80% or more.
func (u *Use) Near() bool { return u.Used >= near*u.Most }

// Names of the limits in the configuration.
const (
	DollarsPerDay        = "dollars_per_day"
	DollarsPerProjectDay = "dollars_per_project_day"
	DollarsPerSession    = "dollars_per_session"
	TokensPerSession     = "tokens_per_session"
)

// amounts returns what is used and the limit, in words.
func (u *Use) amounts() (used, most string) {
	if u.Limit == TokensPerSession {
		return numbers.Thousands(int64(u.Used)), numbers.Thousands(int64(u.Most)) + " tokens"
	}
	return numbers.Money(u.Used), numbers.Money(u.Most)
}

// what names what is limited.
func (u *Use) what() string {
	switch u.Limit {
	case DollarsPerDay:
		return "today"
	case DollarsPerProjectDay:
		return "today in this project"
	}
	return "in this session"
}

// String is such as "$4.10 of $5.00 used in this session (dollars_per_session)".
func (u *Use) String() string {
	used, most := u.amounts()
	what := u.what()
	switch {
	case u.Project != "":
		what = "today in " + u.Project
	case u.Session != "":
		what = "in session " + string(u.Session)
	}
	return fmt.Sprintf("%s of %s used %s (%s)", used, most, what, u.Limit)
}

// Short is String for a status line: "limit $4.10 of $5.00".
func (u *Use) Short() string {
	used, most := u.amounts()
	words := fmt.Sprintf("limit %s of %s", used, most)
	if u.Limit == DollarsPerDay || u.Limit == DollarsPerProjectDay {
		words += " today"
	}
	return words
}

// Refusal is the message for the client of a refused request: the limit, what was used,
// and what to do.
func (u *Use) Refusal(now time.Time) string {
	used, most := u.amounts()
	cure := "Start a new session"
	if u.Limit == DollarsPerDay || u.Limit == DollarsPerProjectDay {
		y, m, d := now.Date()
		cure = "Continue after " + time.Date(y, m, d+1, 0, 0, 0, 0, now.Location()).Format("2006-01-02 15:04 MST")
	}
	return fmt.Sprintf("furl: spending limit reached: %s used %s, the limit is %s. The request was not sent. %s, or raise gateway.limits.%s in furl's configuration.", used, u.what(), most, cure, u.Limit)
}

// Applies reports whether any limit in dollars or tokens is set.
func Applies(l *access.Limits) bool {
	return l.DollarsPerDay > 0 || l.DollarsPerProjectDay > 0 || l.DollarsPerSession > 0 || l.TokensPerSession > 0
}

// Book has the sums of sessions. The zero value is ready. It is safe for concurrent use.
type Book struct {
	mu      sync.Mutex
	tenants map[furl.Tenant]*sums
}

// sums are those of one tenant.
type sums struct {
	reading sync.Mutex // held while the store is read
	tried   time.Time  // the start of the last reading
	begun   time.Time  // the start of the last reading that succeeded; zero: none

	mu       sync.Mutex
	sessions map[furl.SessionID]*entry
	days     map[dayOf]float64 // dollars
	trees    map[string]*tree
	warned   map[Use]string // without Used; the day of the warning
}

// dayOf is a day, or a day of a project.
type dayOf struct{ day, project string }

// tree has the sums of the sub-agents of a session, and that session. It is named by the
// client's id of the session.
type tree struct {
	main            *entry // the newest session with that id; nil: unknown
	dollars, tokens float64
	agents          int
	// aside are requests with that id that are in no session's ledger.
	aside struct {
		dollars, tokens float64
		seen            time.Time // zero: none
	}
}

// entry is what one session has added to the sums.
type entry struct {
	hint, parent    string
	project         string
	seen            time.Time
	dollars, tokens float64
	days            map[string]float64 // of the last days
}

func (b *Book) of(t furl.Tenant) *sums {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tenants == nil {
		b.tenants = make(map[furl.Tenant]*sums)
	}
	s := b.tenants[t]
	if s == nil {
		if len(b.tenants) >= maxTenants {
			for other := range b.tenants { // in no order
				delete(b.tenants, other)
				break
			}
		}
		s = &sums{
			sessions: make(map[furl.SessionID]*entry), days: make(map[dayOf]float64),
			trees: make(map[string]*tree), warned: make(map[Use]string),
		}
		b.tenants[t] = s
	}
	return s
}

// Note adds what a session has cost by now. Sums of the same session never add up, and
// older ones are ignored.
func (b *Book) Note(key furl.SessionKey, m *storage.Meta, now time.Time) {
	if m.Ledger != nil {
		b.of(key.Tenant).note(key.Session, m, now)
	}
}

func (s *sums) note(id furl.SessionID, m *storage.Meta, now time.Time) {
	total := m.Ledger.Total()
	is := &entry{hint: m.Hint, parent: m.Parent, project: m.Project, seen: now, dollars: total.Spent(), tokens: float64(total.TokensSent()), days: make(map[string]float64)}
	first := now.Add(-remembered).Format(time.DateOnly)
	for i := range m.Ledger.Days {
		if d := &m.Ledger.Days[i]; d.Day >= first {
			is.days[d.Day] += d.Spent()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.sessions[id]
	if was != nil && (is.dollars < was.dollars || is.tokens < was.tokens) {
		was.seen = now
		return // it was read before
	}
	s.add(was, -1)
	s.add(is, 1)
	s.sessions[id] = is
}

// add adds an entry to the sums, or removes it with sign -1. s is locked.
func (s *sums) add(e *entry, sign float64) {
	if e == nil {
		return
	}
	if name := cmp.Or(e.parent, e.hint); name != "" {
		t := s.trees[name]
		if t == nil {
			t = new(tree)
			s.trees[name] = t
		}
		t.add(e, sign)
		if t.agents == 0 && t.main == nil && t.aside.seen.IsZero() {
			delete(s.trees, name)
		}
	}
	for day, d := range e.days {
		s.days[dayOf{day: day}] += sign * d
		if e.project != "" {
			s.days[dayOf{day, e.project}] += sign * d
		}
	}
}

// add adds a session to its tree, or removes it with sign -1.
func (t *tree) add(e *entry, sign float64) {
	switch {
	case e.parent != "":
		t.agents += int(sign)
		t.dollars += sign * e.dollars
		t.tokens += sign * e.tokens
	case sign > 0:
		t.main = e
	case t.main == e:
		t.main = nil
	}
}

// of returns the sums of the session with this metadata and of those that belong to it.
func (s *sums) of(m *storage.Meta) (dollars, tokens float64) {
	total := m.Ledger.Total()
	dollars, tokens = total.Spent(), float64(total.TokensSent())
	t := s.trees[cmp.Or(m.Parent, m.Hint)]
	switch {
	case t == nil:
	case m.Parent == "":
		dollars, tokens = dollars+t.dollars, tokens+t.tokens
	default:
		dollars, tokens = max(dollars, t.dollars), max(tokens, t.tokens)
		if t.main != nil {
			dollars, tokens = dollars+t.main.dollars, tokens+t.main.tokens
		}
	}
	if t != nil {
		dollars, tokens = dollars+t.aside.dollars, tokens+t.aside.tokens
	}
	return dollars, tokens
}

// forget removes what is too old to count. s is locked.
func (s *sums) forget(now time.Time) {
	for id, e := range s.sessions {
		if now.Sub(e.seen) > remembered {
			s.add(e, -1)
			delete(s.sessions, id)
		}
	}
	for name, t := range s.trees {
		if t.agents == 0 && t.main == nil && now.Sub(t.aside.seen) > remembered {
			delete(s.trees, name)
		}
	}
	today, first := now.Format(time.DateOnly), now.Add(-remembered).Format(time.DateOnly)
	for d := range s.days {
		if d.day < first {
			delete(s.days, d)
		}
	}
	for u, day := range s.warned {
		if day != today {
			delete(s.warned, u)
		}
	}
}

// Aside adds a request that is in no session's ledger. hint is the client's id of the
// session that it belongs to, "" if there is none. Other processes do not see it.
func (b *Book) Aside(tenant furl.Tenant, hint string, dollars float64, tokens int, now time.Time) {
	s, today := b.of(tenant), now.Format(time.DateOnly)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.days[dayOf{day: today}] += dollars
	if hint == "" {
		return
	}
	t := s.trees[hint]
	if t == nil {
		t = new(tree)
		s.trees[hint] = t
	}
	t.aside.dollars += dollars
	t.aside.tokens += float64(tokens)
	t.aside.seen = now
	if t.main != nil && t.main.project != "" {
		s.days[dayOf{today, t.main.project}] += dollars
	}
}

// Read reads what other processes have recorded for a tenant, unless that was done in
// the last 10 seconds. The first reading covers 7 days, later ones only what has changed.
func (b *Book) Read(ctx context.Context, store storage.Store, t furl.Tenant, now time.Time) error {
	s := b.of(t)
	s.reading.Lock() // the first reading is needed by all
	defer s.reading.Unlock()
	if age := now.Sub(s.tried); age >= 0 && age < readInterval {
		return nil
	}
	s.tried = now
	since := now.Add(-remembered)
	if !s.begun.IsZero() && s.begun.Before(now) {
		since = s.begun.Add(-readMargin)
	}
	for info, err := range store.Sessions(ctx, t, storage.SessionQuery{Since: since}) {
		if err != nil {
			return fmt.Errorf("sum up spending: %w", err)
		}
		if info.Ledger != nil {
			s.note(info.Session, &info.Meta, now)
		}
	}
	s.begun = now
	s.mu.Lock()
	s.forget(now)
	s.mu.Unlock()
	return nil
}

// Uses returns how much of each limit of a tenant is used, for a request of a session
// with this metadata. If id is "", the session is unknown, and limits of sessions and
// projects are left out. The sums are those of Note and Read.
func (b *Book) Uses(l *access.Limits, key furl.SessionKey, m *storage.Meta, now time.Time) []Use {
	s := b.of(key.Tenant)
	s.mu.Lock()
	defer s.mu.Unlock()
	today := now.Format(time.DateOnly)
	var list []Use
	if l.DollarsPerDay > 0 {
		list = append(list, Use{Limit: DollarsPerDay, Most: l.DollarsPerDay, Used: s.days[dayOf{day: today}], Tenant: key.Tenant})
	}
	if key.Session == "" {
		return list
	}
	if l.DollarsPerProjectDay > 0 && m.Project != "" {
		list = append(list, Use{Limit: DollarsPerProjectDay, Most: l.DollarsPerProjectDay, Used: s.days[dayOf{today, m.Project}], Tenant: key.Tenant, Project: m.Project})
	}
	dollars, tokens := s.of(m)
	if l.DollarsPerSession > 0 {
		list = append(list, Use{Limit: DollarsPerSession, Most: l.DollarsPerSession, Used: dollars, Tenant: key.Tenant, Session: key.Session})
	}
	if l.TokensPerSession > 0 {
		list = append(list, Use{Limit: TokensPerSession, Most: float64(l.TokensPerSession), Used: tokens, Tenant: key.Tenant, Session: key.Session})
	}
	return list
}

// OfSession returns how much of each limit of a session's tenant is used, from the store
// alone.
func OfSession(ctx context.Context, store storage.Store, set *access.LimitSet, info *storage.SessionInfo, now time.Time) ([]Use, error) {
	l := set.Of(info.Tenant)
	if !Applies(&l) {
		return nil, nil
	}
	var b Book
	if err := b.Read(ctx, store, info.Tenant, now); err != nil {
		return nil, err
	}
	return b.Uses(&l, info.SessionKey, &info.Meta, now), nil
}

// maxNear bounds the result of Near.
const maxNear = 100

// Near returns the limits of a tenant per day and project that are used by 80% or more,
// the most used first.
func (b *Book) Near(l *access.Limits, t furl.Tenant, now time.Time) []Use {
	s := b.of(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	today := now.Format(time.DateOnly)
	var list []Use
	for d, used := range s.days {
		u := Use{Limit: DollarsPerDay, Most: l.DollarsPerDay, Used: used, Tenant: t}
		if d.project != "" {
			u.Limit, u.Most, u.Project = DollarsPerProjectDay, l.DollarsPerProjectDay, d.project
		}
		if d.day == today && u.Most > 0 && u.Near() {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b Use) int {
		return cmp.Or(cmp.Compare(b.Used/b.Most, a.Used/a.Most), cmp.Compare(a.Project, b.Project))
	})
	return list[:min(len(list), maxNear)]
}

// Today returns what a tenant has spent today, in US dollars.
func (b *Book) Today(t furl.Tenant, now time.Time) float64 {
	s := b.of(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.days[dayOf{day: now.Format(time.DateOnly)}])
}

// Tenants returns the tenants that have sums.
func (b *Book) Tenants() []furl.Tenant {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]furl.Tenant, 0, len(b.tenants))
	for t := range b.tenants {
		list = append(list, t)
	}
	slices.Sort(list)
	return list
}

// Warn reports whether a use is to be logged: it is near its limit, and was not logged
// today.
func (b *Book) Warn(u Use, now time.Time) bool {
	if !u.Near() {
		return false
	}
	u.Used = 0
	s, today := b.of(u.Tenant), now.Format(time.DateOnly)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.warned[u] == today {
		return false
	}
	s.warned[u] = today
	return true
}
