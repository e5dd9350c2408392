package tui

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/internal/chat"
	"github.com/furlhq/furl/internal/visible"
)

// hostile are texts that would change the terminal if they were printed.
var hostile = []string{
	"\x1b]52;c;aGVsbG8=\x07", "\x1b]8;;https://evil\x1b\\text\x1b]8;;\x1b\\", "\x1b[2J\x1b[31m", "\x7f\x08\r\x00", "\u009b2J\u009d0;x\u009c",
	"\u202egnp.exe\u2066\u200b", "&#27;[2J &#x1b;]0;x&#7; &amp;#27;[31m &#x9b;2J &#x202e;", "`\x1b[31m`", "```\n\x1b[2J\n&#27;\n```", "[a](\x1b]0;x\x07)", "<\x1b[0m>",
	"| \x1b[1m | b |\n|---|---|\n| &#27;[1m | \x07 |", "\x1bP+q\x1b\\", "\x1bc", "![&#27;](&#27;)", "[&#27;[1mx](<&#27;> \"&#27;\")", "<https://a.b/&#27;>",
}

// checkSafe fails if lines have anything but text and colors, or are too wide. It
// returns the text.
func checkSafe(t *testing.T, lines []string, width int) string {
	t.Helper()
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > width {
			t.Errorf("line of %d columns, expected at most %d: %q", w, width, l)
		}
		rest, state := l, byte(0)
		for rest != "" {
			seq, _, n, next := ansi.DecodeSequence(rest, state, nil)
			rest, state = rest[n:], next
			if strings.HasPrefix(seq, "\x1b") {
				if !isColor(seq) {
					t.Errorf("sequence %q in %q", seq, l)
				}
				continue
			}
			if strings.Map(visible.Rune, seq) != seq {
				t.Errorf("character %q in %q", seq, l)
			}
		}
	}
	return ansi.Strip(strings.Join(lines, "\n"))
}

func TestHostile(t *testing.T) {
	for _, text := range hostile {
		var m markdown
		m.signs = &unicodeSigns
		got := checkSafe(t, m.render(text, 60), 60)
		if strings.HasPrefix(text, "&#27;[") && !strings.Contains(got, "&#27;[") {
			t.Errorf("the reference in %q is decoded: %q", text, got)
		}
		checkSafe(t, userLines(text, 0, 60, &unicodeSigns), 60)
		checkSafe(t, diffLines(text, 60), 60)
		checkSafe(t, markerLines(text, 60, &unicodeSigns), 60)
		call := agent.Call{Name: text, Input: fmt.Appendf(nil, `{"path":%q}`, text)}
		checkSafe(t, callLines(call, nil, 0, 60, &unicodeSigns), 60)
		checkSafe(t, folded{title: label(text), text: text}.lines(60, &unicodeSigns), 60)
		info := chat.Info{Session: "s", Model: text, Provider: text, Dir: text}
		checkSafe(t, []string{statusLine(info, &chat.Meter{Size: 1, Window: 2, Kinds: []chat.Kind{{Name: text, Tokens: 1}}}, time.Time{}, 60, &unicodeSigns)}, 60)
	}
}

