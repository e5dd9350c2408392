package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

// rooHistory reads a history given as JSON.
func rooHistory(t *testing.T, history string) *Recording {
	t.Helper()
	rec, err := Read("api_conversation_history.json", strings.NewReader(history))
	if err != nil {
		t.Fatal(err)
	}
	if rec.Format != "roo" {
		t.Fatalf("read as %s, want roo", rec.Format)
	}
	return rec
}

// reductions returns the reductions on the path, with their recorded times.
func reductions(s *Session) (list []*furl.Reduction, at []time.Time) {
	for red := range s.Log.State().Reductions() {
		list, at = append(list, red.Reduction), append(at, red.At)
	}
	return list, at
}

func TestRoo(t *testing.T) {
	rec := fixture(t, "roo/api_conversation_history.json")
	s := only(t, rec)
	if rec.Format != "roo" || rec.Agent != "Roo Code" || s.ID != "roo" || s.Title != "Sort the list." || s.Model != "claude-sonnet-4-5" {
		t.Errorf("format %q, agent %q, id %q, title %q, model %q", rec.Format, rec.Agent, s.ID, s.Title, s.Model)
	}

	t.Run("T7 hides what summaries and markers hide, orphans nothing", func(t *testing.T) {
		const details = "<environment_details>\n# Current Mode\n<slug>code</slug>\n<model>claude-sonnet-4-5</model>\n</environment_details>"
		wantShown(t, s, "user <task>\nSort the list.\n</task> "+details, "assistant The list is half sorted.",
			"assistant call:r4", "user result:r4", "assistant Sorted.", "user Thanks.")
	})

	checkRequests(t, s, true)
	reds, at := reductions(s)
	if len(reds) != 2 || reds[0].Stage != "truncate" || reds[1].Stage != "compact" || s.Compactions != 2 {
		t.Fatalf("reductions %v, %d compactions; want a truncation and a compaction", reds, s.Compactions)
	}
	t.Run("T7 times and sizes come from ui_messages.json", func(t *testing.T) {
		zero := time.UnixMilli(1767225600000)
		if !at[0].Equal(zero.Add(8500*time.Millisecond)) || !at[1].Equal(zero.Add(10500*time.Millisecond)) {
			t.Errorf("made at %v, want those of the events", at)
		}
		if reds[0].Before != 180000 || reds[0].After != 90000 || reds[1].Before != 120000 {
			t.Errorf("sizes %d to %d, and %d", reds[0].Before, reds[0].After, reds[1].Before)
		}
		if sum := reds[1].Summary; sum == nil || sum.Text != "The list is half sorted." || sum.Messages != 4 {
			t.Errorf("summary %+v", sum)
		}
	})
	t.Run("T7 rewinding to before a reduction brings everything back", func(t *testing.T) {
		var views []string
		for red := range s.Log.State().Reductions() {
			st, err := furl.Fold(s.Log, s.Log.At(red.Seq).Parent)
			if err != nil {
				t.Fatal(err)
			}
			views = append(views, fmt.Sprint(len(st.View(furl.Model{}).Messages)))
		}
		// Nine messages; then the first, the marker, four and two more.
		if got := strings.Join(views, " "); got != "9 8" {
			t.Errorf("messages shown before each reduction: %s, want 9 and 8", got)
		}
		head := s.Log.Head()
		first, _ := slices.Collect(func(yield func(furl.Seq) bool) {
			for red := range s.Log.State().Reductions() {
				yield(red.Seq)
			}
		}), 0
		if _, err := s.Log.Rewind(s.Log.At(first[0]).Parent, time.Time{}, furl.Person); err != nil {
			t.Fatal(err)
		}
		if got := shown(s); !strings.Contains(got, "call:r1") || !strings.Contains(got, "Half done.") || strings.Contains(got, "truncation") {
			t.Errorf("after the rewind, the model sees %s", got)
		}
		if _, err := s.Log.Rewind(head, time.Time{}, furl.Person); err != nil {
			t.Fatal(err)
		}
		if got := shown(s); strings.Contains(got, "call:r1") {
			t.Errorf("back at the head the model sees %s", got)
		}
	})
}

