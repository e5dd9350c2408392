package session

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/event"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/storage"
)

// The states that a recorded reduction may be in.
const (
	activeState  = "active"  // some of what it shows is in the view
	coveredState = "covered" // others show something in its place
	liftedState  = "lifted"  // it was taken back
)

// Recorded is a reduction on the session's path.
type Recorded struct {
	policy.Reduced
	// State is active, covered or lifted.
	State string     `json:"state"`
	Cost  furl.Cost  `json:"cost"`
	By    furl.Actor `json:"-"`
	// CoveredBy lists the reductions that show something in place of blocks
	// it covers.
	CoveredBy []furl.Seq `json:"covered_by,omitempty"`
	// Copy is the reduction on another branch that it repeats. Only sessions
	// recorded before furl.Takeover have such reductions.
	Copy furl.Seq `json:"copy_of,omitempty"`
}

// Reductions lists all reductions on the session's path in order, with their
// sizes, their costs and what became of them.
func (s *Session) Reductions() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.log.State()
	var list []Recorded
	for _, r := range policy.Reductions(st) {
		red, _ := st.Reduction(r.Seq)
		rec := Recorded{Reduced: r, State: coveredState, Cost: red.Cost, By: s.log.At(r.Seq).By, Copy: red.Copy}
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

// Timeline gives what happened to the context along the path, as every reader
// sees it.
func (s *Session) Timeline() ([]event.Moment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return event.Timeline(s.log, s.log.Head(), s.model(s.meta.Model).Window)
}

// Listed is a session in a list, as JSON has it.
type Listed struct {
	furl.SessionID `json:"session"`
	storage.Meta
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Newest   time.Time `json:"newest"`
	Records  furl.Seq  `json:"records"`
	Messages int       `json:"messages"`
	Bytes    int64     `json:"bytes"`
}

// ListedOf is what a store tells of a session, as Listed.
func ListedOf(i storage.SessionInfo) Listed {
	return Listed{i.Session, i.Meta, i.Created, i.Updated, i.Newest(), i.Records, i.Messages, i.Bytes}
}
