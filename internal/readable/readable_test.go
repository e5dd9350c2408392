package readable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire/anthropic"
)

// hostile are texts that try to become markup.
var hostile = []string{
	"<script>alert(1)</script>", "</pre></details><img src=x onerror=alert(1)>", "```\n<b>out</b>\n```", "````\n# out\n`````",
	"\n```text\n", "]]>--><!-- ", "\" onmouseover=\"alert(1)", "' style='x", "{{.}}", "[a](javascript:alert(1))", "![x](https://example.com/p.png)",
	"\x00\x1b[2J\x9b", "\u202egnp.exe", "\r# carriage\r```\r", "&lt;b&gt;", "</style><style>*{}", "\xff\xfe", "a\u2028b", "~~~\n<i>\n~~~", "    <u>", "*/", "\\`<x>",
	"plain words", "",
}

// session is a session in which every text may be one of the texts.
func session(t testing.TB, rng *rand.Rand, texts []string) *Session {
	t.Helper()
	say := func() string { return texts[rng.IntN(len(texts))] }
	log := furl.NewLog()
	n := 0
	add := func(by furl.Actor, body furl.Body) furl.Seq {
		n++
		r, err := log.Append(log.Head(), time.Date(2026, 11, 21, 9, n%60, 0, 0, time.UTC), by, body)
		if err != nil {
			t.Fatal(err)
		}
		return r.Seq
	}
	message := func(role furl.Role, blocks ...furl.Block) furl.Seq {
		m := &furl.Message{Role: role, Blocks: blocks}
		for i := range m.Blocks {
			m.Blocks[i].Tokens = rng.IntN(3000)
		}
		return add(furl.Client, m)
	}
	text := func() furl.Block { return furl.Block{Kind: furl.KindText, Text: say()} }
	first := message(furl.RoleUser, text(), furl.Block{Kind: furl.KindImage, Media: []furl.Media{{Kind: furl.KindImage, Type: say(), Bytes: 9, Width: 3, Height: 4}}})
	var result furl.Seq
	for i := range 3 {
		add(furl.Furl, &furl.Exchange{Usage: furl.Usage{Input: 1234}})
		id := fmt.Sprint(say(), i)
		args, _ := json.Marshal(say())
		message(furl.RoleAssistant, furl.Block{Kind: furl.KindThinking, Text: say()}, text(), furl.Block{Kind: furl.KindCall, ID: id, Name: say(), Args: args})
		result = message(furl.RoleTool, furl.Block{Kind: furl.KindResult, ID: id, Text: say(), Error: i == 1})
		message(furl.RoleUser, text(), furl.Block{Kind: furl.KindOpaque, Name: say(), Text: say()})
	}
	at := func(seq furl.Seq) []furl.Span {
		return []furl.Span{{First: furl.Pos{Msg: seq}, Last: furl.Pos{Msg: seq}}}
	}
	add(furl.Furl, &furl.Reduction{Stage: say(), Reason: say(), Before: 2000, After: 900, Items: []furl.Item{{Spans: at(result), Show: furl.In{Text: say()}}}})
	taken := add(furl.Furl, &furl.Reduction{Stage: "clip", Items: []furl.Item{{Spans: at(first), Show: furl.In{Text: say()}}}})
	add(furl.Person, &furl.Restoration{Of: taken})
	v := log.State().View(furl.Model{})
	add(furl.Furl, &furl.Reduction{
		Stage: "compact", Reason: say(), Before: 1_150_000, After: 1_000_000, Summary: &furl.Summary{Number: 1, Messages: 45, Text: say(), Model: say()},
		Items: []furl.Item{{Spans: v.Spans(v.Units[:2]...), Show: furl.Mark{Messages: []*furl.Message{furl.TextMessage(furl.RoleUser, "m"+say())}}}},
	})
	add(furl.Person, &furl.Restoration{Spans: at(result), Hold: furl.Pin})
	message(furl.Role(say()), text())
	return &Session{
		ID: say(), Title: say(), Model: say(), Log: log, State: log.State(),
		Preamble: []furl.Block{{Kind: furl.KindText, Text: say()}, {Kind: furl.KindOpaque, Name: say(), Text: say()}},
	}
}

func sessions(t *testing.T, f func(s *Session)) {
	for seed := range uint64(60) {
		s := session(t, rand.New(rand.NewPCG(3, seed)), hostile)
		f(s)
		s.View = s.State.View(furl.Model{})
		f(s)
		s.Structure = true
		f(s)
		s.View = nil
		f(s)
	}
}

