package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// exportTask exports a session as a task and returns its history.
func exportTask(t *testing.T, s *Session, opts *ExportOptions) (path string, history []rooEntry) {
	t.Helper()
	path, _, err := ExportTask(t.Context(), t.TempDir(), s, opts, false)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(path, rooHistoryFile))
	if err == nil {
		err = json.Unmarshal(data, &history)
	}
	if err != nil {
		t.Fatalf("%v in %.500s", err, data)
	}
	return path, history
}

// checkRooExport exports a session in Anthropic's format: Roo Code sends what the
// view shows, and furl reads the same messages and the same view again.
func checkRooExport(t *testing.T, s *Session) bool {
	t.Helper()
	path, history := exportTask(t, s, nil)
	want := viewLines(s.Log.State().View(furl.Model{}))
	for i := range want {
		want[i] = strings.Replace(want[i], "none ", "result ", 1)
	}
	if got := rooLines(rooSends(history)); !slices.Equal(got, want) {
		t.Errorf("%s: Roo Code sends\n%s\nwant\n%s", s.ID, strings.Join(got, "\n"), strings.Join(want, "\n"))
		return false
	}
	rec, err := ReadFile(filepath.Join(path, rooHistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	back := only(t, rec)
	if back.ID != filepath.Base(path) || s.Title != "" && back.Title != s.Title {
		t.Errorf("%s comes back as %s %q, want the title %q", s.ID, back.ID, back.Title, s.Title)
	}
	if got, want := textsOf(pathMessages(back)), textsOf(pathMessages(s)); !slices.Equal(got, want) {
		t.Errorf("%s: comes back with\n%s\nwant\n%s", s.ID, strings.Join(got, "\n"), strings.Join(want, "\n"))
		return false
	}
	if got, want := viewTexts(back), viewTexts(s); !slices.Equal(got, want) {
		data, _ := os.ReadFile(filepath.Join(path, rooHistoryFile))
		t.Errorf("%s: comes back as\n%s\nwant\n%s\nof %s", s.ID, strings.Join(got, "\n"), strings.Join(want, "\n"), data)
		return false
	}
	return true
}

// textsOf returns the blocks of messages as their bytes.
func textsOf(list []*furl.Message) (out []string) {
	for _, m := range list {
		for _, b := range blockBytes(m) {
			if !strings.Contains(b, nothingBetween) { // depends on what is shown at a time
				out = append(out, string(m.Role)+" "+b)
			}
		}
	}
	return out
}

// viewTexts returns what the model sees, block by block.
func viewTexts(s *Session) (out []string) {
	v := s.Log.State().View(furl.Model{})
	for i := range v.Messages {
		m := &v.Messages[i]
		for _, b := range m.Blocks {
			if b.Words() != nothingBetween {
				out = append(out, fmt.Sprintf("%s %d %s %s", m.Msg.Role, b.Block.Kind, b.Block.ID, b.Words()))
			}
		}
	}
	return out
}

// reduceRandomly adds reductions: of whole units, of results and calls in place,
// and undone ones.
func reduceRandomly(t *testing.T, rnd *rand.Rand, s *Session) {
	t.Helper()
	if len(s.Log.State().OpenCalls()) > 0 {
		return
	}
	for n := range 1 + rnd.IntN(5) {
		v := s.Log.State().View(furl.Model{})
		if len(v.Units) < 3 {
			return
		}
		red := &furl.Reduction{Stage: "mask", Before: 1000, After: 500}
		if rnd.IntN(2) == 0 {
			from := rnd.IntN(len(v.Units) - 1)
			if rnd.IntN(3) == 0 {
				from = 0
			}
			units := v.Units[from : from+1+rnd.IntN(len(v.Units)-from-1)]
			show := []*furl.Message{furl.TextMessage(furl.RoleUser, fmt.Sprintf("Hidden %d.", n))}
			red.Items = []furl.Item{{Spans: v.Spans(units...), Show: furl.Mark{Messages: show}}}
			if red.Stage = "truncate"; rnd.IntN(2) == 0 {
				red.Stage, red.Summary = "compact", &furl.Summary{Text: "Hidden."}
			}
		} else {
			for i := range v.Messages {
				for _, b := range v.Messages[i].Blocks {
					in := furl.In{Text: fmt.Sprintf("short %d", n)}
					switch {
					case v.Messages[i].Index < 0 || rnd.IntN(3) > 0:
						continue
					case b.Block.Kind == furl.KindCall:
						in.Text = fmt.Sprintf(`{"short":%d}`, n)
					case b.Block.Kind != furl.KindResult && b.Block.Kind != furl.KindText:
						continue
					}
					red.Items = append(red.Items, furl.Item{Spans: []furl.Span{{First: b.Pos, Last: b.Pos}}, Show: in})
				}
			}
		}
		if len(red.Items) == 0 {
			continue
		}
		rec, err := s.Log.Append(s.Log.Head(), s.Log.At(s.Log.Head()).At, furl.Person, red)
		if err != nil {
			continue
		}
		if rnd.IntN(5) == 0 {
			if _, err := s.Log.Append(rec.Seq, rec.At, furl.Person, &furl.Restoration{Of: rec.Seq}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Sessions of Roo Code, with reductions by furl on top, are exported and read again.
func TestRooExport(t *testing.T) {
	n := 60
	switch {
	case os.Getenv("FURL_MARKS") != "":
		n = 3000
	case raceDetector:
		n = 5
	}
	dir, failed := t.TempDir(), 0
	for seed := range uint64(n) {
		rec, err := ReadFile(newRooTask(seed).files(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		s := rec.Sessions[0]
		if seed%2 == 1 {
			reduceRandomly(t, rand.New(rand.NewPCG(seed, 31)), s)
		}
		if !checkRooExport(t, s) {
			t.Logf("seed %d", seed)
			if failed++; failed > 2 {
				break
			}
		}
	}
	t.Logf("%d sessions", n)
}

// Sessions of all agents are exported: every call that the view shows is sent, with
// its result.
func TestRooExportFixtures(t *testing.T) {
	for name := range fixtures(t) {
		rec, err := ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rec.Sessions {
			if s.Log.State().Len() == 0 {
				continue
			}
			_, history := exportTask(t, s, nil)
			sent := rooLines(rooSends(history))
			count := func(lines []string, kind string) (n int) {
				for _, l := range lines {
					if strings.HasPrefix(l, kind) {
						n++
					}
				}
				return n
			}
			view := viewLines(s.Log.State().View(furl.Model{}))
			if got, want := count(sent, "call "), count(view, "call "); got != want {
				t.Errorf("%s: Roo Code sends %d calls, want %d", name, got, want)
			}
			if got, want := count(sent, "result "), count(view, "result ")+count(view, "none "); got != want {
				t.Errorf("%s: Roo Code sends %d results, want %d", name, got, want)
			}
		}
	}
}

// The folder of a task has what the extension needs to list and show it.
func TestRooTask(t *testing.T) {
	dir := t.TempDir()
	s := only(t, fixture(t, "roo/api_conversation_history.json"))
	path, done, err := ExportTask(t.Context(), dir, s, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	var item struct {
		ID, Task  string
		TS        int64
		TokensIn  *int
		TokensOut *int
		TotalCost *float64
	}
	data, err := os.ReadFile(filepath.Join(path, rooItemFile))
	if err == nil {
		err = json.Unmarshal(data, &item)
	}
	if err != nil || item.ID != filepath.Base(path) || item.Task != "Sort the list." || item.TS == 0 || item.TokensIn == nil || item.TokensOut == nil || item.TotalCost == nil {
		t.Errorf("%v, item %s", err, data)
	}
	var chat []struct {
		TS              int64
		Type, Say, Text string
	}
	data, err = os.ReadFile(filepath.Join(path, rooChatFile))
	if err == nil {
		err = json.Unmarshal(data, &chat)
	}
	if err != nil || len(chat) < 5 || chat[0].Say != "text" || chat[0].Text != "Sort the list." {
		t.Errorf("%v, chat %s", err, data)
	}
	for i := 1; i < len(chat); i++ {
		if chat[i].TS <= chat[i-1].TS || chat[i].Type != "say" {
			t.Errorf("element %d of the chat: %+v after %+v", i, chat[i], chat[i-1])
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v; want the task alone", len(entries), err)
	}
	if done.Messages == 0 || done.Bytes == 0 {
		t.Errorf("exported %+v", done)
	}
	if _, _, err := ExportTask(t.Context(), dir, s, nil, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("again: %v, want that it exists", err)
	}
	if again, _, err := ExportTask(t.Context(), dir, s, nil, true); err != nil || again != path {
		t.Errorf("replacing: %s, %v", again, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := ExportTask(ctx, filepath.Join(dir, "other"), s, nil, false); err == nil {
		t.Error("exported although the context is done")
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "other")); err != nil || len(entries) != 0 {
		t.Errorf("%d entries left behind, %v", len(entries), err)
	}
}

// The view alone has no tags.
func TestRooExportView(t *testing.T) {
	s := only(t, fixture(t, "roo/api_conversation_history.json"))
	_, history := exportTask(t, s, &ExportOptions{View: true})
	if got, want := rooLines(history), viewLines(s.Log.State().View(furl.Model{})); !slices.Equal(got, want) {
		t.Errorf("view %q, want %q", got, want)
	}
	for _, m := range history {
		if m.IsSummary || m.IsMarker || m.CondenseParent != "" || m.TruncationParent != "" {
			t.Errorf("tagged: %+v", m)
		}
	}
}
