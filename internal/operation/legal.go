package operation

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// LegalInput is the input of hold. Call.Key has the tenant.
type LegalInput struct {
	Tenant string `json:"tenant,omitempty" flag:"tenant" help:"'name' of the tenant: without a session, all its sessions, also later ones"`
	Reason string `json:"reason" flag:"reason" help:"'why' the sessions are kept"`
	preview
}

// ReleaseInput is the input of release.
type ReleaseInput struct {
	Hold string `json:"hold" arg:"HOLD" help:"id of a hold"`
	preview
}

// legalHold is a hold for programs, without its session.
type legalHold struct {
	ID      string    `json:"id"`
	Tenant  string    `json:"tenant"` // as a word, such as local
	Reason  string    `json:"reason"`
	By      string    `json:"by,omitempty"`
	Created time.Time `json:"created"`
}

func legalHoldOf(h *storage.Hold) legalHold {
	return legalHold{h.ID, cmp.Or(string(h.Tenant), "local"), h.Reason, h.By, h.Created}
}

// HeldWords say what a hold keeps.
func HeldWords(h *storage.Hold) string {
	switch {
	case h.Session == "":
		return "all sessions of tenant " + cmp.Or(string(h.Tenant), "local")
	case h.Tenant == "":
		return "session " + string(h.Session)
	}
	return fmt.Sprintf("session %s of tenant %s", h.Session, h.Tenant)
}

// maxReason is the length of the longest reason of a hold, in bytes.
const maxReason = 500

// onlyOperators is why only commands hold and release sessions.
func onlyOperators() map[Surface]string {
	why := "holds bind those who may change sessions; only who has the store sets and releases them"
	return map[Surface]string{API: why, Chat: why, Page: why, Model: why}
}

var hold = define(Operation{
	Name: "hold", Short: "Keep sessions from being deleted (legal hold)", Audit: Hold,
	Long: `Puts a session, or all sessions of a tenant, under legal hold. Until the hold is released,
neither furl delete nor retention nor the page deletes them. Holds are in the store, so
all processes that use it keep them.`,
	Missing: onlyOperators(),
}, func(c *Call, in *LegalInput) (*Result, error) {
	key, reason := c.SessionKey(), strings.TrimSpace(in.Reason)
	if reason == "" || len(reason) > maxReason {
		return nil, invalid(fmt.Sprintf("reason is required, with at most %d bytes: it is shown to whoever tries to delete", maxReason))
	}
	h := storage.Hold{ID: "h-" + strings.ToLower(rand.Text()[:8]), Tenant: key.Tenant, Session: key.Session, Reason: reason, By: c.By, Created: time.Now().UTC().Truncate(time.Second)}
	r := &Result{Title: "Hold " + HeldWords(&h), Did: h.ID + " holds " + HeldWords(&h), Value: legalHoldOf(&h)}
	if c.Preview {
		r.Effects = []string{"Nothing deletes or redacts what is held, until the hold is released."}
		return r, nil
	}
	r.Undo = &Undo{"release", &ReleaseInput{Hold: h.ID}}
	err := storage.ChangeHolds(c, c.Sessions.Store(), func(holds []storage.Hold) ([]storage.Hold, error) { return append(holds, h), nil })
	if err != nil {
		return nil, fmt.Errorf("hold: %w", err)
	}
	return r, nil
})

var release = define(Operation{
	Name: "release", Command: "hold release", NoSession: true, Short: "Release a legal hold", Audit: Release,
	Long:    "Releases a legal hold. What it has kept can be deleted and redacted again.",
	Missing: onlyOperators(),
}, func(c *Call, in *ReleaseInput) (*Result, error) {
	var was storage.Hold
	find := func(holds []storage.Hold) ([]storage.Hold, error) {
		i := slices.IndexFunc(holds, func(h storage.Hold) bool { return h.ID == in.Hold })
		if i < 0 {
			return nil, invalid(fmt.Sprintf("unknown hold %q: furl hold list lists them", in.Hold))
		}
		was = holds[i]
		return slices.Delete(holds, i, i+1), nil
	}
	var err error
	if c.Preview {
		var holds []storage.Hold
		if holds, err = storage.Holds(c, c.Sessions.Store()); err == nil {
			_, err = find(holds)
		}
	} else {
		err = storage.ChangeHolds(c, c.Sessions.Store(), find)
	}
	if err != nil {
		return nil, err
	}
	c.Key = furl.SessionKey{Tenant: was.Tenant, Session: was.Session}
	again := &LegalInput{Reason: was.Reason}
	if was.Session == "" || was.Tenant != "" {
		again.Tenant = cmp.Or(string(was.Tenant), "local")
	}
	what := was.ID + ": " + HeldWords(&was)
	return &Result{Title: "Release " + what, Did: "Released " + what, Value: legalHoldOf(&was), Undo: &Undo{"hold", again}}, nil
})
