package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// What newer calls say of an older one, which is the first of each list. Other calls are
// between them where the list says so.
func TestFiles(t *testing.T) {
	const (
		read  = `Read {"file_path":"a.go"}`
		part  = `Read {"file_path":"a.go","offset":10,"limit":20}`
		more  = `Read {"file_path":"a.go","offset":40,"limit":20}`
		edit  = `Edit {"file_path":"a.go","old_string":"x","new_string":"y"}`
		write = `Write {"file_path":"a.go","content":"package a"}`
		other = `Read {"file_path":"b.go"}`
		touch = `Edit {"file_path":"b.go","old_string":"x","new_string":"y"}`
	)
	long := strings.Repeat("folder/", 40)
	pause := func(n int) string { return fmt.Sprint(n) }
	for _, tt := range []struct {
		name  string
		calls []string // the oldest first; a number stands for so many other requests
		want  status
	}{
		{"a read before any edit", []string{read, other}, unedited},
		{"a read of another file than the edited one", []string{read, touch}, newestRead},
		{"a read of a file that is read in parts", []string{part, touch, more}, newestRead},
		{"a read of a file that is named", []string{`Read {"file_path":"src/named.go"}`, touch}, planned},
		{"the same, edited since", []string{`Read {"file_path":"src/named.go"}`, `Edit {"file_path":"src/named.go"}`, pause(balanced.justEdited + 1)}, workedOn},
		{"a read of a file in a list of tasks", []string{other, `TodoWrite {"todos":["fix b.go"]}`, edit}, planned},
		{"a read of a file whose long path begins like that of another", []string{`Read {"file_path":"` + long + `/a.md"}`, `Write {"file_path":"` + long + `/b.md"}`}, newestRead},
		{"a read of a file that is edited", []string{read, edit}, inEdit},
		{"a read of an edited file", []string{read, edit, pause(balanced.justEdited + 1)}, workedOn},
		{"the same, long ago", []string{read, edit, pause(editing)}, newestRead},
		{"a part that was read, and the file was edited", []string{part, edit}, inEdit},
		{"a file that the agent comes back to", []string{part, touch, more, `Read {"file_path":"a.go","offset":60}`, `Read {"file_path":"a.go","offset":90}`}, workedOn},
		{"the same, long ago", []string{part, touch, more, `Read {"file_path":"a.go","offset":60}`, `Read {"file_path":"a.go","offset":90}`, pause(returning)}, newestRead},
		{"a file that was read again", []string{read, touch, read}, superseded},
		{"a part that was read again", []string{part, part}, superseded},
		{"a part of a file that was read as a whole", []string{part, read}, superseded},
		{"a file that was written anew", []string{read, write}, superseded},
		{"an edit, and the file was edited again", []string{edit, edit + " "}, inEdit},
		{"an edit before a read of the whole file", []string{edit, read}, superseded},
		{"a written file that was edited", []string{write, edit}, inEdit},
		{"a written file without another use", []string{write, other}, newestRead},
		{"a call without files", []string{`list {"path":"."}`, read}, otherCall},
	} {
		s := newSession(t)
		s.say(furl.RoleUser, "go (see `src/named.go`, please)")
		for _, call := range tt.calls {
			var n int
			if _, err := fmt.Sscanf(call, "%d", &n); err == nil {
				for i := range n {
					s.call("list", fmt.Sprintf(`{"n":%d}`, i), "ok", false)
				}
				continue
			}
			var tool, args string
			fmt.Sscanf(call, "%s", &tool)
			args = call[len(tool)+1:]
			s.call(tool, args, "ok", false)
		}
		v, age := s.view(), 0
		f := newFiles(v.State, &balanced)
		var first string
		for i := len(v.Units) - 1; i >= 0; i-- {
			u := &v.Units[i]
			if u.Kind != furl.UnitStep {
				continue
			}
			f.step(u, age)
			first = u.Blocks[0].Block.ID
			age++
		}
		if got := f.status[first]; got != tt.want {
			t.Errorf("%s: status %d, want %d", tt.name, got, tt.want)
		}
	}
}

