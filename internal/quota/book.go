package quota

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Key identifies an account: the tenant, the provider, and a fingerprint of the
// credential. Keys have no credential.
type Key struct {
	Tenant   furl.Tenant `json:"tenant,omitempty"`
	Provider string      `json:"provider"`
	Account  string      `json:"account"`
}

// Account is the newest snapshot of an account.
type Account struct {
	Key
	Snapshot
	// Forecasts are those of the windows, by their names, where one can be made.
	Forecasts map[string]Forecast `json:"forecasts,omitempty"`
}

// Forecast says when a limit is reached if the account is used as it was since the window
// began.
type Forecast struct {
	Reached     time.Time `json:"reached"`
	BeforeReset bool      `json:"before_reset"`
}

// minElapsed is the share of a window that must have passed before a forecast.
const minElapsed = 0.05

// ForecastOf returns the forecast of a window. ok is false if the length or the reset of the
// window is unknown, too little of it has passed, or nothing is used.
func ForecastOf(w *Window, now time.Time) (f Forecast, ok bool) {
	left, length := w.Resets.Sub(now), time.Duration(w.Minutes)*time.Minute
	passed := length - left
	if w.Minutes == 0 || w.Resets.IsZero() || left <= 0 || w.Used <= 0 || float64(passed) < minElapsed*float64(length) {
		return f, false
	}
	more := time.Duration(math.Min(float64(passed)*max(0, 1-w.Used)/w.Used, float64(365*24*time.Hour)))
	f = Forecast{Reached: now.Add(more).Round(time.Minute), BeforeReset: more < left}
	return f, true
}

// Words describe a window: "5h limit 42% used, resets 15:00, at this rate reached at 14:10".
func Words(w *Window, now time.Time) string {
	words := fmt.Sprintf("%s limit %.0f%% used", w.Name, 100*w.Used)
	if w.Share > 0 {
		words += fmt.Sprintf(" (%.0f%% by this session)", 100*w.Share)
	}
	if w.Resets.IsZero() {
		return words
	}
	words += ", resets " + clock(w.Resets, now)
	switch f, ok := ForecastOf(w, now); {
	case w.Used >= 1:
		words += ", reached"
	case ok && f.BeforeReset:
		words += ", at this rate reached at " + clock(f.Reached, now)
	case ok:
		words += ", at this rate not reached before"
	}
	return words
}

// clock formats a time in the zone of now, with the day if it is not the same.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("Jan 2 15:04")
}

// Book has the accounts. The zero value is ready. It is safe for concurrent use.
type Book struct {
	mu       sync.Mutex
	accounts map[Key]*account
	sessions map[furl.SessionKey]Key // the account of the newest request
}

type account struct {
	Snapshot
	uses map[string]*use // by window
}

// use attributes the use of a window.
type use struct {
	used    float64
	resets  time.Time
	pending map[furl.SessionKey]float64 // weights of the requests since the last response
	waiting int                         // their number
	shares  map[furl.SessionKey]*share
}

// share is what a session has used of a window: storage.PlanWindow.Share and Request.
type share struct {
	used    float64
	request *float64
}

// Bounds of the book. The oldest are forgotten.
const (
	maxAccounts = 1024
	maxSessions = 4096
	// sameReset is by how much the time of a reset may differ between responses.
	sameReset = 2 * time.Minute
)

// Seen adds what a response says. The change since the previous response is what the
// requests between them have used.
func (b *Book) Seen(k Key, s *Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[k]
	if a == nil {
		if b.accounts == nil {
			b.accounts, b.sessions = make(map[Key]*account), make(map[furl.SessionKey]Key)
		}
		if len(b.accounts) >= maxAccounts {
			b.forgetOldest()
		}
		a = &account{uses: make(map[string]*use)}
		b.accounts[k] = a
	}
	if s.At.Before(a.At) {
		return // of an earlier response
	}
	a.Snapshot = *s
	for i := range s.Windows {
		if w := &s.Windows[i]; w.Minutes > 0 { // rates of API keys refill all the time
			a.attribute(w)
		}
	}
}

