package sim_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/demo"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/transcript"
)

const scriptText = `A script with a title on the side and a fault in between.
-- first --
think: Let me look.
text: I will look
at two lines.
call: read_file {"path": "a.txt"}
call: read_file {"path": "b.txt"}
-- trouble --
fault: 529
repeat: 2
-- second --
text: Done.
stop: end_turn
-- title --
when: (?i)title
text: A title
`

func TestScript(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			script, err := sim.ParseScript("s.txtar", []byte(scriptText))
			if err != nil {
				t.Fatal(err)
			}
			_, srv := serve(t, &sim.Options{Player: script})
			ask := func(list ...json.RawMessage) answered {
				return post(t, srv, d.d.path(), d.d.body(d.model, list, false))
			}
			hi := d.d.user("hi")
			back, calls, text := d.d.read(t, ask(hi).body, false)
			if text != "I will look\nat two lines." || len(calls) != 2 {
				t.Fatalf("first: %q, calls %q", text, calls)
			}
			if _, _, text := d.d.read(t, ask(d.d.user("Give it a title.")).body, false); text != "A title" {
				t.Errorf("title: %q", text)
			}
			results := []json.RawMessage{d.d.result(calls[0], "one"), d.d.result(calls[1], "two")}
			list := append(append(toList(hi), back...), joined(d.d, results)...)
			for range 2 {
				if a := ask(list...); a.status != 529 {
					t.Errorf("trouble: status %d", a.status)
				}
			}
			if _, _, text := d.d.read(t, ask(list...).body, false); text != "Done." {
				t.Errorf("second: %q", text)
			}
			if a := ask(list...); a.status != 400 || !strings.Contains(string(a.body), "the script has no answer left, it had 3") {
				t.Errorf("after the end: status %d: %s", a.status, a.body)
			}
		})
	}
}

func TestScriptErrors(t *testing.T) {
	tests := []struct{ script, want string }{
		{"", `no answers: each starts with a line such as "-- 1 --"`},
		{"-- 1 --\nhello\n", `answer "1": line "hello": expected`},
		{"-- 1 --\nstop: end_turn\n", "empty answer"},
		{"-- 1 --\ncall: f [1]\n", "expected a name and a JSON object"},
		{"-- 1 --\nfault: nothing\n", "expected a status"},
		{"-- 1 --\ntext: a\nrepeat: 0\n", "expected a number from 1"},
		{"-- 1 --\ntext: a\nwhen: (\n", "missing closing )"},
	}
	for _, tt := range tests {
		if _, err := sim.ParseScript("x.txtar", []byte(tt.script)); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "x.txtar: ") {
			t.Errorf("%q: %v, want …%s…", tt.script, err, tt.want)
		}
	}
}

func FuzzParseScript(f *testing.F) {
	f.Add([]byte(scriptText))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := sim.ParseScript("x", data); err == nil && s == nil {
			t.Error("neither a script nor an error")
		}
	})
}

// client is the other side of a recorded session: it sends the recorded user
// messages and results, and keeps the sim's answers.
type client struct {
	t     *testing.T
	d     dialect
	model string
	list  []json.RawMessage
	post  func(body string) answered
	most  int // requests; 0: no limit
}

// follow goes through one path of a session's log and compares the answers
// with the recorded ones. It returns the number of requests.
func (c *client) follow(s *transcript.Session) (requests int) {
	c.t.Helper()
	var want []furl.Block
	flush := func() {
		if !slices.ContainsFunc(want, func(b furl.Block) bool { return b.Kind == furl.KindCall || b.Kind == furl.KindText }) {
			want = nil // thinking alone is joined with the next reply
			return
		}
		requests++
		a := c.post(c.d.body(c.model, c.list, requests%2 == 0))
		if a.status != 200 || a.err != nil {
			c.t.Fatalf("request %d: status %d, %v: %s", requests, a.status, a.err, a.body)
		}
		back, calls, text := c.d.read(c.t, a.body, requests%2 == 0)
		var wantCalls []string
		var wantText strings.Builder
		for i := range want {
			switch want[i].Kind {
			case furl.KindCall:
				wantCalls = append(wantCalls, want[i].ID)
			case furl.KindText:
				wantText.WriteString(want[i].Text)
			}
		}
		if fmt.Sprint(calls) != fmt.Sprint(wantCalls) || text != wantText.String() && len(wantCalls) == 0 {
			c.t.Fatalf("request %d: got %q and calls %q, want %q and %q", requests, text, calls, wantText.String(), wantCalls)
		}
		c.list = append(c.list, back...)
		want = nil
	}
	for _, r := range s.Log.Path(s.Log.Head()) {
		if c.most > 0 && requests == c.most {
			return requests
		}
		m, ok := r.Body.(*furl.Message)
		switch {
		case !ok:
			if _, ok := r.Body.(*furl.Exchange); ok {
				flush()
			}
		case m.Role == furl.RoleAssistant:
			want = append(want, m.Blocks...)
		default:
			flush()
			c.say(m)
		}
	}
	flush()
	return requests
}