// The step in which the agent wrote what it works on is not replaced by a marker as soon
// as others are, whatever the user said, and the newest text of the file stays when the cache has expired.
func TestAutoKeepsWhatEditsNeed(t *testing.T) {
	build := func(last string) *session {
		s := newSession(t)
		s.say(furl.RoleUser, "go")
		s.call("Write", `{"file_path":"src/new.go","content":"`+text(4000)+`"}`, "written", false) // 2
		s.read("src/big.go", text(4000))                                                           // 5
		for i := range 6 {
			s.call("list", fmt.Sprintf(`{"n":%d}`, i), text(9000), false)
		}
		s.call("list", `{"n":6}`, text(10), false) // or a rewrite would not pay
		s.say(furl.RoleUser, "and now?")
		s.call("Edit", `{"file_path":"`+last+`","old_string":"a","new_string":"b"}`, "ok", false)
		return s
	}
	for _, tt := range []struct {
		edited string
		folds  bool
	}{{"src/new.go", false}, {"src/unrelated.go", true}} {
		s := build(tt.edited)
		s.plan(must(t, "auto"), s.paid())
		if got := s.hiddenNow()[2]; got != tt.folds {
			t.Errorf("after an edit of %s the written text is hidden: %v, want %v", tt.edited, got, tt.folds)
		}
	}
	for _, tt := range []struct {
		edited string
		hides  bool
	}{{"src/big.go", false}, {"src/unrelated.go", true}} {
		s := newSession(t)
		s.say(furl.RoleUser, "go")
		s.read("src/big.go", text(4000)) // 3
		s.call("Edit", `{"file_path":"`+tt.edited+`","old_string":"a","new_string":"b"}`, "ok", false)
		s.call("list", `{}`, text(10), false)
		b := s.paid()
		b.Cold = true
		s.plan(must(t, "auto"), b)
		if got := s.hiddenNow()[3]; got != tt.hides {
			t.Errorf("the cache has expired after an edit of %s: the read is hidden: %v, want %v", tt.edited, got, tt.hides)
		}
	}
}

// hasEdits knows a path and a draft of it, whichever was asked first, and reads each
// message once.
func TestHasEdits(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "go")
	s.step("Read", "text")
	hide := &furl.Reduction{Stage: "mask", Items: []furl.Item{{Spans: []furl.Span{{First: furl.Pos{Msg: 2}, Last: furl.Pos{Msg: 2}}}, Show: furl.In{Text: "[hidden]", Tokens: 5}}}}
	check := func(want bool) {
		t.Helper()
		draft, err := s.log.State().With(hide)
		if err != nil {
			t.Fatal(err)
		}
		if got := hasEdits(draft); got != want {
			t.Errorf("edits in the draft: %v, want %v", got, want)
		}
		if got := hasEdits(s.log.State()); got != want {
			t.Errorf("edits: %v, want %v", got, want)
		}
	}
	check(false)
	s.step("Read", "text")
	check(false)
	s.call("Edit", `{"file_path":"a.go","old_string":"a","new_string":"b"}`, "ok", false)
	check(true)
	for range 100 {
		s.step("Read", "text")
	}
	check(true)
	if n := testing.AllocsPerRun(10, func() { hasEdits(s.log.State()) }); n > 0 {
		t.Errorf("%v allocations to ask again", n)
	}
}

// Which files are named follows from a path alone, whichever draft of it was asked first, or
// plans would depend on what was asked before.
func TestNamed(t *testing.T) {
	s := newSession(t)
	s.say(furl.RoleUser, "See (docs/a.md), b.go: and https://example.org/c.html. Not d or e.")
	s.step("Read", "text")
	hide := &furl.Reduction{Stage: "mask", Items: []furl.Item{{Spans: []furl.Span{{First: furl.Pos{Msg: 2}, Last: furl.Pos{Msg: 2}}}, Show: furl.In{Text: "[hidden]", Tokens: 5}}}}
	draft, err := s.log.State().With(hide)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{"/src/docs/a.md": true, `C:\src\b.go`: true, "c.html": true, "d": false, "docs": false, "f.go": false} {
		for name, state := range map[string]*furl.State{"a draft": draft, "the path": s.log.State()} {
			if got := furl.Memo(state, newNamed).has(state, state.Len(), file); got != want {
				t.Errorf("%s in %s: named %v, want %v", file, name, got, want)
			}
		}
	}
	s.say(furl.RoleUser, "and f.go")
	if !furl.Memo(s.log.State(), newNamed).has(s.log.State(), s.log.State().Len(), "f.go") {
		t.Error("a name in newer words is not found")
	}
	if furl.Memo(s.log.State(), newNamed).has(s.log.State(), 1, "f.go") {
		t.Error("a name in newer words is found among older ones")
	}
}
