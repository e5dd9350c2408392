package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/token"
)

func TestEditFailed(t *testing.T) {
	for text, want := range map[string]bool{
		// Claude Code
		"<tool_use_error>String to replace not found in file.\nString: a</tool_use_error>":                                                            true,
		"<tool_use_error>Found 2 matches of the string to replace, but replace_all is false.</tool_use_error>":                                        true,
		"<tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>":                                            false,
		"<tool_use_error>File has been modified since read, either by the user or by a linter.</tool_use_error>":                                      false,
		"The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written).": false,
		"The file /src/a.go has been updated. Here's the result of running `cat -n`:\n  1 return errors.New(\"not found in file\")":                   false,
		"The file /src/a.go has been updated. All occurrences of 'a' were successfully replaced with 'b'.":                                            false,
		// Codex, also from a script
		"apply_patch verification failed: Failed to find expected lines in /src/a.go:\nfunc a() {":                                            true,
		"Script failed\nWall time 0.2 seconds\nOutput:\n\nScript error:\napply_patch verification failed: Failed to find context 'x' in a.go": true,
		"Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nM a.go":                                          false,
		// opencode, pi, Gemini CLI, the text editor of Anthropic
		"Could not find oldString in the file. It must match exactly, including whitespace, indentation, and line endings.": true,
		"Found multiple matches for oldString. Provide more surrounding lines in oldString to identify the correct match.":  true,
		"Could not find the exact text in a.go. The old text must match exactly including all whitespace and newlines.":     true,
		"Found 3 occurrences of the text in a.go. The text must be unique.":                                                 true,
		"Successfully replaced text in a.go.":                                                    false,
		`{"error":"Failed to edit, 0 occurrences found for old_string in a.go. No edits made."}`: true,
		"Successfully modified file: /src/a.go (1 replacements).":                                false,
		"No replacement was performed, old_str `a` did not appear verbatim in /src/a.go.":        true,
		"No replacement was performed. Multiple occurrences of old_str `a` in lines: [1, 2].":    true,
		"old_string not found in file. The file may have been modified since you last read it.":  true,
		"Replaced 2 occurrences in a.go":                                                         false,
		// Cline, Roo Code, git, furl's own agent
		"[replace_in_file for 'a.go'] Result:\nThe tool execution failed with the following error:\n<error>\nThe SEARCH block:\na\n...does not match anything in the file.": true,
		"[apply_diff for 'a.go'] Result:\n<error_details>\nNo sufficiently similar match found at line: 1 (40% similar, needs 100%)":                                        true,
		"error: patch failed: a.go:1\nerror: a.go: patch does not apply":                                                                                                    true,
		"the old text does not occur in the file: read the file and copy the text exactly, with spaces and line breaks":                                                     true,
		"": false,
	} {
		for _, flagged := range []bool{false, strings.HasPrefix(text, "<tool_use_error>")} {
			if got := editFailed(&furl.Block{Kind: furl.KindResult, Text: text, Error: flagged}); got != want {
				t.Errorf("editFailed(%q), flagged %v: %v", text, flagged, got)
			}
		}
	}
}

// fileWork is the log of an agent that works on a file.
type fileWork struct {
	t     *testing.T
	log   *furl.Log
	calls int
	// at are the records of the results, and of the calls, by the names of the steps.
	results, made map[string]furl.Seq
}

func newFileWork(t *testing.T) *fileWork {
	w := &fileWork{t: t, log: furl.NewLog(), results: make(map[string]furl.Seq), made: make(map[string]furl.Seq)}
	w.add(furl.Client, furl.TextMessage(furl.RoleUser, "go"))
	return w
}

func (w *fileWork) add(by furl.Actor, body furl.Body) furl.Seq {
	w.t.Helper()
	if m, ok := body.(*furl.Message); ok {
		m.Measure(token.O200k())
	}
	r, err := w.log.Append(w.log.Head(), time.Time{}, by, body)
	if err != nil {
		w.t.Fatal(err)
	}
	return r.Seq
}

func (w *fileWork) step(name, tool string, args any, result string) {
	w.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	w.calls++
	id := fmt.Sprint("call", w.calls)
	w.made[name] = w.add(furl.Upstream, &furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: id, Name: tool, Args: raw}}})
	w.results[name] = w.add(furl.Client, &furl.Message{Role: furl.RoleTool, Blocks: []furl.Block{{Kind: furl.KindResult, ID: id, Text: result}}})
}

// hide hides the results of steps.
func (w *fileWork) hide(by furl.Actor, names ...string) {
	w.t.Helper()
	red := &furl.Reduction{Stage: "test"}
	for _, name := range names {
		at := furl.Pos{Msg: w.results[name]}
		red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: at, Last: at}}, Show: furl.In{Text: "hidden", Tokens: 2}})
	}
	w.add(by, red)
}

type args = map[string]any

// numbered are the lines of a file from one number to another.
func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "%5d→\tvalue%d := computeTheValueOf(%d, options)\n", i, i, i)
	}
	return b.String()
}