// What a model, a tool and a command say is printed without its control characters.
func TestHostileRun(t *testing.T) {
	all := strings.Join(hostile, "\n\n")
	conv := newScript(func(ctx context.Context, ask chat.Asker, emit func(agent.Event) bool) error {
		emit(agent.ThinkingDelta{Text: all})
		emit(agent.TextDelta{Text: all})
		emit(agent.CallWriting{Name: all})
		emit(agent.CallStarted{Call: agent.Call{ID: "1", Name: all}})
		emit(agent.SummaryStarted{Model: all})
		emit(agent.SummaryFailed{Err: fmt.Errorf("%s", all)})
		emit(agent.Replied{})
		return fmt.Errorf("%s", all)
	})
	conv.info.Model, conv.info.Dir, conv.info.Notices = all, all, []string{all}
	conv.entries = []chat.Entry{{Kind: chat.User, Text: all}, {Kind: chat.Marker, Text: all}, {Kind: chat.Text, Text: all, Hidden: true}}
	conv.command = func(context.Context, chat.Asker, string, int) chat.Reply {
		return chat.Reply{Text: all, Err: fmt.Errorf("%s", all), Input: all}
	}
	tt := newTester(t, conv, 60, 20) // it fails for sequences that screen does not write
	tt.types("x")
	tt.keys("enter")
	tt.settle()
	tt.types("/x")
	tt.keys("enter")
	tt.settle()
	checkSafe(t, strings.Split(tt.term.text(), "\n"), 60)
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, uint8(40))
	}
	f.Add("# a\n\n1. b\n   - c\n> d\n\n```go\nx := 1\n```\n\n| a | b |\n|--|--|\n| 漢字 | 👨‍👩‍👧 |\n", uint8(20))
	f.Fuzz(func(t *testing.T, text string, width uint8) {
		var m markdown
		m.signs = &unicodeSigns
		w := max(int(width), 4)
		checkSafe(t, m.render(text, w), w)
		var whole, bytewise paragraphs
		want := append(whole.add(text), whole.end())
		var got []string
		for i := range len(text) {
			got = append(got, bytewise.add(text[i:i+1])...)
		}
		if got = append(got, bytewise.end()); strings.Join(got, "\x00") != strings.Join(want, "\x00") {
			t.Errorf("paragraphs of %q: %q, expected %q", text, got, want)
		}
	})
}

func TestMarkdown(t *testing.T) {
	var m markdown
	m.signs = &unicodeSigns
	wide := strings.Repeat("|a", 10) + "\n" + strings.Repeat("|-", 10) + strings.Repeat("\n|x", 900) // 9,000 cells
	for text, want := range map[string]string{
		"use Vec<T> & `a<b>` &amp; <b>x</b>":      "use Vec<T> & a<b> &amp; <b>x</b>",
		"```html\n<b>&amp;</b>\n```":              "  <b>&amp;</b>",
		"[l](https://a.b/?c=1&d=2)":               "l https://a.b/?c=1&d=2",
		"2. two\n3. three":                        "2. two\n3. three",
		"- [x] done\n- [ ] open":                  "[✓] done\n[ ] open",
		"> quoted":                                "│ quoted",
		"```\nvery long line of code here\n```\n": "  very long line of code here",
		"- an item of a list that is wrapped under its text\n  1. a\n  2. b\n\n     c\n- d": "• an item of a list that is wrapped\n  under its text\n  1. a\n  2. b\n\n     c\n• d",
		"> a\n>\n> - b\n> ```\n> c\n> ```":                                                  "│ a\n│\n│ • b\n│\n│   c",
		"| a | b |\n|---|--:|\n| x | 1,000 |":                                               " a │     b\n───┼───────\n x │ 1,000",
		"# A *b*\n***\n![c](d) [](e) [f]() https://g.hh/":                                   "# A b\n\n--------\n\nImage: c → d e f https://g.hh/",
		"[r]: https://a.b/\n\\*not\\* &copy; ~~gone~~ ``x\ny``":                             "[r]: https://a.b/\n*not* &copy; gone x y",
		wide:                                wide,
		strings.Repeat(">", 5000) + " deep": strings.Repeat(strings.Repeat(">", 40)+"\n", 125) + "deep",
	} {
		if got := checkSafe(t, m.render(text, 40), 40); got != want {
			t.Errorf("%q is shown as\n%s\nexpected\n%s", headOf(text, 100), got, want)
		}
	}
	styled := strings.Join(m.render("**a** *b* [c](d)\n```go\nfunc f() int { return 1 } // x\n```", 40), "\n")
	for _, want := range []string{bold.Render("a"), "\x1b[4;34md\x1b[m", "\x1b[34mfunc\x1b[m", "\x1b[36mint\x1b[m", "\x1b[35m1\x1b[m", "\x1b[90m// x\x1b[m"} {
		if !strings.Contains(styled, want) {
			t.Errorf("%q is missing in %q", want, styled)
		}
	}
}

