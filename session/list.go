package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// The states that a recorded reduction may be in.
const (
	Active  = "active"  // some of what it shows is in the view
	Covered = "covered" // others show something in its place
	Lifted  = "lifted"  // it was taken back
)

// Recorded is a reduction on the session's path.
type Recorded struct {
	policy.Reduced
	// State is Active, Covered or Lifted.
	State string     `json:"state"`
	Cost  furl.Cost  `json:"cost"`
	By    furl.Actor `json:"-"`
	// CoveredBy lists the reductions that show something in place of blocks
	// it covers.
	CoveredBy []furl.Seq `json:"covered_by,omitempty"`
	// Copy is the reduction on another branch that it takes over.
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
		red, lifted, _ := st.Reduction(r.Seq)
		rec := Recorded{Reduced: r, State: Covered, Cost: red.Cost, By: s.log.At(r.Seq).By, Copy: red.Copy}
		switch {
		case lifted:
			rec.State = Lifted
		case r.Shown:
			rec.State = Active
		}
		if !lifted {
			rec.CoveredBy = st.Covering(r.Seq)
		}
		list = append(list, rec)
	}
	return list
}

// Timeline gives what happened to the context along the path, as every reader
// sees it.
func (s *Session) Timeline() ([]furl.Moment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Timeline(s.log.Head(), s.model(s.meta.Model).Window)
}

// Listed is a session in a list, as JSON has it.
type Listed struct {
	furl.SessionID `json:"session"`
	furl.Meta
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Newest   time.Time `json:"newest"`
	Records  furl.Seq  `json:"records"`
	Messages int       `json:"messages"`
	Bytes    int64     `json:"bytes"`
}

// ListedOf is what a store tells of a session, as Listed.
func ListedOf(i furl.SessionInfo) Listed {
	return Listed{i.Session, i.Meta, i.Created, i.Updated, i.Newest(), i.Records, i.Messages, i.Bytes}
}

// Branch is a conversation that the session holds: the one it is at, or one
// that was left.
type Branch struct {
	// Head is the last record of the branch: rewinding to it switches there.
	Head furl.Seq `json:"head"`
	// From is the record where it leaves the current path.
	From furl.Seq `json:"from"`
	// Messages are how many it has behind From, Total from its root.
	Messages int       `json:"messages"`
	Total    int       `json:"total"`
	Updated  time.Time `json:"updated,omitzero"`
	Current  bool      `json:"current,omitempty"`
	// Words are the beginning of its last message, for people.
	Words string `json:"words,omitempty"`
}

// Branches lists the conversations that the session holds, the current one
// first and then the newest.
func (s *Session) Branches() []Branch {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.log.Len()
	parent := make([]bool, n+1) // something of the tree stands behind it
	messages := make([]int, n+1)
	onPath := make([]bool, n+1)
	for _, r := range s.log.Records(0) {
		if _, ok := r.Body.(*furl.Head); ok {
			continue
		}
		parent[r.Parent] = true
		messages[r.Seq] = messages[r.Parent]
		if _, ok := r.Body.(*furl.Message); ok {
			messages[r.Seq]++
		}
	}
	head := s.log.Head()
	onPath[0] = true
	for q := head; q != 0; q = s.log.At(q).Parent {
		onPath[q] = true
	}
	list := []Branch{{Head: head, From: head, Total: messages[head], Current: true}}
	for _, r := range s.log.Records(0) {
		_, isHead := r.Body.(*furl.Head)
		if isHead || parent[r.Seq] || r.Seq == head {
			continue
		}
		from := r.Seq
		for !onPath[from] {
			from = s.log.At(from).Parent
		}
		if messages[r.Seq] == messages[from] && !onPath[r.Seq] {
			continue // nothing was said there
		}
		list = append(list, Branch{Head: r.Seq, From: from, Messages: messages[r.Seq] - messages[from], Total: messages[r.Seq]})
	}
	for i := range list {
		list[i].Words, list[i].Updated = s.lastWords(list[i].Head)
	}
	slices.SortStableFunc(list[1:], func(a, b Branch) int { return cmp.Compare(b.Head, a.Head) })
	return list
}

// lastWords gives the beginning of the newest words at or before a record.
func (s *Session) lastWords(seq furl.Seq) (string, time.Time) {
	var at time.Time
	if seq != 0 {
		at = s.log.At(seq).At
	}
	for ; seq != 0; seq = s.log.At(seq).Parent {
		if m, ok := s.log.At(seq).Body.(*furl.Message); ok {
			if t := titleOf(m); t != "" {
				return t, at
			}
		}
	}
	return "", at
}
