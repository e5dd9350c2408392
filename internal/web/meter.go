package web

import (
	"cmp"
	"math"
	"net/http"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/nextinput"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// meter says how full the context is, and what furl has done (C8).
type meter struct {
	ID     furl.SessionID
	Usage  session.Usage
	Saved  storage.Savings
	Policy string
	// Trigger is the size in tokens at which the policy reduces, 0 if it is unknown.
	Trigger int
	// Warning says that the context is close to the trigger or the window, else "".
	Warning string
	// Reductions is the number of reductions in effect, Newest the last one.
	Reductions int
	Newest     furl.Seq
	NewestAt   time.Time
	// Next says what the input of the next message costs, "" if that is unknown or the
	// meter is of an earlier request. Expired says what an expired cache means for it.
	Next, Expired string
	// Left is in how many seconds the prompt cache expires, 0 if that is unknown.
	Left int
	// State is what the gateway says about the session.
	State []gateway.StateLine
}

// near is the share of the trigger from which the meter warns.
const near = 0.9

// meter returns the meter of a moment.
func (v *visit) meter(m *moment) *meter {
	out := &meter{ID: v.s.ID(), Usage: v.usage(m)}
	if v.State != nil {
		out.State = v.State(v.r.Context(), v.s)
	}
	if m.isNow() {
		next, err := v.s.NextInput(v.r.Context())
		if err != nil {
			v.p.log.Warn("page: price of the next message", "session", v.s.ID(), "error", err)
		}
		now := v.p.o.Now()
		out.Left = int(math.Round(nextinput.Left(next, now).Seconds()))
		out.Next, out.Expired = nextinput.Words(next, now), nextinput.Explain(next, now)
	}
	info := v.s.Info()
	if info.Ledger != nil {
		out.Saved = info.Ledger.Total()
	}
	for _, set := range v.s.Settings() {
		if set.Name == "policy" {
			out.Policy = set.Value
		}
	}
	for red := range m.state.Reductions() {
		if !red.Undone {
			out.Reductions++
			out.Newest, out.NewestAt = red.Seq, red.At
		}
	}
	if model := v.s.HistoryOptions().Model(m.name); model.Trigger > 0 && out.Usage.Limit > 0 {
		out.Trigger = model.Trigger
	}
	out.Warning = sizeWarning(out.Usage.Size, out.Trigger, out.Usage.Limit, m.isNow())
	return out
}

// sizeWarning says that a prompt is close to a size at which something happens, 0 if that is
// unknown. A prompt is not above the window before the provider has refused it, and one that
// was sent was accepted.
func sizeWarning(size, trigger, window int, now bool) string {
	limit := cmp.Or(trigger, window)
	switch {
	case limit == 0 || float64(size) < near*float64(limit):
		return ""
	case trigger > 0 && size > trigger:
		return "above " + thousands(trigger) + ", where furl reduces"
	case trigger > 0:
		return "close to " + thousands(trigger) + ", where furl reduces"
	case size <= window:
		return "close to the limit"
	case now:
		return "the provider may refuse the next request"
	}
	return ""
}

// Lost is by how much more the requests have cost than without furl, in US dollars.
func (m *meter) Lost() float64 { return -m.Saved.Saved() }

// showMeter shows the meter alone.
func (p *Page) showMeter(v *visit) error {
	return v.atMoment(func(m *moment) error {
		v.render(http.StatusOK, "meterpart", v.meter(m))
		return nil
	})
}
