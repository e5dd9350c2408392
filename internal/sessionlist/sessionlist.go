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
	Info      storage.SessionInfo
	Nested    bool // a sub-agent below its session
	SubAgents int
}

// NewList makes the rows for the sessions found among all of a tenant, with all
// sub-agents of these sessions. With nest, sub-agents have rows below the session that
// started them; otherwise they are counted. limit, if not 0, is the largest number of
// sessions without those.
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
	var add func(info storage.SessionInfo, nested bool)
	add = func(info storage.SessionInfo, nested bool) {
		l.Rows = append(l.Rows, Row{info, nested, started[info.Session]})
		if !nest {
			l.Hidden += len(below[info.Session])
			return
		}
		for _, sub := range below[info.Session] {
			add(sub, true)
		}
	}
	n := 0
	for _, info := range found {
		if parent, ok := parents[info.Session]; ok && listed[parent] {
			continue
		}
		if n++; limit > 0 && n > limit {
			break
		}
		add(info, false)
	}
	return l
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
