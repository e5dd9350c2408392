package session

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
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

// Listed is a session in a list, for JSON.
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

// ListedOf converts a store's description of a session to Listed. Agents have one
// name, also in stores of earlier versions.
func ListedOf(i storage.SessionInfo) Listed {
	i.Client = agents.Name(i.Client)
	return Listed{i.Session, i.Meta, i.Created, i.Updated, i.Newest(), i.Records, i.Messages, i.Bytes}
}
