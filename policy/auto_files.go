package policy

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/toolscript"
)

// status is how a call relates to the files of the session.
type status int

const (
	otherCall  status = iota
	superseded        // the same was read or written again since
	newestRead        // of a file
	unedited          // the newest read of a file, and no file was edited since
	planned           // the newest read of a file that the user named, not edited since
	workedOn          // the newest text of a file that the agent edits or keeps coming back to
	inEdit            // the same, and it was edited just now
)

// Ages in requests. A file is worked on if its newest edit is not older than
// editing, or if usedOften newer calls had to do with it, the newest of them not
// older than returning. Nothing older than horizon is looked at.
const (
	editing   = 30
	usedOften = 3
	returning = 20
	horizon   = 100
)

// files tells what the newest steps did to files. It is told of the steps from
// the newest back.
type files struct {
	dial   *dial
	state  *furl.State
	status map[string]status // of a call, by its id
	wrote  map[string]bool   // calls that write files, by their ids
	again  map[string]bool   // calls made in newer steps
	byName map[string]*file
	edits  int // newer calls that write files
}

// file is what newer steps did to a file. Ages are in requests.
type file struct {
	whole bool // it was read or written as a whole
	used  int  // the age of the newest call
	edit  int  // the age of the newest edit, -1 if there is none
	uses  int  // calls
}

func newFiles(s *furl.State, d *dial) *files {
	return &files{dial: d, state: s, status: make(map[string]status), wrote: make(map[string]bool), again: make(map[string]bool), byName: make(map[string]*file)}
}

// step takes note of a step's calls; age counts the newer requests.
func (f *files) step(u *furl.Unit, age int) {
	known := furl.Memo(f.state, newFileUses)
	for j := len(u.Blocks) - 1; j >= 0; j-- {
		if b := u.Blocks[j].Block; b.Kind == furl.KindCall {
			f.call(b, known.of(f.state, u.Blocks[j].Pos, b), age)
		}
	}
}

func (f *files) call(b *furl.Block, use *fileUse, age int) {
	key := b.Name + "\x00" + string(b.Args)
	f.status[b.ID] = f.statusOf(use, f.again[key])
	f.again[key] = true
	for _, name := range use.reads {
		f.note(name, age, use.readsAll)
	}
	for _, name := range use.writes {
		if x := f.note(name, age, use.writesAll); x.edit < 0 {
			x.edit = age
		}
	}
	if len(use.writes) > 0 {
		f.wrote[b.ID] = true
		f.edits++
	}
}

// note notes that a call had to do with a file.
func (f *files) note(name string, age int, whole bool) *file {
	x := f.byName[name]
	if x == nil {
		x = &file{used: age, edit: -1}
		f.byName[name] = x
	}
	x.whole = x.whole || whole
	x.uses++
	return x
}

// statusOf gives the status of a call by what newer calls did.
func (f *files) statusOf(use *fileUse, again bool) status {
	names, writes := use.reads, len(use.reads) == 0
	if writes {
		names = use.writes
	}
	switch {
	case again:
		return superseded
	case len(names) == 0:
		return otherCall
	}
	best := superseded
	for _, name := range names {
		best = max(best, f.statusOfFile(name, writes))
	}
	return best
}

func (f *files) statusOfFile(name string, written bool) status {
	x := f.byName[name]
	switch {
	case x != nil && x.whole:
		return superseded
	case x != nil && x.edit >= 0 && x.edit <= f.dial.justEdited:
		return inEdit
	case x != nil && (x.edit >= 0 && x.edit < editing || x.uses >= usedOften && x.used < returning || written && x.used < editing):
		return workedOn
	case written:
		return newestRead
	case (x == nil || x.edit < 0) && furl.Memo(f.state, newNamed).has(f.state, f.state.Len(), name):
		return planned
	case f.edits == 0:
		return unedited
	}
	return newestRead
}

// fileUse is what a call does to files, as far as its name and arguments tell.
type fileUse struct {
	reads, writes       []string
	readsAll, writesAll bool // and not parts of them
}

// fileUses are what the calls of a path do to files, each found once.
type fileUses struct {
	byPos map[furl.Pos]*fileUse
	// original has those of the first shared messages, which are of the path that a
	// draft continues.
	original *fileUses
	shared   int
}