func TestRooClauses(t *testing.T) {
	const (
		task   = `{"role":"user","content":"Go.","ts":1000}`
		call   = `{"role":"assistant","ts":2000,"content":[{"type":"tool_use","id":"a","name":"ls","input":{}}]%s}`
		result = `{"role":"user","ts":3000,"content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"text","text":"env"}]%s}`
		reply  = `{"role":"assistant","ts":4000,"content":"Done."%s}`
		thanks = `{"role":"user","ts":5000,"content":"Thanks."}`
		marker = `{"role":"user","ts":3999,"content":"[cut]","isTruncationMarker":true,"truncationId":"T"%s}`
		sum    = `{"role":"user","ts":4500,"content":"Sum.","isSummary":true,"condenseId":"C"%s}`
	)
	with := func(format, extra string) string { return fmt.Sprintf(format, extra) }
	const byT, byC, byGone = `,"truncationParent":"T"`, `,"condenseParent":"C"`, `,"condenseParent":"gone"`
	tests := []struct {
		name    string
		history []string
		want    []string
	}{
		{"T7 history without any such fields", []string{task, with(call, ""), with(result, ""), with(reply, ""), thanks},
			[]string{"user Go.", "assistant call:a", "user result:a env", "assistant Done.", "user Thanks."}},
		{"T7 marker hides", []string{task, with(call, byT), with(result, byT), with(marker, ""), with(reply, ""), thanks},
			[]string{"user Go.", "user [cut]", "assistant Done.", "user Thanks."}},
		{"T7 summary hides", []string{`{"role":"user","content":"Go.","condenseParent":"C"}`, with(call, byC), with(result, byC), with(reply, byC), with(sum, ""), thanks},
			[]string{"user Sum.", "user Thanks."}},
		{"T7 orphaned truncationParent hides nothing", []string{task, with(call, byT), with(result, byT), with(reply, ""), thanks},
			[]string{"user Go.", "assistant call:a", "user result:a env", "assistant Done.", "user Thanks."}},
		{"T7 orphaned condenseParent hides nothing", []string{task, with(call, byC), with(result, byC), with(reply, ""), thanks},
			[]string{"user Go.", "assistant call:a", "user result:a env", "assistant Done.", "user Thanks."}},
		{"T7 each parent is judged on its own", []string{task, with(call, byT+byGone), with(result, byT+byGone), with(marker, ""), with(reply, ""), thanks},
			[]string{"user Go.", "user [cut]", "assistant Done.", "user Thanks."}},
		{"T7 a summary id without isSummary is no summary", []string{task, with(call, byC), with(result, byC), `{"role":"user","ts":4500,"content":"Sum.","condenseId":"C"}`, thanks},
			[]string{"user Go.", "assistant call:a", "user result:a env", "user Sum.", "user Thanks."}},
		{"T7 a result whose call is hidden is dropped, its words stay", []string{task, with(call, byT), with(marker, ""), with(result, ""), with(reply, ""), thanks},
			[]string{"user Go.", "user [cut]", "user env", "assistant Done.", "user Thanks."}},
		{"T7 a summary that is hidden itself shows nothing", []string{task, with(call, byT), with(result, byT), with(marker, byC), with(reply, byC), with(sum, ""), thanks},
			[]string{"user Sum.", "user Thanks."}},
		{"T7 marker that hides nothing is a message", []string{task, with(marker, ""), with(reply, ""), thanks},
			[]string{"user Go.", "user [cut]", "assistant Done.", "user Thanks."}},
		{"T7 marker and summary that hide each other", []string{task, with(call, byT), with(result, byT), with(marker, byC), with(reply, byC), with(sum, byT), thanks},
			[]string{"user Sum.", "user Thanks."}},
		{"T7 a marker after the summary of what it hid is a message", []string{`{"role":"user","content":"Go.","condenseParent":"C"}`, with(call, byT+byC), with(result, byT+byC), with(reply, byC), with(sum, ""), `{"role":"user","ts":4600,"content":"[cut]","isTruncationMarker":true,"truncationId":"T"}`, thanks},
			[]string{"user Sum.", "user [cut]", "user Thanks."}},
		{"T7 a marker before the last summary that it did not tag was never sent", []string{`{"role":"user","content":"Go.","condenseParent":"C"}`, with(call, byT+byC), with(result, byT+byC), with(marker, ""), with(reply, byC), with(sum, ""), thanks},
			[]string{"user Sum.", "user Thanks."}},
		{"T7 only what follows the last summary of the user is sent", []string{task, with(call, byC), with(result, ""), with(reply, byC), with(sum, ""), thanks},
			[]string{"user Sum.", "user Thanks."}},
		{"T7 a summary of the model hides what it tags", []string{task, with(call, byC), with(result, byC), `{"role":"assistant","ts":3500,"content":"Sum.","isSummary":true,"condenseId":"C"}`, `{"role":"user","ts":4000,"content":"On."}`, thanks},
			[]string{"user Go.", "assistant Sum.", "user On.", "user Thanks."}},
		{"T7 a summary without an id", []string{task, with(call, ""), with(result, ""), with(reply, ""), `{"role":"user","ts":4500,"content":"Sum.","isSummary":true}`, thanks},
			[]string{"user Sum.", "user Thanks."}},
		{"T7 a marker between a summary and its tail hides the summary too", []string{`{"role":"user","content":"Go.","condenseParent":"C"}`, with(call, byT+byC), with(result, byT+byC), with(reply, byT+byC), with(sum, byT), `{"role":"user","ts":4600,"content":"[cut]","isTruncationMarker":true,"truncationId":"T"}`, thanks},
			[]string{"user [cut]", "user Thanks."}},
		{"T7 a reply after a summary", []string{`{"role":"user","content":"Go.","condenseParent":"C"}`, with(reply, byC), with(sum, ""), `{"role":"assistant","ts":4700,"content":"On it."}`, thanks},
			[]string{"user Sum.", "assistant On it.", "user Thanks."}},
		{"T7 a hidden result of a call that shows", []string{task, with(call, ""), with(result, byT), with(marker, ""), with(reply, ""), thanks},
			[]string{"user Go.", "assistant call:a", "user result:a", "user [cut]", "assistant Done.", "user Thanks."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := only(t, rooHistory(t, "["+strings.Join(tt.history, ",")+"]"))
			wantShown(t, s, tt.want...)
		})
	}

	t.Run("T7 without ui_messages.json the time is the marker's own", func(t *testing.T) {
		s := only(t, rooHistory(t, "["+strings.Join([]string{task, with(call, byT), with(result, byT), with(marker, ""), with(reply, ""), thanks}, ",")+"]"))
		reds, at := reductions(s)
		if len(reds) != 1 || !at[0].Equal(time.UnixMilli(3999)) {
			t.Errorf("made at %v, want 3999", at)
		}
	})
}

