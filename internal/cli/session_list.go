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

// parentsOf returns the session that started each sub-agent, if it is in the store. A
// sub-agent of a sub-agent is below the session that started both.
func parentsOf(all []storage.SessionInfo) map[furl.SessionID]furl.SessionID {
	byID := make(map[string]furl.SessionID, 2*len(all))
	for i := range all {
		if id := agents.OwnID(all[i].Hint, ""); id != "" {
			byID[id] = all[i].Session
		}
	}
	for i := range all {
		byID[string(all[i].Session)] = all[i].Session
	}
	parents := make(map[furl.SessionID]furl.SessionID)
	for i := range all {
		name := all[i].Parent
		if at := strings.LastIndexByte(all[i].Hint, '/'); name == "" && at > 0 {
			name = all[i].Hint[:at] // recorded by an earlier version
		}
		if parent, ok := byID[agents.OwnID(name, "")]; ok && name != "" && parent != all[i].Session {
			parents[all[i].Session] = parent
		}
	}
	top := make(map[furl.SessionID]furl.SessionID, len(parents))
	for id, parent := range parents {
		for range len(parents) { // a bound, in case they form a cycle
			next, ok := parents[parent]
			if !ok {
				top[id] = parent
				break
			}
			parent = next
		}
	}
	return top
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

// shortProjects returns what to call each project: the last elements of its path, as
// many as tell it from the others.
func shortProjects(infos []storage.SessionInfo) map[string]string {
	names := make(map[string]string)
	for i := range infos {
		names[infos[i].Project] = ""
	}
	delete(names, "")
	open := names
	for n := 1; len(open) > 0 && n < 64; n++ {
		called := make(map[string][]string)
		for project := range open {
			name := lastElements(project, n)
			called[name] = append(called[name], project)
		}
		open = make(map[string]string)
		for name, projects := range called {
			for _, project := range projects {
				names[project] = name
				if len(projects) > 1 || len(name) < 3 || name[0] == '.' { // such as .worktrees/3
					open[project] = ""
				}
			}
		}
	}
	return names
}

// lastElements returns the last n elements of a path.
func lastElements(path string, n int) string {
	elements := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	if len(elements) <= n {
		return path
	}
	return strings.Join(elements[len(elements)-n:], "/")
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
