package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/storage"
)

// Problem is one problem in furl doctor --json.
type Problem struct {
	Session furl.SessionID `json:"session,omitempty"`
	Record  furl.Seq       `json:"record,omitempty"`
	Problem string         `json:"problem"`
	Derived bool           `json:"derived"`
	Mended  bool           `json:"mended"`
}

// Words says where the problem is, and what it is.
func (p Problem) Words() string {
	where := "store"
	if p.Session != "" {
		where = "session " + string(p.Session)
	}
	if p.Record != 0 {
		where += fmt.Sprintf(", record %d", p.Record)
	}
	end := ""
	switch {
	case p.Mended:
		end = " (mended)"
	case p.Derived:
		end = " (can be mended)"
	}
	return where + ": " + visible.Text(p.Problem) + end
}

// bare is the text of an error without the advice to run furl doctor.
func bare(err error) string {
	text := err.Error()
	if e := (interface {
		error
		Bare() string
	})(nil); errors.As(err, &e) {
		text = strings.Replace(text, e.Error(), e.Bare(), 1)
	}
	return text
}

// Store checks the database and then every session. It counts the sessions with each type
// that furl does not know.
func Store(ctx context.Context, w *workspace.Workspace, store storage.Store, mend bool, unknown map[string]int, say func(string)) func(func(Problem, error) bool) {
	return func(yield func(Problem, error) bool) {
		known := make(map[furl.SessionID]bool) // sessions with records that cannot be read
		if checker, ok := store.(storage.Checker); ok {
			say("checking the database")
			for p, err := range checker.Check(ctx, mend) {
				if errors.Is(err, furl.ErrDamaged) { // the rest may be undamaged
					if !yield(Problem{Problem: bare(err)}, nil) {
						return
					}
					break
				}
				known[p.Session.Session] = known[p.Session.Session] || p.Seq != 0
				if !yield(Problem{p.Session.Session, p.Seq, p.Text, p.Derived, p.Mended}, err) || err != nil {
					return
				}
			}
		}
		all, err := w.Sessions(store)
		if err != nil {
			yield(Problem{}, err)
			return
		}
		var infos []storage.SessionInfo
		for info, err := range store.Sessions(ctx, tenants.Local, storage.SessionQuery{}) {
			if errors.Is(err, furl.ErrDamaged) {
				if !yield(Problem{Problem: bare(err)}, nil) {
					return
				}
				break
			}
			if err != nil {
				yield(Problem{}, err)
				return
			}
			infos = append(infos, info)
		}
		for i, info := range infos {
			say(fmt.Sprintf("session %d of %d, %s", i+1, len(infos), info.Session))
			s, err := all.Open(ctx, info.Session)
			if ctx.Err() != nil {
				yield(Problem{}, ctx.Err())
				return
			}
			if err != nil {
				if known[info.Session] && errors.Is(err, furl.ErrDamaged) {
					continue // the store reported its records
				}
				if !yield(Problem{Session: info.Session, Problem: bare(err)}, nil) {
					return
				}
				continue
			}
			for _, typ := range s.UnknownTypes() {
				unknown[typ]++
			}
			problems, err := s.Check(ctx)
			if errors.Is(err, furl.ErrDamaged) {
				if !yield(Problem{Session: info.Session, Problem: bare(err)}, nil) {
					return
				}
				continue
			}
			if err != nil {
				yield(Problem{}, err)
				return
			}
			for _, p := range problems {
				if !yield(Problem{info.Session, p.Seq, p.Text, p.Derived, p.Mended}, nil) {
					return
				}
			}
			all.Drop()
		}
	}
}
