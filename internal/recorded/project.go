package recorded

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/agents"
	"github.com/furlhq/furl/storage"
)

// ProjectFilter returns a function that reports whether a project is the wanted one: a
// folder or below it, or any folder of that name. Without a wanted project, all are.
func ProjectFilter(want string) (func(project string) bool, error) {
	if want == "" {
		return func(string) bool { return true }, nil
	}
	if !strings.ContainsAny(want, `/\`) && want != "." && want != ".." {
		return func(project string) bool {
			return slices.Contains(strings.FieldsFunc(project, func(r rune) bool { return r == '/' || r == '\\' }), want)
		}, nil
	}
	want, err := FolderNamed(want)
	if err != nil {
		return nil, err
	}
	want = strings.TrimRight(want, `/\`)
	return func(project string) bool {
		rest, ok := strings.CutPrefix(cmp.Or(agents.Folder(project), project), want)
		return ok && (rest == "" || rest[0] == '/' || rest[0] == '\\')
	}, nil
}

// FolderNamed returns the absolute path of a folder that a person names. It may be one of
// another machine.
func FolderNamed(name string) (string, error) {
	if folder := agents.Folder(name); folder != "" {
		return folder, nil
	}
	return filepath.Abs(name)
}

// projectID is what the projects of two machines have in common: the name of the folder, and the
// beginning of the first message of a session in it.
type projectID struct{ name, title string }

func projectIDOf(folder, title string) projectID {
	name := strings.ToLower(folder[strings.LastIndexAny(folder, `/\`)+1:])
	return projectID{name, title}
}

// noteProject notes the project of a session of the store.
func (im *Importer) noteProject(m *storage.Meta) {
	if m.Project == "" || m.Title == "" || !isFolder(m.Project) {
		return
	}
	if im.projects == nil {
		im.projects = make(map[projectID]string)
	}
	id := projectIDOf(m.Project, m.Title)
	if known, ok := im.projects[id]; ok && known != m.Project {
		im.projects[id] = ""
		return
	}
	im.projects[id] = m.Project
}

// projectHere returns the folder of this machine that a session of another one belongs to: that of a
// session in the store with the same first message, in a folder of the same name. Without
// one it returns the folder as recorded.
func (im *Importer) projectHere(folder, title string) string {
	if folder == "" || title == "" || isFolder(folder) {
		return folder
	}
	return cmp.Or(im.projects[projectIDOf(folder, title)], folder)
}

func isFolder(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}
