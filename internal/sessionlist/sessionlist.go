// Package sessionlist arranges sessions for a list, with their sub-agents and short names.
package sessionlist

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/storage"
)

// List is the rows of a table of sessions.
type List struct {
	Rows []Row
	// Hidden is the number of sub-agents that are only counted.
	Hidden   int
	Short    map[furl.SessionID]string // what identifies each session
	Projects map[string]string         // what to call each project
}

// Row is one session of a list.
type Row struct {
	Info storage.SessionInfo
	// Depth is 0 for a session of its own, 1 for a sub-agent or a fork below its session, 2 for
	// one below that.
	Depth     int
	Fork      bool // it is listed below the session that it was forked from
	SubAgents int
}

// NewList makes the rows for the sessions found among all of a tenant, with all
// sub-agents of these sessions. With nest, sub-agents have rows below the session that
// started them; otherwise they are counted. Forks have rows below their original, which is
// where the first of them is found. limit, if not 0, is the largest number of sessions
// without all those.
func NewList(all, found []storage.SessionInfo, nest bool, limit int) *List {
	l := &List{Short: ShortIDs(all), Projects: shortProjects(found)}
	listed := make(map[furl.SessionID]bool, len(found))
	for i := range found {
		listed[found[i].Session] = true
	}
	parents := parentsOf(all)
	started := make(map[furl.SessionID]int)
	below := make(map[furl.SessionID][]storage.SessionInfo)
	for i := range all {
		if parent, ok := parents[all[i].Session]; ok {
			started[parent]++
			below[parent] = append(below[parent], all[i])
		}
	}
	forks, original := forksIn(found, parents)
	var add func(info storage.SessionInfo, depth int, fork bool)
	add = func(info storage.SessionInfo, depth int, fork bool) {
		l.Rows = append(l.Rows, Row{info, depth, fork, started[info.Session]})
		if !nest {
			l.Hidden += len(below[info.Session])
		} else {
			for _, sub := range below[info.Session] {
				add(sub, depth+1, false)
			}
		}
		for _, f := range forks[info.Session] {
			add(f, depth+1, true)
		}
	}
	byID := make(map[furl.SessionID]storage.SessionInfo, len(found))
	for _, info := range found {
		byID[info.Session] = info
	}
	n, added := 0, make(map[furl.SessionID]bool)
	for _, info := range found {
		if parent, ok := parents[info.Session]; ok && listed[parent] {
			continue
		}
		for original[info.Session] != "" {
			info = byID[original[info.Session]]
		}
		if added[info.Session] {
			continue
		}
		added[info.Session] = true
		if n++; limit > 0 && n > limit {
			break
		}
		add(info, 0, false)
	}
	return l
}

// forksIn returns the forks of each session among those found, and the original of each fork. Sub-agents
// are not among them, nor forks in a circle.
func forksIn(found []storage.SessionInfo, parents map[furl.SessionID]furl.SessionID) (forks map[furl.SessionID][]storage.SessionInfo, original map[furl.SessionID]furl.SessionID) {
	forks, original = make(map[furl.SessionID][]storage.SessionInfo), make(map[furl.SessionID]furl.SessionID)
	own := make(map[furl.SessionID]bool, len(found))
	for i := range found {
		_, isSub := parents[found[i].Session]
		own[found[i].Session] = !isSub
	}
	for _, info := range found {
		if !own[info.Session] || !own[info.ForkOf] || info.ForkOf == info.Session {
			continue
		}
		top := info.ForkOf
		for original[top] != "" {
			top = original[top]
		}
		if top == info.Session {
			continue
		}
		original[info.Session] = info.ForkOf
		forks[info.ForkOf] = append(forks[info.ForkOf], info)
	}
	return forks, original
}

// parentsOf returns the session that started each sub-agent (agents.Parents).
func parentsOf(all []storage.SessionInfo) map[furl.SessionID]furl.SessionID {
	list := make([]agents.Family, len(all))
	for i := range all {
		list[i] = agents.Family{ID: string(all[i].Session), Hint: all[i].Hint, Parent: all[i].Parent}
	}
	parents := make(map[furl.SessionID]furl.SessionID)
	for id, parent := range agents.Parents(list) {
		parents[furl.SessionID(id)] = furl.SessionID(parent)
	}
	return parents
}

// shortProjects returns a name for each project (agents.ShortProjects).
func shortProjects(infos []storage.SessionInfo) map[string]string {
	paths := make([]string, len(infos))
	for i := range infos {
		paths[i] = infos[i].Project
	}
	return agents.ShortProjects(paths)
}
