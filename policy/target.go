package policy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/internal/toolscript"
)

// pathKeys are the arguments in which tools name a file, and targetKeys those in
// which they name other targets, the most specific first. searchKeys are shown
// together with the file.
var (
	pathKeys   = []string{"file_path", "filePath", "path", "filename", "file", "target_file", "absolute_path", "notebook_path"}
	searchKeys = []string{"pattern", "query", "regex"}
	targetKeys = []string{"command", "cmd", "url", "uri", "description", "prompt", "name"}
)

// target is what a call acts on: what it searches for and where, or a command. If
// no argument has a known name, it is the first line of its first text.
func target(b *furl.Block) string { return cut(wholeTarget(b), maxTarget) }

// wholeTarget is target, and longer if it consists of several parts. Of a script it
// is what its calls act on.
func wholeTarget(b *furl.Block) string {
	calls := toolscript.Calls(b)
	if calls[0] == b {
		return targetOf(b)
	}
	var parts []string
	for _, c := range calls {
		part := strings.TrimSpace(c.Name + " " + targetOf(c))
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
		if len(parts) == maxTargets {
			break
		}
	}
	return strings.Join(parts, ", ")
}

// maxTargets is how many calls of a script are named.
const maxTargets = 8

func targetOf(b *furl.Block) string {
	args, text := arguments(b.Args)
	if args == nil {
		if files := patched(text); len(files) > 0 {
			return cut(strings.Join(files, ", "), maxTarget)
		}
		return firstLine(text)
	}
	what, where := firstOf(args, searchKeys), cut(fileOf(args), maxTarget)
	switch {
	case what != "" && where != "":
		return what + " in " + where
	case what+where != "":
		return what + where
	}
	if s := firstOf(args, targetKeys); s != "" {
		return s
	}
	return firstLine(firstText(b.Args))
}

// firstOf is the first line of the first of some arguments.
func firstOf(args map[string]json.RawMessage, keys []string) string {
	for _, key := range keys {
		if s := firstLine(plain(args[key])); s != "" {
			return s
		}
	}
	return ""
}

// PathOf is the file that the arguments of a call name, "" if there is none.
func PathOf(call *furl.Block) string {
	args, _ := arguments(call.Args)
	return fileOf(args)
}

// fileOf is the whole path of the file that arguments name: two long paths that begin
// alike are two files.
func fileOf(args map[string]json.RawMessage) string {
	for _, key := range pathKeys {
		if s := wholeLine(plain(args[key])); s != "" {
			return s
		}
	}
	return ""
}

// Written lists the files that a call writes, judged by its name and arguments, or by
// those of the calls in its script.
func Written(b *furl.Block) []string {
	var files []string
	for _, c := range toolscript.Calls(b) {
		files = append(files, writtenBy(c)...)
	}
	return files
}

func writtenBy(b *furl.Block) []string {
	if !writes(b.Name) && !bytes.Contains(b.Args, []byte("*** ")) {
		return nil
	}
	args, text := arguments(b.Args)
	for _, key := range [...]string{"input", "patch"} { // where patch tools have it
		if text == "" {
			text = plain(args[key])
		}
	}
	if files := patched(text); len(files) > 0 {
		return files
	}
	if !writes(b.Name) || plain(args["command"]) == "view" {
		return nil
	}
	if s := fileOf(args); s != "" {
		return []string{s}
	}
	return nil
}

func writes(tool string) bool {
	tool = strings.ToLower(tool)
	for _, word := range [...]string{"write", "edit", "create", "patch", "replace", "insert", "save", "update"} {
		if strings.Contains(tool, word) {
			return true
		}
	}
	return false
}

// patched lists the files that a patch in OpenAI's format names.
func patched(text string) []string {
	var files []string
	if !strings.Contains(text, "*** ") {
		return nil
	}
	for l := range strings.Lines(text) {
		for _, head := range [...]string{"*** Add File: ", "*** Update File: ", "*** Delete File: "} {
			if name, ok := strings.CutPrefix(l, head); ok && !strings.Contains(name, toolscript.Hole) {
				files = append(files, wholeLine(name))
			}
		}
	}
	return files
}

// arguments decodes a call's arguments: an object, or one text.
func arguments(raw json.RawMessage) (map[string]json.RawMessage, string) {
	r := rawjson.NewReader(raw)
	if r.Kind() != '{' {
		return nil, plain(raw)
	}
	args := make(map[string]json.RawMessage)
	for key := range r.Fields() {
		args[string(key)] = r.Raw()
	}
	if r.End() != nil {
		return nil, ""
	}
	return args, ""
}

// plain is a JSON string, or the strings of a list joined by spaces.
func plain(raw json.RawMessage) string {
	r := rawjson.NewReader(raw)
	switch r.Kind() {
	case '"':
		if s, ok := r.String(); ok && r.End() == nil {
			return s
		}
	case '[':
		var list []string
		if json.Unmarshal(raw, &list) == nil {
			return strings.Join(list, " ")
		}
	}
	return ""
}

// firstText is the first string that is a value of the object itself, in the
// order of its fields.
func firstText(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	depth, key := 0, false
	for {
		tok, err := dec.Token()
		if err != nil {
			return ""
		}
		switch t := tok.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				depth++
			} else {
				depth--
			}
			key = depth == 1
		case string:
			if depth == 1 && !key {
				return t
			}
			key = !key && depth == 1
		default:
			key = depth == 1
		}
	}
}

// firstLine is the first line of a text that is not blank, as far as it is shown.
func firstLine(text string) string { return cut(wholeLine(text), maxTarget) }

// wholeLine is the first line of a text that is not blank.
func wholeLine(text string) string {
	for l := range strings.Lines(text) {
		if l = lexer.Fold(l); l != "" {
			return l
		}
	}
	return ""
}