func lineOf(i int) string { return fmt.Sprintf("\tvalue%d := computeTheValueOf(%d, options)\n", i, i) }

const notFound = "String to replace not found in file."

func TestRepairOf(t *testing.T) {
	edit := func(w *fileWork, old string) {
		w.step("edit", "Edit", args{"file_path": "/src/a.go", "old_string": old, "new_string": "x"}, notFound)
	}
	read := func(w *fileWork, name, file string, from, to int) {
		in := args{"file_path": file}
		if from > 1 {
			in["offset"] = from
		}
		w.step(name, "Read", in, numbered(from, to))
	}
	for name, tt := range map[string]struct {
		do   func(w *fileWork)
		want string // the step whose result is expanded
	}{
		"the newest whole read": {func(w *fileWork) {
			read(w, "old", "/src/a.go", 1, 90)
			read(w, "new", "/src/a.go", 1, 90)
			w.hide(furl.Furl, "old", "new")
			edit(w, "other")
		}, "new"},
		"the part that has the text": {func(w *fileWork) {
			read(w, "part", "/src/a.go", 50, 90)
			read(w, "other", "/src/a.go", 10, 40)
			w.hide(furl.Furl, "part", "other")
			edit(w, lineOf(60)+lineOf(61)+"wrong")
		}, "part"},
		"the newest part if none has the text": {func(w *fileWork) {
			read(w, "part", "/src/a.go", 50, 90)
			read(w, "other", "/src/a.go", 10, 40)
			w.hide(furl.Furl, "part", "other")
			edit(w, "nothing that is in the file, or was at any time")
		}, "other"},
		"a newer whole read is visible": {func(w *fileWork) {
			read(w, "old", "/src/a.go", 1, 90)
			w.hide(furl.Furl, "old")
			read(w, "new", "/src/a.go", 1, 90)
			edit(w, lineOf(60)+"wrong")
		}, ""},
		"a newer part has the text": {func(w *fileWork) {
			read(w, "old", "/src/a.go", 1, 90)
			w.hide(furl.Furl, "old")
			read(w, "part", "/src/a.go", 50, 90)
			edit(w, lineOf(60))
		}, ""},
		"another file": {func(w *fileWork) {
			read(w, "old", "/src/b.go", 1, 90)
			w.hide(furl.Furl, "old")
			edit(w, lineOf(60))
		}, ""},
		"read by a shell from a folder": {func(w *fileWork) {
			w.step("old", "shell", args{"command": []string{"bash", "-lc", "cat src/a.go"}}, numbered(1, 90))
			w.hide(furl.Furl, "old")
			w.step("edit", "apply_patch", args{"input": "*** Begin Patch\n*** Update File: /home/me/src/a.go\n@@\n-" + lineOf(60) + "+x\n*** End Patch\n"},
				"apply_patch verification failed: Failed to find expected lines in /home/me/src/a.go")
		}, "old"},
		"a patch in a script": {func(w *fileWork) {
			read(w, "old", "/src/a.go", 1, 90)
			read(w, "fine", "/src/b.go", 1, 90)
			w.hide(furl.Furl, "old", "fine")
			patch := "*** Begin Patch\n*** Update File: /src/a.go\n@@\n-" + lineOf(60) + "+x\n*** Update File: /src/b.go\n@@\n-" + lineOf(1) + "+x\n*** End Patch\n"
			source, _ := json.Marshal(patch)
			w.step("edit", "exec", "text(await tools.apply_patch("+string(source)+"))", "Script error:\napply_patch verification failed: Failed to find expected lines in /src/a.go:\n")
		}, "old"},
		"a diff of Cline": {func(w *fileWork) {
			w.step("old", "read_file", args{"path": "src/a.go"}, numbered(1, 90))
			w.hide(furl.Furl, "old")
			w.step("edit", "replace_in_file", args{"path": "src/a.go", "diff": "------- SEARCH\n" + lineOf(60) + "=======\nx\n+++++++ REPLACE\n"},
				"The SEARCH block:\n...does not match anything in the file.")
		}, "old"},
		"several edits at once": {func(w *fileWork) {
			read(w, "old", "/src/a.go", 1, 90)
			w.hide(furl.Furl, "old")
			w.step("edit", "MultiEdit", args{"file_path": "/src/a.go", "edits": []args{{"old_string": lineOf(60), "new_string": "x"}}}, notFound)
		}, "old"},
		"hidden by a person": {func(w *fileWork) {
			read(w, "old", "/src/a.go", 1, 90)
			w.hide(furl.Person, "old")
			edit(w, lineOf(60))
		}, ""},
		"left out by the client": {func(w *fileWork) {
			read(w, "old", "/src/a.go", 1, 90)
			w.add(furl.Client, &furl.Reduction{Stage: furl.StageClient, Items: []furl.Item{{
				Spans: []furl.Span{{First: furl.Pos{Msg: w.results["old"]}, Last: furl.Pos{Msg: w.results["old"]}}}, Show: furl.In{Text: "cleared", Tokens: 2},
			}}})
			edit(w, lineOf(60))
		}, ""},
		"too large": {func(w *fileWork) {
			read(w, "old", "/src/a.go", 1, 2500)
			w.hide(furl.Furl, "old")
			edit(w, lineOf(60))
		}, ""},
		"the edit before the newest reply": {func(w *fileWork) {
			read(w, "old", "/src/a.go", 1, 90)
			w.hide(furl.Furl, "old")
			edit(w, lineOf(60))
			w.step("status", "Bash", args{"command": "git status"}, "clean")
		}, ""},
		"an edit that worked": {func(w *fileWork) {
			read(w, "old", "/src/a.go", 1, 90)
			w.hide(furl.Furl, "old")
			w.step("edit", "Edit", args{"file_path": "/src/a.go", "old_string": lineOf(60), "new_string": "x"}, "The file /src/a.go has been updated.")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFileWork(t)
			tt.do(w)
			p := must(t, "auto", Auto{})
			s := w.log.State()
			b := furl.Budget{Window: 200_000, Size: s.View(furl.Model{}).Tokens}
			r := RepairOf(p, s, b)
			if tt.want == "" {
				if r != nil {
					t.Fatalf("a repair of %v: %+v", r.Files, r.Restoration.Spans)
				}
				return
			}
			at := furl.Pos{Msg: w.results[tt.want]}
			if r == nil || len(r.Restoration.Spans) != 1 || r.Restoration.Spans[0] != (furl.Span{First: at, Last: at}) || !r.Restoration.Open {
				t.Fatalf("the repair is %+v, want record %d", r, at.Msg)
			}
			if len(r.Files) != 1 || !strings.HasSuffix(r.Files[0], "src/a.go") || r.After-r.Before < 400 || r.Rewritten < r.After-r.Before {
				t.Errorf("the repair is %+v", r)
			}
			b.Size = demandedFrom(&b) - 10 // the window is nearly full
			if r := RepairOf(p, s, b); r != nil {
				t.Errorf("a repair that the window has no room for: %d to %d", r.Before, r.After)
			}
			if w.add(furl.Furl, r.Restoration); RepairOf(p, w.log.State(), b) != nil {
				t.Error("the same is repaired twice")
			}
		})
	}
}