// draw leaves the terminal as if everything had been written at once, whatever was drawn
// before.
func TestScreenDraws(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		term := newTerminal(30, 12)
		s := &screen{w: term, width: 30}
		var printed []string
		line := func() string { return strings.Repeat("ab字 ", r.IntN(7)) + fmt.Sprint(r.IntN(100)) }
		lines := func(n int) (out []string) {
			for range n {
				out = append(out, cut(line(), 30, ""))
			}
			return out
		}
		for range 40 {
			above := lines(max(0, r.IntN(12)-6))
			frame := lines(1 + r.IntN(8))
			cursor := &place{r.IntN(len(frame)), r.IntN(30)}
			if r.IntN(4) == 0 {
				cursor = nil
			}
			s.draw(above, frame, cursor)
			printed = append(printed, above...)
			var want []string
			for _, l := range append(printed[:len(printed):len(printed)], frame...) {
				want = append(want, strings.TrimRight(l, " "))
			}
			if got := term.text(); got != strings.Join(want, "\n") {
				t.Fatalf("seed %d: the terminal shows\n%s\nexpected\n%s", seed, got, strings.Join(want, "\n"))
			}
			if cursor == nil != term.hidden {
				t.Fatalf("seed %d: cursor hidden %v", seed, term.hidden)
			}
			if row := term.top + term.row - len(printed); cursor != nil && (row != cursor.row || term.col != cursor.col) {
				t.Fatalf("seed %d: cursor in line %d, column %d of the frame, expected %v", seed, row, term.col, *cursor)
			}
		}
		if len(term.unknown) > 0 {
			t.Fatalf("seed %d: the screen wrote %s", seed, term.unknown)
		}
	}
}

// A token of a reply writes a few bytes, not the screen.
func TestBytesPerToken(t *testing.T) {
	const n = 1000
	tt := newTester(t, newScript(func(_ context.Context, _ chat.Asker, emit func(agent.Event) bool) error {
		for i := range n {
			emit(agent.TextDelta{Text: fmt.Sprintf("token%d ", i)})
			if i%100 == 99 {
				emit(agent.TextDelta{Text: "\n\n"})
			}
		}
		emit(agent.Replied{})
		return nil
	}), 200, 60)
	tt.types("x")
	before := tt.term.bytes
	tt.keys("enter")
	tt.wait("the run has ended", func() bool {
		tt.update(tick{}) // draw each token
		return tt.m.run == nil
	})
	if per := (tt.term.bytes - before) / n; per > 2*200 {
		t.Errorf("%d bytes for each token, expected at most two lines of 200 columns", per)
	} else {
		t.Logf("%d bytes for each token of about 10 bytes", per)
	}
}