// The elements and attributes that the page may contain.
var allowed = map[string][]string{
	"html": {"lang"}, "head": nil, "meta": {"charset", "http-equiv", "content", "name"}, "title": nil, "style": nil, "body": nil,
	"header": nil, "h1": nil, "h2": nil, "p": {"class", "id"}, "code": nil, "main": nil, "details": {"class", "open"}, "summary": nil, "pre": nil,
	"article": {"class", "id"}, "section": {"class", "id"}, "span": {"aria-hidden", "class"}, "a": {"href", "class", "tabindex"}, "div": {"class"},
	"svg": {"class", "width", "height", "viewBox", "preserveAspectRatio", "aria-hidden"}, "defs": nil, "pattern": {"id", "width", "height", "patternUnits", "patternTransform"},
	"rect": {"class", "x", "y", "width", "height", "fill"}, "path": {"class", "d"}, "polyline": {"points"},
	"ul": {"class"}, "li": nil, "b": nil, "dl": {"class"}, "dt": nil, "dd": nil,
}

// No text of a session becomes markup.
func TestHTMLIsInert(t *testing.T) {
	sessions(t, func(s *Session) {
		var out bytes.Buffer
		if err := s.HTML(&out, nil); err != nil {
			t.Fatal(err)
		}
		doc, err := html.Parse(bytes.NewReader(out.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for n := range doc.Descendants() {
			if n.Type == html.CommentNode {
				t.Errorf("a comment %q", n.Data)
			}
			if n.Type != html.ElementNode {
				continue
			}
			count[n.Data]++
			attrs, ok := allowed[n.Data]
			if !ok {
				t.Fatalf("an element <%s> in\n%s", n.Data, out.String())
			}
			for _, a := range n.Attr {
				if !slices.Contains(attrs, a.Key) {
					t.Errorf("<%s> has %s=%q", n.Data, a.Key, a.Val)
				}
				if a.Key == "href" && (!strings.HasPrefix(a.Val, "#r") || !bytes.Contains(out.Bytes(), []byte(` id="`+a.Val[1:]+`"`))) {
					t.Errorf("a link to %q", a.Val)
				}
			}
		}
		if count["style"] != 1 || count["head"] != 1 || count["main"] != 1 || count["title"] != 1 {
			t.Errorf("the page has %v", count)
		}
		if i := strings.IndexFunc(out.String(), unseen); i >= 0 {
			t.Errorf("%q passes", out.String()[i:i+4])
		}
	})
}

// Outside of the fences there is no HTML, no link and no image, and each
// fence ends in the right place.
func TestMarkdownIsInert(t *testing.T) {
	sessions(t, func(s *Session) {
		var out bytes.Buffer
		if err := s.Markdown(&out, nil); err != nil {
			t.Fatal(err)
		}
		fence := ""
		for l := range strings.SplitSeq(out.String(), "\n") {
			if fence != "" {
				if marks := strings.TrimRight(strings.TrimLeft(l, " "), " \t"); strings.Trim(marks, "`") == "" && len(marks) >= len(fence) {
					if l != fence {
						t.Fatalf("a fence of %q ends with %q", fence, l)
					}
					fence = ""
				}
				continue
			}
			if strings.HasPrefix(l, "```") {
				fence = l[:strings.LastIndexByte(l, '`')+1]
				if info := l[len(fence):]; info != "text" && info != "json" {
					t.Fatalf("a fence begins with %q", l)
				}
				continue
			}
			for i, c := range l {
				if strings.ContainsRune("<>[]`!", c) && (i == 0 || l[i-1] != '\\') {
					t.Fatalf("%q is outside of the fences in %q", c, l)
				}
			}
			if l != "" && !strings.HasPrefix(l, "# ") && !strings.HasPrefix(l, "## ") && !strings.HasPrefix(l, "- ") && !strings.HasPrefix(l, "*") && l != "---" {
				t.Fatalf("a line begins as none of ours: %q", l)
			}
		}
		if fence != "" {
			t.Fatalf("the fence %q does not end", fence)
		}
		if i := strings.IndexFunc(out.String(), unseen); i >= 0 {
			t.Errorf("%q passes", out.String()[i:i+4])
		}
	})
}

// The page says what is hidden and by which reduction, and contains the texts
// (C5, C8).
func TestReadsLikeTheSession(t *testing.T) {
	m, err := anthropic.Codec.DecodeMessage([]byte(`{"role":"user","content":"find the slow test"}`))
	if err != nil {
		t.Fatal(err)
	}
	log := furl.NewLog()
	add := func(body furl.Body) {
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, body); err != nil {
			t.Fatal(err)
		}
	}
	add(m)
	add(furl.TextMessage(furl.RoleAssistant, "it is\n  the store's"))
	v := log.State().View(furl.Model{})
	add(&furl.Reduction{
		Stage: "compact", Before: 250_000, After: 100_000, Summary: &furl.Summary{Number: 1, Messages: 45, Text: "the store\n  is slow", Model: "m"},
		Items: []furl.Item{{Spans: v.Spans(v.Units...), Show: furl.Mark{Messages: []*furl.Message{furl.TextMessage(furl.RoleUser, "in short")}}}},
	})
	s := &Session{ID: "id", Title: "A test", Log: log, State: log.State()}
	for name, write := range map[string]func() string{
		"html":     func() string { var b bytes.Buffer; _ = s.HTML(&b, nil); return html.UnescapeString(b.String()) },
		"markdown": func() string { var b bytes.Buffer; _ = s.Markdown(&b, nil); return b.String() },
	} {
		got := strings.NewReplacer(`\#`, "#", `\~`, "~").Replace(write())
		for _, want := range []string{
			"A test", "find the slow test", "it is\n  the store's", "hidden by compact, record 3",
			"Context Compacted #1 — 45 messages archived, ~150,000 tokens freed", "Summary from LLM:", "the store\n  is slow",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
		s.View = log.State().View(furl.Model{})
		if got := write(); strings.Contains(got, "find the slow test") || !strings.Contains(got, "in short") || !strings.Contains(got, "in place of 2 messages") {
			t.Errorf("%s: what the model sees:\n%s", name, got)
		}
		s.View = nil
	}
}

func TestWritingEnds(t *testing.T) {
	s := session(t, rand.New(rand.NewPCG(1, 1)), []string{"words"})
	stop := errors.New("stop")
	for name, write := range map[string]func(*bytes.Buffer, Step) error{
		"html":     func(b *bytes.Buffer, step Step) error { return s.HTML(b, step) },
		"markdown": func(b *bytes.Buffer, step Step) error { return s.Markdown(b, step) },
	} {
		calls := 0
		if err := write(&bytes.Buffer{}, func(done, total int) error { calls++; return nil }); err != nil || calls != s.Log.Len() {
			t.Errorf("%s: %d steps of %d, %v", name, calls, s.Log.Len(), err)
		}
		if err := write(&bytes.Buffer{}, func(done, total int) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%s: stopped: %v", name, err)
		}
	}
}

func FuzzInert(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		s := session(t, rand.New(rand.NewPCG(9, seed)), []string{text, "words"})
		var page, md bytes.Buffer
		if err := s.HTML(&page, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Markdown(&md, nil); err != nil {
			t.Fatal(err)
		}
		doc, err := html.Parse(bytes.NewReader(page.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		for n := range doc.Descendants() {
			if n.Type == html.ElementNode && allowed[n.Data] == nil && !slices.Contains([]string{"head", "title", "style", "body", "header", "h1", "h2", "code", "main", "summary", "pre", "defs", "li", "b", "dt", "dd"}, n.Data) {
				t.Fatalf("an element <%s> from %q", n.Data, text)
			}
		}
	})
}

// A block with a replaced text is shown with both texts, each of several with
// its own.
func TestInstead(t *testing.T) {
	log := furl.NewLog()
	add := func(body furl.Body) {
		if _, err := log.Append(log.Head(), time.Time{}, furl.Client, body); err != nil {
			t.Fatal(err)
		}
	}
	var items []furl.Item
	for i := range 5 {
		id := fmt.Sprint("c", i)
		add(&furl.Message{Role: furl.RoleAssistant, Blocks: []furl.Block{{Kind: furl.KindCall, ID: id, Name: "read", Args: []byte(`{}`)}}})
		add(&furl.Message{Role: furl.RoleTool, Blocks: []furl.Block{{Kind: furl.KindResult, ID: id, Text: fmt.Sprint("original ", i)}}})
		at := furl.Pos{Msg: furl.Seq(2*i + 2)}
		items = append(items, furl.Item{Spans: []furl.Span{{First: at, Last: at}}, Show: furl.In{Text: fmt.Sprint("stand-in ", i)}})
	}
	slices.Reverse(items) // in no order
	add(&furl.Reduction{Stage: "mask", Items: items[:4]})
	s := &Session{ID: "id", Log: log, State: log.State()}
	var out bytes.Buffer
	if err := s.Markdown(&out, nil); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for i := range 5 {
		original := strings.Index(got, fmt.Sprint("original ", i))
		instead := strings.Index(got, fmt.Sprint("stand-in ", i))
		if original < 0 || i == 0 && instead >= 0 || i > 0 && instead < original {
			t.Errorf("original %d is at %d, its placeholder at %d", i, original, instead)
		}
	}
	if n := strings.Count(got, "hidden by mask, record 11"); n != 4 {
		t.Errorf("%d blocks are hidden by the mask, want 4", n)
	}
}
