package web_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// hostile are texts that a careless page would run, render or be misled by.
var hostile = []string{
	`<script>window.pwned = 1</script>`,
	`</pre></article><img src=x onerror="window.pwned = 2"><svg onload="window.pwned = 3">`,
	`[click](javascript:window.pwned=4) [data](data:text/html,<script>window.pwned=5</script>) ![x](https://attacker.example/a.png)`,
	"<a href=\"javascript:window.pwned=6\">a</a> <javascript:window.pwned=7> <style>body{display:none}</style>",
	"```html\n</code></pre><script>window.pwned = 8</script>\n```",
	"```\"><script>window.pwned=9</script>\ncode\n```",
	"{{.}} {{template \"head\"}} ${window.pwned=10}",
	"\u202egnp.exe\u2066 \u200b\u200e \x1b[31mred\x1b]8;;https://attacker.example\x07 \x00 \xff",
	`"><iframe src="https://attacker.example"></iframe><meta http-equiv="refresh" content="0;url=https://attacker.example">`,
	`hx-get="https://attacker.example" <div hx-on:click="window.pwned=11" hx-trigger="load">`,
	`<details open ontoggle="window.pwned=12"><form action="https://attacker.example"><button>`,
	"| a | b |\n|:--|--:|\n| <b onclick=x> | `</td><script>` |",
	`<p onclick="x" style="position:fixed;inset:0">`,
	"[x]: https://attacker.example 'onmouseover=window.pwned=13'\n\n[x] <https://attacker.example/\"onclick=x>",
}

// hostileSession has hostile texts everywhere a transcript can have a text.
func hostileSession(t testing.TB, all *session.Sessions) *session.Session {
	t.Helper()
	s := all.Create(storage.Meta{Model: hostile[0], Title: hostile[1] + hostile[7], Client: hostile[2], Project: "/home/" + hostile[1]})
	for i, text := range hostile {
		id := fmt.Sprintf("toolu_%d", i)
		args := fmt.Sprintf(`{"path":%q,"old_string":%q,"new_string":%q}`, text, text, text+"x")
		if i%3 == 1 {
			args = fmt.Sprintf(`{"command":%q}`, text)
		}
		args = strings.ToValidUTF8(strings.NewReplacer(`\x00`, `\u0000`, `\x1b`, `\u001b`, `\a`, `\u0007`, `\xff`, ``).Replace(args), "")
		sessiontest.AppendAll(t, s, []*furl.Message{
			sessiontest.Message(t, furl.RoleUser, sessiontest.Text(text)),
			sessiontest.Message(t, furl.RoleAssistant, sessiontest.Text(text), furl.Block{Kind: furl.KindCall, ID: id, Name: "Edit_" + text, Args: []byte(args)}),
			sessiontest.Message(t, furl.RoleUser, sessiontest.Result(id, strings.Repeat(text+"\n", 40))),
			sessiontest.Message(t, furl.RoleAssistant, sessiontest.Text(strings.Repeat(text, 3))),
		})
	}
	return s
}

// allowedElements are the elements that the page's own templates and its Markdown write.
var allowedElements = strings.Fields(`a article aside bdi blockquote body br button canvas code dd del details dialog div dl dt em figcaption figure
	fieldset footer form h1 h2 h3 h4 h5 h6 head header hr html img input kbd label legend li link main mark meta nav noscript ol option p polygon pre s script section
	select small span strong sub summary sup svg path rect table tbody td textarea tfoot th thead time title tr ul caption g circle line polyline text colgroup col`)

// expectInert fails if a page has an element, an attribute or an address that a transcript
// could have brought in.
func expectInert(t *testing.T, what, page string) {
	t.Helper()
	allowed := make(map[string]bool)
	for _, name := range allowedElements {
		allowed[name] = true
	}
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			if !allowed[token.Data] {
				t.Errorf("%s: element %s", what, token)
			}
			for _, a := range token.Attr {
				switch {
				case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc", strings.HasPrefix(a.Key, "hx-on"):
					t.Errorf("%s: attribute %s", what, token)
				case a.Key == "src", a.Key == "action", strings.HasPrefix(a.Key, "hx-") && a.Key != "hx-trigger" && a.Key != "hx-sync":
					if strings.Contains(a.Val, ":") {
						t.Errorf("%s: address %s", what, token)
					}
				case a.Key == "href":
					if v := strings.ToLower(a.Val); strings.Contains(v, ":") && !strings.HasPrefix(v, "https://") && !strings.HasPrefix(v, "http://") {
						t.Errorf("%s: address %s", what, token)
					}
				}
			}
			if token.Data == "script" {
				for _, a := range token.Attr {
					if a.Key == "src" && !strings.HasPrefix(a.Val, "/furl/assets/") {
						t.Errorf("%s: script %s", what, token)
					}
				}
				if z.Next() == html.TextToken && strings.TrimSpace(string(z.Text())) != "" {
					t.Errorf("%s: an inline script", what)
				}
			}
		}
	}
}