func TestMeter(t *testing.T) {
	info := chat.Info{Session: "01JD9XQZK3M", Model: "claude-sonnet-4-5", Simulated: true}
	meter := chat.Meter{Size: 84000, Window: 200000, Threshold: 160000, Hidden: 1245,
		Kinds: []chat.Kind{{Name: "system", Tokens: 9000}, {Name: "text", Tokens: 20000}, {Name: "results", Tokens: 55000}}}
	for width, want := range map[int]string{
		200: "claude-sonnet-4-5 · 01JD9XQZ · ████████░░░░░░░░░░░░ 42% of 200k · simulated · system 11% text 24% results 65% · 1,245 hidden",
		100: "claude-sonnet-4-5 · 01JD9XQZ · ███████░░░░░░░░░ 42% of 200k · simulated · 1,245 hidden",
		50:  "claude-sonnet-4… · ███░░░░░ 42% of 200k · simulat…",
		30:  "claude-sonnet-4… · 42% of 200…",
	} {
		line := statusLine(info, &meter, time.Time{}, width, &unicodeSigns)
		if got := checkSafe(t, []string{line}, width); got != want {
			t.Errorf("%d columns: %s\nexpected   %s", width, got, want)
		}
	}
	meter.Kinds, meter.Hidden = nil, 0
	meter.Next = func(now time.Time) []string {
		return []string{fmt.Sprintf("cache expires in %d:00 · next input $0.09, after that $1.71, reduced $0.22", now.Minute()), fmt.Sprintf("cache %d:00 · next $0.09", now.Minute())}
	}
	at := time.Date(2026, 11, 29, 12, 3, 0, 0, time.UTC)
	for width, want := range map[int]string{
		160: "claude-sonnet-4-5 · 01JD9XQZ · ████████░░░░░░░░░░░░ 42% of 200k · simulated · cache expires in 3:00 · next input $0.09, after that $1.71, reduced $0.22",
		100: "claude-sonnet-4-5 · 01JD9XQZ · ███████░░░░░░░░░ 42% of 200k · simulated · cache 3:00 · next $0.09",
		80:  "claude-sonnet-4-5 · 01JD9XQZ · ███░░░░░ 42% of 200k · simulated",
	} {
		if got := checkSafe(t, []string{statusLine(info, &meter, at, width, &unicodeSigns)}, width); got != want {
			t.Errorf("%d columns: %s\nexpected   %s", width, got, want)
		}
	}
	billed := info
	billed.Simulated = false
	if got := checkSafe(t, []string{statusLine(billed, &meter, at, 80, &unicodeSigns)}, 80); got != "claude-sonnet-4-5 · 01JD9XQZ · ███░░░░░ 42% of 200k · cache 3:00 · next $0.09" {
		t.Errorf("80 columns: %s", got)
	}
	for size, style := range map[int]string{100000: "50% of 200k", 128000: yellow.Render("64% of 200k"), 160000: red.Render("80% of 200k")} {
		meter.Size = size
		if got := meterText(meter); got != style {
			t.Errorf("%d tokens: %q, expected %q", size, got, style)
		}
	}
	for _, m := range []chat.Meter{{}, {Size: -5, Window: 10}, {Size: 500, Window: 10, Kinds: []chat.Kind{{Tokens: -1}, {Tokens: 5}}}} {
		checkSafe(t, []string{statusLine(info, &m, time.Time{}, 80, &unicodeSigns)}, 80)
	}
	if got := ansi.Strip(statusLine(info, &meter, time.Time{}, 80, &asciiSigns)); strings.ContainsFunc(got, func(r rune) bool { return r > 126 }) {
		t.Errorf("not ASCII: %s", got)
	}
}

func TestSigns(t *testing.T) {
	for _, test := range []struct {
		env   string
		ascii bool
	}{{"LANG=en_US.UTF-8", false}, {"LANG=C", true}, {"LANG=C LC_ALL=C.utf8", false}, {"TERM=dumb LANG=C.UTF-8", true}, {"", false}} {
		if got := signsFor(environment(strings.Fields(test.env))) == &asciiSigns; got != test.ascii {
			t.Errorf("%q: ASCII %v", test.env, got)
		}
	}
}

// BenchmarkKey is a key and a token while a long reply arrives.
func BenchmarkKey(b *testing.B) {
	conv := newScript()
	m := newModel(b.Context(), conv, &history{}, &unicodeSigns)
	term := newTerminal(200, 60)
	m.display = &screen{w: term}
	m.width, m.height, m.ready = 200, 60, true
	m.resizeInputs()
	m.stream.resize(200)
	_, j := m.newJob()
	m.run = j
	word := strings.Repeat("word ", 20) + "\n"
	m.Update(runEvent{job: j, event: agent.TextDelta{Text: "```\n" + strings.Repeat(word, 2000)}})
	for b.Loop() {
		m.Update(runEvent{job: j, event: agent.TextDelta{Text: "token "}})
		m.Update(keyPress("x"))
		m.Update(keyPress("backspace"))
	}
}