func newFileUses(original *fileUses, shared int) *fileUses {
	return &fileUses{byPos: make(map[furl.Pos]*fileUse), original: original, shared: shared}
}

// of is useOf for a call at a position of the path.
func (f *fileUses) of(s *furl.State, p furl.Pos, call *furl.Block) *fileUse {
	if f.original != nil {
		if i, ok := s.Find(p.Msg); ok && i < f.shared {
			return f.original.of(s, p, call)
		}
	}
	use := f.byPos[p]
	if use == nil {
		found := useOf(call)
		use = &found
		f.byPos[p] = use
	}
	return use
}

// useOf is what a call does to files, or what the calls in its script do together.
func useOf(b *furl.Block) fileUse {
	calls := toolscript.Calls(b)
	if len(calls) == 1 {
		return useBy(calls[0])
	}
	all := fileUse{readsAll: true, writesAll: true}
	for _, c := range calls {
		use := useBy(c)
		all.reads = append(all.reads, use.reads...)
		all.writes = append(all.writes, use.writes...)
		all.readsAll = all.readsAll && (use.readsAll || len(use.reads) == 0)
		all.writesAll = all.writesAll && (use.writesAll || len(use.writes) == 0)
	}
	return all
}

func useBy(b *furl.Block) fileUse {
	args, _ := arguments(b.Args)
	if files := writtenBy(b); len(files) > 0 {
		name := strings.ToLower(b.Name)
		return fileUse{writes: files, writesAll: strings.Contains(name, "write") || strings.Contains(name, "create")}
	}
	for _, key := range [...]string{"command", "cmd", "script"} {
		if command := plain(args[key]); command != "" && command != "view" {
			use := shellUse(command)
			use.reads = withFolder(use.reads, plain(args["workdir"]))
			return use
		}
	}
	if !readsFiles(b.Name, args) {
		return fileUse{}
	}
	use := fileUse{readsAll: true}
	if file := fileOf(args); file != "" {
		use.reads = []string{file}
	}
	for _, key := range rangeKeys {
		if _, ok := args[key]; ok {
			use.readsAll = false
		}
	}
	return use
}

// withFolder adds the whole paths of files that a command names from its folder. Codex
// names files so in commands, and by whole paths in patches.
func withFolder(files []string, folder string) []string {
	if !strings.HasPrefix(folder, "/") {
		return files
	}
	for _, name := range slices.Clip(files) {
		if !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "~") {
			files = append(files, path.Join(folder, name))
		}
	}
	return files
}

// rangeKeys are arguments by which tools read a part of a file.
var rangeKeys = [...]string{"offset", "limit", "view_range", "start_line", "end_line", "line_start", "line_end", "pages"}

func readsFiles(tool string, args map[string]json.RawMessage) bool {
	tool = strings.ToLower(tool)
	for _, word := range [...]string{"read", "view", "open", "cat"} {
		if strings.Contains(tool, word) {
			return true
		}
	}
	return plain(args["command"]) == "view"
}

// maxCommand is the longest shell command that is looked at, in bytes.
const maxCommand = 4096

// shellUse finds the files that a shell command prints. It knows the commands
// that agents read files with, and nothing of a shell's grammar beyond what
// parts one command from the next.
func shellUse(command string) fileUse {
	use := fileUse{readsAll: true}
	if len(command) > maxCommand {
		return use
	}
	for part := range strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune(";&|\n", r) }) {
		words := strings.Fields(part)
		for len(words) > 0 && (words[0] == "bash" || words[0] == "sh" || words[0] == "-c" || words[0] == "-lc") {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		switch unquoted(words[0]) {
		case "cat", "bat":
		case "sed", "head", "tail", "nl", "awk":
			use.readsAll = false
		default:
			continue
		}
		for _, word := range words[1:] {
			if word = unquoted(word); looksLikeFile(word) {
				use.reads = append(use.reads, word)
			}
		}
	}
	return use
}

func unquoted(word string) string { return strings.Trim(word, `'"`) }

func looksLikeFile(word string) bool {
	return strings.ContainsAny(word, "./") && !strings.ContainsAny(word, "*{}$,<>"+toolscript.Hole) && !strings.HasPrefix(word, "-")
}