func TestHostile(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{Policy: "rolling-mask-10"})
	s := hostileSession(t, all)
	if _, err := s.Reduce(t.Context(), session.ReduceOptions{Policy: "rolling-mask-10"}); err != nil {
		t.Fatal(err)
	}
	url := serve(t, all, nil)
	page := url + "/furl/sessions/" + string(s.ID())
	paths := []string{url + "/", page, page + "?see=model", page + "/messages?chunk=0", page + "/messages?chunk=1", page + "/meter", page + "/requests/1"}
	log := sessiontest.Log(t, s)
	for i := range log.State().Len() {
		seq, m := log.State().Message(i)
		for j := range m.Blocks {
			paths = append(paths, fmt.Sprintf("%s/inspect?at=%d.%d", page, seq, j), fmt.Sprintf("%s/part?at=%d.%d", page, seq, j))
		}
	}
	for _, path := range paths {
		_, text := get(t, path)
		expectInert(t, path, text)
		for _, r := range "\u202e\u2066\u200b\x1b\x00" {
			if strings.ContainsRune(text, r) {
				t.Errorf("%s has the character %U", path, r)
			}
		}
	}
}

func TestBrowserHostile(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{Policy: "rolling-mask-10"})
	s := hostileSession(t, all)
	url := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	b := browsertest.OpenURL(t, url)
	b.Wait(`document.querySelectorAll('.row').length > 50`)
	browsertest.Eval[any](b, `document.querySelectorAll('#transcript details').forEach((d) => { d.open = true })`)
	b.Wait(`[...document.querySelectorAll('details[data-part]')].every((d) => d.dataset.loaded && !d.querySelector('.body > a'))`)
	// The same over the live stream.
	hostileMore := []*furl.Message{}
	for _, text := range hostile {
		hostileMore = append(hostileMore, sessiontest.Message(t, furl.RoleUser, sessiontest.Text(text)), sessiontest.Message(t, furl.RoleAssistant, sessiontest.Text("live "+text)))
	}
	sessiontest.AppendAll(t, s, hostileMore)
	last := s.Head()
	b.Wait(fmt.Sprintf(`!!document.getElementById('m%d')`, last))
	b.Screenshot("hostile")
	if browsertest.Eval[bool](b, `'pwned' in window || !!document.querySelector('#transcript script, #transcript iframe, #transcript style, #transcript svg, #transcript form:not([action^="/furl/"])')`) {
		t.Error("a text of the transcript was rendered as part of the page")
	}
	b.Silent()
}

// A text that is written from right to left ends on the left, and one in the other direction
// on the right.
func TestBrowserRightToLeft(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	s := all.Create(storage.Meta{Model: "claude-sonnet-4-5"})
	sessiontest.AppendAll(t, s, []*furl.Message{
		sessiontest.Message(t, furl.RoleUser, sessiontest.Text("\u0623\u0635\u0644\u062d \u0627\u0644\u0627\u062e\u062a\u0628\u0627\u0631.")),
		sessiontest.Message(t, furl.RoleAssistant, sessiontest.Text("Fixed.")),
	})
	b := browsertest.OpenURL(t, serve(t, all, nil)+"/furl/sessions/"+string(s.ID()))
	b.Wait(`document.querySelectorAll('.md p').length == 2`)
	endsRight := `[...document.querySelectorAll('.md p')].map((p) => {
		const end = (at) => { const r = document.createRange(); r.setStart(p.firstChild, at); r.setEnd(p.firstChild, at + 1); return r.getBoundingClientRect().left };
		return end(p.firstChild.length - 1) > end(0);
	})`
	if got := browsertest.Eval[[]bool](b, endsRight); got[0] || !got[1] {
		t.Errorf("the period is on the right: %v, want [false true]", got)
	}
}