// Edits of the file since the read are shown too, if they are hidden.
func TestRepairShowsEdits(t *testing.T) {
	w := newFileWork(t)
	w.step("read", "Read", args{"file_path": "/src/a.go"}, numbered(1, 90))
	w.step("write", "Edit", args{"file_path": "/src/a.go", "old_string": lineOf(3), "new_string": "value3 := 3"}, "The file /src/a.go has been updated.")
	w.step("test", "Bash", args{"command": "go test"}, "ok")
	m := &furl.Message{Role: furl.RoleUser, Blocks: []furl.Block{{Kind: furl.KindText, Text: "steps were hidden"}}}
	m.Measure(token.O200k())
	w.add(furl.Furl, &furl.Reduction{Stage: "test", Items: []furl.Item{{
		Spans: []furl.Span{{First: furl.Pos{Msg: w.made["read"]}, Last: furl.Pos{Msg: w.results["test"]}}}, Show: furl.Mark{Messages: []*furl.Message{m}},
	}}})
	w.step("edit", "Edit", args{"file_path": "/src/a.go", "old_string": lineOf(3), "new_string": "x"}, notFound)
	s := w.log.State()
	r := RepairOf(must(t, "auto", Auto{}), s, furl.Budget{Window: 200_000, Size: 1000})
	if r == nil {
		t.Fatal("no repair")
	}
	w.add(furl.Furl, r.Restoration)
	s = w.log.State()
	for name, want := range map[string]bool{"read": true, "write": true, "test": false} {
		if got := s.ShownBy(furl.Pos{Msg: w.results[name]}) == 0 && s.ShownBy(furl.Pos{Msg: w.made[name]}) == 0; got != want {
			t.Errorf("the step %s is visible: %v", name, got)
		}
	}
}

// By default only auto repairs; the option is one of every policy, and a setting has the last word.
func TestRepairsEdits(t *testing.T) {
	b := &furl.Budget{Recall: true}
	set := NewSet()
	if err := set.Configure("clear-100k", []byte(`{"repair_edits": true}`)); err != nil {
		t.Fatal(err)
	}
	if err := set.Configure("auto:frugal", []byte(`{"repair_edits": false}`)); err != nil {
		t.Fatal(err)
	}
	for _, name := range set.Variants() {
		want := strings.HasPrefix(name, "auto") && !strings.HasPrefix(name, "auto:frugal") || name == "clear-100k"
		for _, setting := range []*bool{nil, new(true), new(false)} {
			for _, first := range []*bool{nil, new(true)} {
				p, err := set.Policy(name, Settings{EditOptions: EditOptions{RepairEdits: setting}, RollingContext: first})
				if err != nil {
					t.Fatal(err)
				}
				if got := RepairsEdits(p, b); got != isOn(setting, want) && name != "none" {
					t.Errorf("%s repairs with the setting %v: %v", name, isOn(setting, want), got)
				}
			}
		}
	}
}