func TestRooQuiet(t *testing.T) {
	s := only(t, fixture(t, "roo-quiet/api_conversation_history.json"))
	wantShown(t, s, "user Hello.", "assistant Good day.", "user Bye.")
	if s.ID != "roo-quiet" || s.Messages != 3 || s.Log.Len() != 4 {
		t.Errorf("id %q, %d messages, %d records; want roo-quiet, 3, 4", s.ID, s.Messages, s.Log.Len())
	}
}

func TestRooBroken(t *testing.T) {
	rec := rooHistory(t, `[{"role":"user","content":"Go.","ts":1},{"role":"robot","content":"?"},{"role":"assistant","content":[7,{"type":"text","text":"Yes."}],"ts":2},{"role":"user","cont`)
	if len(rec.Sessions) != 1 || len(rec.Skipped) != 3 {
		t.Fatalf("%d sessions, skipped %v; want 1 and 3", len(rec.Sessions), rec.Skipped)
	}
	wantShown(t, rec.Sessions[0], "user Go.", "assistant Yes.")
}

// Companion files of a history are skipped in folders; reading one by name
// reports what it is.
func TestRooFolder(t *testing.T) {
	var files []string
	for rec, err := range Walk("testdata/roo") {
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Base(rec.File))
	}
	if got := strings.Join(files, " "); got != "api_conversation_history.json" {
		t.Errorf("read %s", got)
	}
	if _, err := ReadFile("testdata/roo/ui_messages.json"); err == nil || !strings.Contains(err.Error(), "Roo Code") {
		t.Errorf("reading ui_messages.json: %v", err)
	}
}

func TestRooEventsBeside(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"api_conversation_history.json": `[{"role":"user","content":"Go.","ts":1}]`,
		"ui_messages.json":              `{"not":"a list"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rec, err := ReadFile(filepath.Join(dir, "api_conversation_history.json"))
	if err != nil {
		t.Fatal(err)
	}
	wantShown(t, only(t, rec), "user Go.")
}

// A reduction whose sizes are not recorded gets them from the counted tokens.
func TestRooSizes(t *testing.T) {
	history := `[{"role":"user","content":"Go.","ts":1000},
		{"role":"assistant","ts":2000,"content":[{"type":"tool_use","id":"a","name":"ls","input":{}}],"truncationParent":"T"},
		{"role":"user","ts":3000,"content":[{"type":"tool_result","tool_use_id":"a","content":"` + strings.Repeat("x", 500) + `"}],"truncationParent":"T"},
		{"role":"user","ts":3999,"content":"[cut]","isTruncationMarker":true,"truncationId":"T"},
		{"role":"assistant","ts":4000,"content":"Done."}]`
	rd := &Reader{Counter: byteCounter{}}
	rec, err := rd.Read("api_conversation_history.json", strings.NewReader(history))
	if err != nil {
		t.Fatal(err)
	}
	s := only(t, rec)
	reds, _ := reductions(s)
	after := s.Log.State().View(furl.Model{}).Tokens
	st, err := furl.Fold(s.Log, 4) // before the reduction and the last reply
	if err != nil {
		t.Fatal(err)
	}
	if len(reds) != 1 || reds[0].Before < 500 || reds[0].After <= 0 || reds[0].Before-reds[0].After < 400 || reds[0].After > after {
		t.Errorf("reductions %+v; %d tokens before, %d at the end", reds, st.View(furl.Model{}).Tokens, after)
	}
}