func (b *Book) forgetOldest() {
	var oldest Key
	var when time.Time
	for k, a := range b.accounts {
		if when.IsZero() || a.At.Before(when) {
			oldest, when = k, a.At
		}
	}
	delete(b.accounts, oldest)
}

// attribute shares the change of a window among the requests since the last response, by
// their weights.
func (a *account) attribute(w *Window) {
	u := a.uses[w.Name]
	if u == nil || w.Resets.Sub(u.resets).Abs() > sameReset {
		a.uses[w.Name] = &use{used: w.Used, resets: w.Resets, pending: make(map[furl.SessionKey]float64), shares: make(map[furl.SessionKey]*share)}
		return
	}
	delta := max(0, w.Used-u.used)
	sum := 0.0
	for _, weight := range u.pending {
		sum += weight
	}
	if u.waiting > 0 && (delta > 0 || u.waiting == 1) {
		for key, weight := range u.pending {
			s := u.shares[key]
			if s == nil {
				if len(u.shares) >= maxSessions {
					clear(u.shares)
				}
				s = new(share)
				u.shares[key] = s
			}
			if sum > 0 {
				s.used += delta * weight / sum
			}
			if s.request = nil; u.waiting == 1 {
				s.request = &delta
			}
		}
	}
	if delta > 0 || u.waiting == 1 {
		clear(u.pending)
		u.waiting = 0
	}
	u.used = max(u.used, w.Used)
}

// Sent adds a request whose reply has ended. Requests share a change by their weights,
// such as their costs.
func (b *Book) Sent(k Key, session furl.SessionKey, weight float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[k]
	if a == nil {
		return
	}
	if len(b.sessions) >= maxSessions {
		clear(b.sessions)
	}
	b.sessions[session] = k
	for _, u := range a.uses {
		if len(u.pending) < maxSessions {
			u.pending[session] += max(weight, 1e-9)
			u.waiting++
		}
	}
}

// Accounts returns the accounts of a tenant, or of all if t is nil, the newest first.
func (b *Book) Accounts(t *furl.Tenant, now time.Time) []Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []Account{}
	for k, a := range b.accounts {
		if t == nil || k.Tenant == *t {
			list = append(list, a.describe(k, now))
		}
	}
	slices.SortFunc(list, func(a, b Account) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Account, b.Account)) })
	return list
}

func (a *account) describe(k Key, now time.Time) Account {
	out := Account{Key: k, Snapshot: a.Snapshot}
	for i := range a.Windows {
		if f, ok := ForecastOf(&a.Windows[i], now); ok {
			if out.Forecasts == nil {
				out.Forecasts = make(map[string]Forecast)
			}
			out.Forecasts[a.Windows[i].Name] = f
		}
	}
	return out
}

// Session returns what is known of the plan of a session, with its shares, nil if that is
// nothing.
func (b *Book) Session(session furl.SessionKey) *storage.Plan {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[b.sessions[session]]
	if a == nil {
		return nil
	}
	p := &storage.Plan{At: a.At.UTC().Truncate(time.Second), Status: a.Status, Windows: slices.Clone(a.Windows)}
	p.Windows = slices.DeleteFunc(p.Windows, func(w Window) bool { return w.Minutes == 0 })
	for i := range p.Windows {
		w := &p.Windows[i]
		if u := a.uses[w.Name]; u != nil && u.shares[session] != nil {
			w.Share, w.Request = u.shares[session].used, u.shares[session].request
		}
	}
	if len(p.Windows) == 0 {
		return nil
	}
	return p
}

// Changed reports whether a plan says something else than another, apart from the time.
func Changed(a, b *storage.Plan) bool {
	if a == nil || b == nil {
		return a != b
	}
	return a.Status != b.Status || !slices.EqualFunc(a.Windows, b.Windows, func(v, w Window) bool {
		return v.Name == w.Name && v.Used == w.Used && v.Share == w.Share && v.Resets.Sub(w.Resets).Abs() <= sameReset
	})
}
