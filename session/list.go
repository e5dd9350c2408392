package session

import (
	"container/heap"
	"context"
	"iter"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/storage"
)

// The states of a recorded reduction.
const (
	activeState  = "active"  // some of its replacements are in the view
	coveredState = "covered" // other reductions replace all that it covers
	liftedState  = "lifted"  // it was undone
)

// Recorded is a reduction on the session's path.
type Recorded struct {
	policy.Reduced
	// State is active, covered or lifted.
	State string     `json:"state"`
	Cost  furl.Cost  `json:"cost"`
	By    furl.Actor `json:"-"`
	// CoveredBy are the reductions that replace blocks covered by this one.
	CoveredBy []furl.Seq `json:"covered_by,omitempty"`
	// Copy is the reduction on another branch that this one repeats. Only sessions
	// recorded before furl.Takeover have such reductions.
	Copy furl.Seq `json:"copy_of,omitempty"`
}

// Reductions returns all reductions on the session's path in order, with their
// sizes, costs and states.
func (s *Session) Reductions() (list []Recorded) {
	s.Internal().Read(func(c *open.Change) { list = reductionsOf(c.Log()) })
	return list
}

func reductionsOf(log *furl.Log) (list []Recorded) {
	st := log.State()
	for _, r := range policy.Reductions(st) {
		red, _ := st.Reduction(r.Seq)
		rec := Recorded{Reduced: r, State: coveredState, Cost: red.Cost, By: log.At(r.Seq).By, Copy: red.Copy}
		switch {
		case r.Lifted:
			rec.State = liftedState
		case r.Shown:
			rec.State = activeState
		}
		if !r.Lifted {
			rec.CoveredBy = st.Covering(r.Seq)
		}
		list = append(list, rec)
	}
	return list
}

// List returns the sessions by their last activity (SessionInfo.Newest), newest first.
// For an imported session that is the time of its recording.
func (a *Sessions) List(ctx context.Context, q storage.SessionQuery) iter.Seq2[storage.SessionInfo, error] {
	return func(yield func(storage.SessionInfo, error) bool) {
		left := q.Limit // 0: no limit; then it is negative from the first session on
		q.Limit = 0
		var waiting byActivity
		n := 0
		next := func() bool {
			left--
			return yield(heap.Pop(&waiting).(listed).SessionInfo, nil) && left != 0
		}
		for info, err := range a.Store().Sessions(ctx, a.Tenant(), q) {
			if err != nil {
				yield(info, err)
				return
			}
			// The store orders by Updated, which is never before Newest.
			for len(waiting) > 0 && !info.Updated.After(waiting[0].Newest()) {
				if !next() {
					return
				}
			}
			heap.Push(&waiting, listed{info, n})
			n++
		}
		for len(waiting) > 0 && next() {
		}
	}
}

// listed is a session that List has read as number n.
type listed struct {
	storage.SessionInfo
	n int
}

// byActivity is a heap of sessions, the newest by Newest first; of equal ones, the one
// that was read first.
type byActivity []listed

func (h byActivity) Len() int      { return len(h) }
func (h byActivity) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h byActivity) Less(i, j int) bool {
	if c := h[i].Newest().Compare(h[j].Newest()); c != 0 {
		return c > 0
	}
	return h[i].n < h[j].n
}
func (h *byActivity) Push(x any) { *h = append(*h, x.(listed)) }
func (h *byActivity) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
