package agents

import "strings"

// Family says which session started another one.
type Family struct {
	// ID is furl's id of the session, Hint the agent's own, and Parent the agent's id
	// of the session that started this one as a sub-agent, "" if none did.
	ID, Hint, Parent string
}

// Parents returns the session that started each sub-agent, by their ids, if it is in the
// list. A sub-agent of a sub-agent belongs to the session that started both.
func Parents(all []Family) map[string]string {
	byID := make(map[string]string, 2*len(all))
	for i := range all {
		if id := OwnID(all[i].Hint, ""); id != "" {
			byID[id] = all[i].ID
		}
	}
	for i := range all {
		byID[all[i].ID] = all[i].ID
	}
	parents := make(map[string]string)
	for i := range all {
		name := all[i].Parent
		if at := strings.LastIndexByte(all[i].Hint, '/'); name == "" && at > 0 {
			name = all[i].Hint[:at] // recorded by an earlier version
		}
		if parent, ok := byID[OwnID(name, "")]; ok && name != "" && parent != all[i].ID {
			parents[all[i].ID] = parent
		}
	}
	top := make(map[string]string, len(parents))
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

// ShortProjects returns a name for each project: the last elements of its path, as many
// as are needed to distinguish it from the others.
func ShortProjects(paths []string) map[string]string {
	names := make(map[string]string)
	for _, path := range paths {
		names[path] = ""
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
