package fidelity

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
)

// Edit is a call that replaces text. Lines are the lines of the replaced text
// that are on the path, in results or in what the assistant wrote.
type Edit struct {
	Tool  string
	Lines []Line
}

// oldTextKeys are the arguments in which editing tools expect the text to
// replace: Claude Code's Edit, opencode's edit, the text editor tool of
// Anthropic, pi's edit, Gemini CLI's replace.
var oldTextKeys = []string{"old_string", "oldString", "old_str", "oldText", "old_text"}

// Replaced returns the texts that a call replaces, in order: arguments such as
// old_string, at any depth, and the old lines of patches in the format of
// Codex's apply_patch. It returns nil if the call is no edit.
func Replaced(b *furl.Block) []string {
	if b.Kind != furl.KindCall {
		return nil
	}
	var texts []string
	var value any
	if json.Unmarshal(b.Args, &value) != nil {
		value = string(b.Args)
	}
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case string:
			if old := patchedLines(v); old != "" {
				texts = append(texts, old)
			}
		case []any:
			for _, element := range v {
				walk(element)
			}
		case map[string]any:
			for _, key := range oldTextKeys {
				if old, ok := v[key].(string); ok && old != "" {
					texts = append(texts, old)
				}
			}
			keys := make([]string, 0, len(v))
			for key := range v {
				if !slices.Contains(oldTextKeys, key) {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			for _, key := range keys {
				walk(v[key])
			}
		}
	}
	walk(value)
	return texts
}

// patchedLines returns the lines that a patch expects in the files that it
// updates: those that it removes, and those around them.
func patchedLines(patch string) string {
	_, body, ok := strings.Cut(patch, "*** Begin Patch\n")
	if !ok {
		return ""
	}
	body, _, _ = strings.Cut(body, "*** End Patch")
	var old strings.Builder
	updates := false
	for line := range strings.Lines(body) {
		switch {
		case strings.HasPrefix(line, "*** "):
			updates = strings.HasPrefix(line, "*** Update File: ")
		case updates && (line[0] == '-' || line[0] == ' '):
			old.WriteString(line[1:])
		}
	}
	return old.String()
}

// edits adds the call to the reply if it replaces lines of the path.
func (t *Tracker) edits(r *Reply, b *furl.Block) {
	edit := Edit{Tool: b.Name}
	var seen seenIDs
	for _, text := range Replaced(b) {
		for line := range strings.Lines(text) {
			if line = lexer.Fold(line); !counts(line) {
				continue
			}
			if id, e := t.lines.find(line); e != nil && seen.add(id) {
				edit.Lines = append(edit.Lines, Line{Text: e.text, holders: e.sealed()})
			}
		}
	}
	if edit.Lines != nil {
		r.Edits = append(r.Edits, edit)
	}
}

// Blind returns the first line that the reply's edit i replaces and that is not
// visible in the view, or nil if all are.
func (s *Seen) Blind(i int) *Line {
	edit := &s.reply.Edits[i]
	for j := range edit.Lines {
		if !s.visible(&edit.Lines[j]) {
			return &edit.Lines[j]
		}
	}
	return nil
}

// visibleEdits returns the reply's edits with only those lines that are visible.
func (s *Seen) visibleEdits() []Edit {
	var edits []Edit
	for _, edit := range s.reply.Edits {
		lines := slices.Clone(edit.Lines)
		lines = slices.DeleteFunc(lines, func(line Line) bool { return !s.visible(&line) })
		if len(lines) > 0 {
			edits = append(edits, Edit{edit.Tool, lines})
		}
	}
	return edits
}
