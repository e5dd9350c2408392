package policy

import (
	"encoding/json"
	"strings"

	"github.com/furlhq/furl"
)

// How a call's result relates to the files of the session.
const (
	otherResult = iota
	superseded  // the same was read again, or written, since
	newestRead  // of a file
	activeRead  // the same, and a recent call had to do with the file
)

// recentResults is how many of the newest results make a file active.
const recentResults = 8

// files tells what the newest steps did to files. It is told of the steps from
// the newest back.
type files struct {
	status map[string]int  // of a result, by the id of its call
	whole  map[string]bool // files read or written as a whole in newer steps
	again  map[string]bool // calls made in newer steps
	active map[string]bool // files that recent calls had to do with
}

func newFiles() *files {
	return &files{make(map[string]int), make(map[string]bool), make(map[string]bool), make(map[string]bool)}
}

// step takes note of a step's calls; newer counts the results in newer steps.
func (f *files) step(u *furl.Unit, newer int) {
	for j := len(u.Blocks) - 1; j >= 0; j-- {
		if b := u.Blocks[j].Block; b.Kind == furl.KindCall {
			f.call(b, newer)
		}
	}
}

func (f *files) call(b *furl.Block, newer int) {
	use := useOf(b)
	key := b.Name + "\x00" + string(b.Args)
	f.status[b.ID] = f.statusOf(&use, f.again[key])
	f.again[key] = true
	for _, file := range use.reads {
		if use.readsAll {
			f.whole[file] = true
		}
		if newer < recentResults {
			f.active[file] = true
		}
	}
	for _, file := range use.writes {
		if use.writesAll {
			f.whole[file] = true
		}
		if newer < recentResults {
			f.active[file] = true
		}
	}
}

func (f *files) statusOf(use *fileUse, again bool) int {
	if again {
		return superseded
	}
	if len(use.reads) == 0 {
		return otherResult
	}
	status := superseded
	for _, file := range use.reads {
		switch {
		case f.active[file] && !f.whole[file]:
			return activeRead
		case !f.whole[file]:
			status = newestRead
		}
	}
	return status
}

// fileUse is what a call does to files, as far as its name and arguments tell.
type fileUse struct {
	reads, writes       []string
	readsAll, writesAll bool // and not parts of them
}

func useOf(b *furl.Block) fileUse {
	args, _ := arguments(b.Args)
	if files := written(b); len(files) > 0 {
		name := strings.ToLower(b.Name)
		return fileUse{writes: files, writesAll: strings.Contains(name, "write") || strings.Contains(name, "create")}
	}
	for _, key := range [...]string{"command", "cmd", "script"} {
		if command := plain(args[key]); command != "" && command != "view" {
			return shellUse(command)
		}
	}
	if !readsFiles(b.Name, args) {
		return fileUse{}
	}
	use := fileUse{readsAll: true}
	for _, key := range pathKeys {
		if file := firstLine(plain(args[key])); file != "" {
			use.reads = []string{file}
			break
		}
	}
	for _, key := range rangeKeys {
		if _, ok := args[key]; ok {
			use.readsAll = false
		}
	}
	return use
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
	return strings.ContainsAny(word, "./") && !strings.ContainsAny(word, "*{}$,<>") && !strings.HasPrefix(word, "-")
}
