package cli

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/agents"
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
	l := &sessionList{short: shortIDs(all), projects: shortProjects(found)}
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

// shortID is the least length of a shortened session id.
const shortID = 8

// shortIDs returns the shortest beginning of each session's id by which commands find
// the session.
func shortIDs(all []storage.SessionInfo) map[furl.SessionID]string {
	type named struct {
		name string
		of   furl.SessionID
	}
	var list []named
	for i := range all {
		list = append(list, named{string(all[i].Session), all[i].Session})
		if own := agents.OwnID(all[i].Hint, ""); own != "" && own != string(all[i].Session) {
			list = append(list, named{own, all[i].Session})
		}
	}
	slices.SortFunc(list, func(a, b named) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(string(a.of), string(b.of)))
	})
	short := make(map[furl.SessionID]string, len(all))
	for i, n := range list {
		if n.name != string(n.of) {
			continue
		}
		size := shortID
		if strings.HasPrefix(n.name, "session-") || strings.HasPrefix(n.name, "session_") {
			size += len("session-")
		}
		for _, step := range []int{-1, 1} {
			j := i + step
			for j >= 0 && j < len(list) && list[j].of == n.of {
				j += step
			}
			if j >= 0 && j < len(list) {
				size = max(size, commonPrefix(n.name, list[j].name)+1)
			}
		}
		short[n.of] = n.name[:min(size, len(n.name))]
	}
	return short
}

// commonPrefix returns the length of the beginning that two strings share.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// shortProjects returns a name for each project (agents.ShortProjects).
func shortProjects(infos []storage.SessionInfo) map[string]string {
	paths := make([]string, len(infos))
	for i := range infos {
		paths[i] = infos[i].Project
	}
	return agents.ShortProjects(paths)
}

// projectFilter returns a function that reports whether a project is the wanted one: a
// folder or below it, or any folder of that name. Without a wanted project, all are.
func projectFilter(want string) (func(project string) bool, error) {
	if want == "" {
		return func(string) bool { return true }, nil
	}
	if !strings.ContainsAny(want, `/\`) && want != "." && want != ".." {
		return func(project string) bool {
			return slices.Contains(strings.FieldsFunc(project, func(r rune) bool { return r == '/' || r == '\\' }), want)
		}, nil
	}
	if agents.Folder(want) == "" {
		abs, err := filepath.Abs(want)
		if err != nil {
			return nil, err
		}
		want = abs
	}
	want = strings.TrimRight(want, `/\`)
	return func(project string) bool {
		rest, ok := strings.CutPrefix(project, want)
		return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
	}, nil
}
