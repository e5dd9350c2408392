package storecmd

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/storage"
)

// sessionList is the rows of a table of sessions.
type sessionList struct {
	rows []sessionRow
	// hidden is the number of sub-agents that are only counted.
	hidden   int
	short    map[furl.SessionID]string // what identifies each session
	projects map[string]string         // what to call each project
}

type sessionRow struct {
	info      storage.SessionInfo
	nested    bool // a sub-agent below its session
	subAgents int
}

// newSessionList makes the rows for the sessions found among all of a tenant, with all
// sub-agents of these sessions. With nest, sub-agents have rows below the session that
// started them; otherwise they are counted. limit, if not 0, is the largest number of
// sessions without those.
func newSessionList(all, found []storage.SessionInfo, nest bool, limit int) *sessionList {
	l := &sessionList{short: cmdline.ShortIDs(all), projects: shortProjects(found)}
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
		l.rows = append(l.rows, sessionRow{info, nested, started[info.Session]})
		if !nest {
			l.hidden += len(below[info.Session])
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
