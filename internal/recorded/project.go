package recorded

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/furlhq/furl/internal/agents"
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
