package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire/anthropic"
)

// writer writes summaries.
type writer struct{}

func (writer) Summarize(context.Context, policy.SummaryRequest) (policy.Summary, error) {
	return policy.Summary{Text: "The build is slow:\n  1. it links twice\n  2. <b>nothing</b> is cached", Model: "claude-haiku-4-5"}, nil
}

// compacted is a session with a summary, in a window that it nearly fills.
func compacted(t *testing.T) (*session.Sessions, *session.Session) {
	t.Helper()
	all, _ := sessiontest.Open(t, session.Options{Policy: "compaction", Window: 20_000})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 20, 2000))
	red, err := s.Reduce(t.Context(), session.ReduceOptions{Stage: &policy.Compact{Summarizer: writer{}}})
	if err != nil || len(red.Planned) == 0 {
		t.Fatalf("no summary: %v, %s", err, red.Reason)
	}
	return all, s
}

// The page shows a summary as a marker (C8): collapsed, with its figures, the summary and
// what it hid; archived messages are dimmed, and the meter warns near the limit.
func TestBrowserMarker(t *testing.T) {
	all, s := compacted(t)
	url := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	red := s.Reductions()[0]
	b := browsertest.OpenURL(t, url)
	b.Wait(`!!document.querySelector('.row.marker')`)
	b.Run("C8 a collapsed marker", func(t *testing.T) {
		freed := strings.TrimSuffix(strings.TrimPrefix(b.Text(".row.marker .line"), fmt.Sprintf("Context Compacted #1 — %d messages archived, ~", red.Archived)), " tokens freed")
		if freed == "" || strings.ContainsAny(freed, " #") {
			t.Errorf("the marker says %q", b.Text(".row.marker .line"))
		}
		if browsertest.Eval[bool](b, `document.querySelector('.row.marker details').open`) {
			t.Error("the marker is open")
		}
		if browsertest.Eval[bool](b, `getComputedStyle(document.querySelector('.row.marker')).backgroundColor === getComputedStyle(document.body).backgroundColor`) {
			t.Error("the marker has no background of its own")
		}
	})
	b.Run("C8 the summary inside", func(t *testing.T) {
		b.Click(".row.marker summary")
		b.Wait(`document.querySelector('.row.marker details').open`)
		if got := browsertest.Eval[string](b, `document.querySelector('.row.marker details').innerText`); !strings.Contains(got, "Summary from LLM:") || !strings.Contains(got, "\n  1. it links twice\n  2. <b>nothing</b>") {
			t.Errorf("the marker contains %q", got)
		}
		b.Screenshot("compacted")
	})
	b.Run("C8 archived messages are dimmed", func(t *testing.T) {
		got := browsertest.Eval[[]int](b, `[document.querySelectorAll('.hidden-row').length, document.querySelectorAll('.hidden-row .archive').length]`)
		if got[0] != red.Archived || got[1] < got[0] {
			t.Errorf("%d of %d archived messages are dimmed, with %d signs", got[0], red.Archived, got[1])
		}
		if browsertest.Eval[bool](b, `getComputedStyle(document.querySelector('.hidden-row .part')).color === getComputedStyle(document.body).color`) {
			t.Error("an archived message has the color of others")
		}
	})
	b.Run("C8 the meter warns near the limit", func(t *testing.T) {
		if got := b.Text("#meter"); strings.Contains(got, "close to") {
			t.Errorf("the meter warns too early: %s", got)
		}
		for i := range 40 {
			id := fmt.Sprintf("more_%d", i)
			sessiontest.AppendAll(t, s, []*furl.Message{
				sessiontest.Message(t, furl.RoleAssistant, sessiontest.Call(id, "read", `{"path":"a.go"}`)),
				sessiontest.Message(t, furl.RoleUser, sessiontest.Result(id, strings.Repeat("words ", 400))),
			})
		}
		b.Wait(`document.getElementById('meter').textContent.includes('close to') || document.getElementById('meter').textContent.includes('above')`)
		browsertest.Eval[any](b, `scrollTo(0, document.body.scrollHeight)`)
		b.Wait(`scrollY > 1000 && (r => r.top >= 0 && r.bottom < 120)(document.querySelector('#meter .warn').getBoundingClientRect())`)
		if used := browsertest.Eval[bool](b, `getComputedStyle(document.querySelector('.axis .used')).color === getComputedStyle(document.querySelector('#meter .warn')).color`); !used {
			t.Error("the size below the ribbon has another color than the warning")
		}
		b.Screenshot("near")
	})
	b.Silent()
}

// The line of a marker has the arrow, the text and the stage beside each other, also in a
// narrow window.
func TestBrowserMarkerNarrow(t *testing.T) {
	all, s := compacted(t)
	b := browsertest.OpenURL(t, serve(t, all, nil)+"/furl/sessions/"+string(s.ID()))
	b.Wait(`!!document.querySelector('.row.marker')`)
	for _, width := range []int64{1440, 1024, 390} {
		b.Size(width, 800)
		b.Drawn()
		at := browsertest.Eval[[]float64](b, `((line) => [line, ...line.children].map((e) => e.getBoundingClientRect().top))(document.querySelector('.row.marker summary'))`)
		for _, top := range at {
			if top > at[0]+6 {
				t.Errorf("at %d pixels, the parts of the line are at %v", width, at)
				break
			}
		}
	}
	b.Silent()
}

// What a reduction hid has a link that says what it is, also if it has no text.
func TestHiddenWithoutText(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{Policy: "sliding-window"})
	s := all.Create(storage.Meta{Model: "gpt-5.5"})
	steps := sessiontest.Steps(t, 20, 2000)
	thinking, err := anthropic.Codec.DecodeMessage([]byte(`{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2lnbmVk"},{"type":"text","text":"Done."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	sessiontest.AppendAll(t, s, append([]*furl.Message{steps[0], thinking, sessiontest.Message(t, furl.RoleUser, sessiontest.Text("Go on."))}, steps[1:]...))
	if _, err := s.Reduce(t.Context(), session.ReduceOptions{}); err != nil {
		t.Fatal(err)
	}
	_, text := get(t, serve(t, all, nil)+"/furl/sessions/"+string(s.ID()))
	if !strings.Contains(text, `<bdi>thinking</bdi></a>`) {
		t.Error("the hidden thinking has no link")
	}
	if strings.Contains(text, `<bdi></bdi></a>`) {
		t.Error("a link has no text")
	}
}

// A truncation is on the page, and leaves it with a rewind before it (T6).
func TestMarkerOnTheTimeline(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{Policy: "sliding-window"})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	sessiontest.AppendAll(t, s, sessiontest.Steps(t, 20, 2000))
	before := s.Head()
	if _, err := s.Reduce(t.Context(), session.ReduceOptions{}); err != nil {
		t.Fatal(err)
	}
	url := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	shown := func() bool {
		_, text := get(t, url)
		return strings.Contains(text, "Context Truncated — ")
	}
	t.Run("T6 shown", func(t *testing.T) {
		if !shown() {
			t.Error("the truncation is not on the page")
		}
	})
	t.Run("T6 gone after a rewind", func(t *testing.T) {
		if _, err := s.Rewind(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		if shown() {
			t.Error("the truncation is on the page after a rewind before it")
		}
	})
}
