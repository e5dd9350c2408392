package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/furlhq/furl"
)

// Hold is a legal hold: while it exists, the sessions that it covers are not deleted.
type Hold struct {
	ID     string      `json:"id"`
	Tenant furl.Tenant `json:"tenant"`
	// Session is the held session, "" for all of the tenant.
	Session furl.SessionID `json:"session,omitempty"`
	Reason  string         `json:"reason"`
	By      string         `json:"by,omitempty"`
	Created time.Time      `json:"created"`
}

// Covers reports whether the hold keeps a session.
func (h *Hold) Covers(key furl.SessionKey) bool {
	return h.Tenant == key.Tenant && (h.Session == "" || h.Session == key.Session)
}

// HeldError is the error for deleting or redacting a session that a hold keeps, or all of
// a tenant if Session.Session is "".
type HeldError struct {
	Session furl.SessionKey
	Hold    Hold
}

func (e *HeldError) Error() string {
	what := fmt.Sprintf("session %s", e.Session.Session)
	if e.Session.Session == "" {
		what = fmt.Sprintf("tenant %s", cmp.Or(e.Session.Tenant, "local"))
	}
	return fmt.Sprintf("%s is under legal hold %s (%s): it cannot be deleted or redacted until furl hold release %[2]s", what, e.Hold.ID, e.Hold.Reason)
}

// The holds of a store are the metadata of one session of a tenant that has no others and
// that no client can have. So every store has them, and all processes see the same.
const (
	// HoldTenant is the tenant of the session with the holds. It is not one of users.
	HoldTenant  furl.Tenant    = ".furl"
	holdSession furl.SessionID = "holds"
)

// MaxHolds is the largest number of holds in a store.
const MaxHolds = 10_000

func holdInfo(ctx context.Context, s Store) (SessionInfo, error) {
	for info, err := range s.Sessions(ctx, HoldTenant, SessionQuery{Limit: 1}) {
		return info, err
	}
	return SessionInfo{}, nil
}

// Holds returns the holds of a store, oldest first.
func Holds(ctx context.Context, s Store) ([]Hold, error) {
	info, err := holdInfo(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("read legal holds: %w", err)
	}
	return info.Holds, nil
}

// CheckHeld returns a *HeldError if a hold of the store keeps a session.
func CheckHeld(ctx context.Context, s Store, key furl.SessionKey) error {
	holds, err := Holds(ctx, s)
	if err != nil {
		return err
	}
	if h := HoldOf(holds, key); h != nil {
		return &HeldError{key, *h}
	}
	return nil
}

// HoldOf returns the first of some holds that keeps a session, or nil.
func HoldOf(holds []Hold, key furl.SessionKey) *Hold {
	if i := slices.IndexFunc(holds, func(h Hold) bool { return h.Covers(key) }); i >= 0 {
		return &holds[i]
	}
	return nil
}

// ChangeHolds replaces the holds of a store by those that change returns. If another
// process has changed them at the same time, change is called again.
func ChangeHolds(ctx context.Context, s Store, change func([]Hold) ([]Hold, error)) error {
	key := furl.SessionKey{Tenant: HoldTenant, Session: holdSession}
	for {
		info, err := holdInfo(ctx, s)
		if err != nil {
			return fmt.Errorf("read legal holds: %w", err)
		}
		holds, err := change(slices.Clone(info.Holds))
		if err != nil {
			return err
		}
		if len(holds) > MaxHolds {
			return fmt.Errorf("%d legal holds: at most %d; hold whole tenants instead", len(holds), MaxHolds)
		}
		was := info.Meta
		is := Meta{Title: "legal holds", Holds: holds}
		b := Batch{Meta: &is, MetaWas: &was}
		if info.Records == 0 {
			b = Batch{Meta: &is, Records: []furl.Record{{Seq: 1, By: furl.Client, Body: &furl.Head{}}}}
		}
		if err = s.Append(ctx, key, b); !errors.Is(err, furl.ErrConflict) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