func (c *client) say(m *furl.Message) {
	var results []json.RawMessage
	for i := range m.Blocks {
		switch b := &m.Blocks[i]; b.Kind {
		case furl.KindResult:
			text := b.Text
			if text == "" {
				text = "(nothing)"
			}
			results = append(results, c.d.result(b.ID, text))
		case furl.KindText:
			if strings.TrimSpace(b.Text) != "" && m.Role == furl.RoleUser {
				defer func() { c.list = append(c.list, c.d.user(b.Text)) }()
			}
		}
	}
	if results != nil {
		results = joined(c.d, results)
	}
	c.list = append(c.list, results...)
}

// A session is played back in every format, and passes every check.
func TestPlayback(t *testing.T) {
	s := demo.Recording().Sessions[0]
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			double, srv := serve(t, &sim.Options{Player: sim.NewPlayback(s)})
			c := client{t: t, d: d.d, model: d.model, post: func(body string) answered { return post(t, srv, d.d.path(), body) }, most: 50}
			if n := c.follow(s); n < 50 {
				t.Errorf("%d requests", n)
			}
			if b := double.Bill(); b.Refused > 0 || b.Cost == 0 {
				t.Errorf("%+v", b)
			}
		})
	}
}

// Hidden and changed steps do not matter, as long as the newest is there;
// requests that are not in the recording get a text that says so.
func TestPlaybackFindsItsPlace(t *testing.T) {
	s := demo.Recording().Sessions[0]
	_, srv := serve(t, &sim.Options{Player: sim.NewPlayback(s)})
	d := anthropicDialect{}
	c := client{t: t, d: d, model: "claude-sonnet-4-5", post: func(body string) answered { return post(t, srv, d.path(), body) }, most: 30}
	c.follow(s)
	first := post(t, srv, d.path(), d.body(c.model, c.list[:1], false))
	_, _, begin := d.read(t, first.body, false)
	if again := post(t, srv, d.path(), d.body(c.model, toList(d.user("Something else altogether")), false)); true {
		if _, _, text := d.read(t, again.body, false); text != begin {
			t.Errorf("other words begin with %q, want %q", text, begin)
		}
	}
	tail := append(toList(d.user("[earlier steps are hidden]")), c.list[41:43]...)
	got := post(t, srv, d.path(), d.body(c.model, tail, false))
	want := post(t, srv, d.path(), d.body(c.model, c.list[:43], false))
	_, calls, text := d.read(t, got.body, false)
	_, wantCalls, wantText := d.read(t, want.body, false)
	if text != wantText || fmt.Sprint(calls) != fmt.Sprint(wantCalls) || len(calls) == 0 {
		t.Errorf("got %q %q, want %q %q", text, calls, wantText, wantCalls)
	}
	path := s.Log.Path(s.Log.Head())
	last := path[len(path)-1].Body.(*furl.Message)
	after := post(t, srv, d.path(), d.body(c.model, toList(d.user("hi"), last.Raw, d.user("More?")), false))
	if _, _, text := d.read(t, after.body, false); text != "[the recording has no answer to this]" {
		t.Errorf("after the end: %q", text)
	}
	title := `{"model":"claude-sonnet-4-5","max_tokens":50,"messages":[{"role":"user","content":"Write a title for: x"}]}`
	if _, _, text := d.read(t, post(t, srv, d.path(), title).body, false); text != "[the recording has no answer to this]" {
		t.Errorf("a side request: %q", text)
	}
}

// Every recording can be played back in its original format.
func TestPlaybackRecordings(t *testing.T) {
	dir := recordings.Dir(t)
	for rec, err := range transcript.Walk(dir) {
		if err != nil {
			continue // package transcript tests the import
		}
		for i, s := range rec.Sessions {
			if i >= 3 || s.Calls == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", rec.File[len(dir):], i), func(t *testing.T) {
				d := dialects[0]
				for _, other := range dialects {
					if formatOf(other.name) == s.Wire {
						d = other
					}
				}
				double, srv := serve(t, &sim.Options{Player: sim.NewPlayback(s), Window: 10_000_000})
				c := client{t: t, d: d.d, model: d.model, post: func(body string) answered { return post(t, srv, d.d.path(), body) }}
				c.most = 100 // the longest would take most of a minute
				if raceDetector {
					c.most = 20
				}
				c.follow(s)
				if b := double.Bill(); b.Refused > 0 {
					t.Errorf("%+v", b)
				}
			})
		}
	}
}

func formatOf(name string) furl.Format {
	switch name {
	case "chat":
		return furl.FormatChat
	case "responses":
		return furl.FormatResponses
	}
	return furl.FormatAnthropic
}
