package transcript

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
)

func TestAider(t *testing.T) {
	rec := fixture(t, "aider.md")
	if rec.Format != "aider" || rec.Agent != "Aider" {
		t.Errorf("format %q, agent %q", rec.Format, rec.Agent)
	}
	s := only(t, rec)
	wantShown(t, s, "user Now the tax.", "assistant Done.")
	if s.ID != "2026-02-03 09:00:00" || s.Title != "Round the price." || s.Model != "claude-3-7-sonnet-20250219" || s.Wire != furl.FormatChat {
		t.Errorf("id %q, title %q, model %q, wire %q", s.ID, s.Title, s.Model, s.Wire)
	}
	if want := time.Date(2026, 2, 3, 9, 0, 0, 0, time.UTC); !s.Start().Equal(want) {
		t.Errorf("started at %v, want %v", s.Start(), want)
	}
	if len(rec.Notes) != 1 || !strings.Contains(rec.Notes[0], "skipped 1 chat without messages") {
		t.Errorf("notes %q", rec.Notes)
	}
	// "/clear" ended an earlier conversation.
	for i := 1; i <= s.Log.Len(); i++ {
		head, ok := s.Log.At(furl.Seq(i)).Body.(*furl.Head)
		if !ok {
			continue
		}
		st, err := furl.Fold(s.Log, head.From)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for j := range st.Len() {
			_, m := st.Message(j)
			got = append(got, string(m.Role)+" "+m.Blocks[0].Text)
		}
		want := []string{
			"user Round the price.\nTo two places.",
			"assistant I changed `Price`:\n\n> a quote of the model\n\n#### A heading of the model\n\n```go\nreturn math.Round(p*100) / 100\n```",
			"user /ask Why two?",
			"assistant Cents.",
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("before the clear\n%q\nwant\n%q", got, want)
		}
		return
	}
	t.Error("no rewind")
}

// A file whose line ends were trimmed has no markup except the first.
func TestAiderTrimmed(t *testing.T) {
	rec, err := Read("x", strings.NewReader("# aider chat started at yesterday\r\n\r\n#### Hello\r\n\r\nHi.\r\n\r\n> Tokens: 9\r\n#### /add x\r\n> Added\r\n#### Bye\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := only(t, rec)
	wantShown(t, s, "user Hello", "assistant Hi.", "user Bye")
	if s.ID != "yesterday" || !s.Start().IsZero() {
		t.Errorf("id %q, start %v", s.ID, s.Start())
	}
}

func TestAiderRecordings(t *testing.T) {
	dir, files := listing(t)
	for _, f := range files {
		if f.Format != "aider-markdown" {
			continue
		}
		rec, err := ReadFile(filepath.Join(dir, f.File))
		if err != nil {
			t.Fatal(err)
		}
		// 1,133 chats (see the README of the recordings), most of the shorter
		// ones without messages, and the text before the first heading.
		empty := 0
		for _, note := range rec.Notes {
			if strings.Contains(note, "without messages") {
				empty = numberIn(note)
			}
		}
		if len(rec.Sessions)+empty != 1133+1 || len(rec.Skipped) > 0 {
			t.Errorf("%d chats and %d without messages, want 1134; skipped %v", len(rec.Sessions), empty, rec.Skipped)
		}
	}
}

// numberIn returns the number in a note.
func numberIn(note string) int {
	n := 0
	for _, c := range note {
		if c >= '0' && c <= '9' {
			n = n*10 + int(c-'0')
		}
	}
	return n
}
