package policy

import (
	"strings"

	"github.com/furlhq/furl"
)

// named are the files that the words of the user on a path name, or plans and lists of tasks
// in it: what the agent is about to edit. By the last element of the file's path, it has the
// first message that names it.
type named struct {
	messages int // read so far
	first    map[string]int
	// original has those of the first shared messages, which are of the path that a
	// draft continues.
	original *named
	shared   int
}

func newNamed(original *named, shared int) *named {
	return &named{messages: shared, first: make(map[string]int), original: original, shared: shared}
}

// has reports whether one of the first n messages of the path names a file.
func (x *named) has(s *furl.State, n int, file string) bool {
	for ; x.messages < n; x.messages++ {
		_, m := s.Message(x.messages)
		for j := range m.Blocks {
			switch b := &m.Blocks[j]; {
			case m.Role == furl.RoleUser && b.Kind == furl.KindText:
				x.read(b.Text)
			case b.Kind == furl.KindCall && isPlan(b.Name):
				x.read(string(b.Args))
			}
		}
	}
	at, ok := x.first[lastElement(file)]
	return ok && at < n || x.original != nil && x.original.has(s, min(n, x.shared), file)
}

// isPlan reports whether a tool writes plans or lists of tasks.
func isPlan(tool string) bool {
	tool = strings.ToLower(tool)
	return strings.Contains(tool, "plan") || strings.Contains(tool, "todo")
}

// minNamed is the length of the shortest name of a file, and maxNamed how much of a text is
// looked at, in bytes.
const (
	minNamed = 4
	maxNamed = 200_000
)

// read notes the files that a text of the newest message names.
func (x *named) read(text string) {
	for word := range strings.FieldsFuncSeq(text[:min(len(text), maxNamed)], func(r rune) bool {
		return r < 0x80 && !strings.ContainsRune("._-/@+", r) && !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
	}) {
		word = strings.Trim(word, ".-/")
		if len(word) < minNamed || !strings.ContainsAny(word, "./") {
			continue
		}
		name := lastElement(word)
		if _, ok := x.first[name]; !ok {
			x.first[strings.Clone(name)] = x.messages
		}
	}
}
