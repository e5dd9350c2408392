package web

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/furlhq/furl"
)

// markdownElements are the elements of Markdown, diffs and code, and inertAttributes their
// attributes. Ids and names could take the place of the page's own elements in scripts.
var (
	markdownElements = strings.Fields("html head body div p br hr em strong del code pre blockquote ul ol li h1 h2 h3 h4 h5 h6 table thead tbody tr th td span input a mark")
	inertAttributes  = strings.Fields("class href rel target type checked disabled start")
)

// checkInert fails if HTML of a text has an element, an attribute or an address that a
// text must not bring in.
func checkInert(t *testing.T, in, out string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.CommentNode {
			t.Fatalf("%q: a comment in %s", in, out)
		}
		if n.Type != html.ElementNode {
			continue
		}
		if !slices.Contains(markdownElements, n.Data) {
			t.Fatalf("%q: element <%s> in %s", in, n.Data, out)
		}
		for _, a := range n.Attr {
			address := a.Key == "href" && !strings.HasPrefix(strings.ToLower(a.Val), "http://") && !strings.HasPrefix(strings.ToLower(a.Val), "https://")
			if address || !slices.Contains(inertAttributes, a.Key) {
				t.Fatalf("%q: attribute %s=%q in %s", in, a.Key, a.Val, out)
			}
		}
	}
	if strings.ContainsAny(out, "\u202e\u2066\u200b\x1b\x00") {
		t.Fatalf("%q: an invisible character in %q", in, out)
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, text := range []string{
		"# a {#meter}\n<a id=meter name=act hx-get=x>", "[a](javascript:x) <javascript:x> [b](https://x.example \"t\")", "```html\" onclick=x\n<b>\n```",
		"![x](data:image/svg+xml,<svg onload=x>)", "| a |\n|---|\n| <td id=x> |", "- [ ] a\n1. b\n9999999999. c", "\u202e\x1b[31m", "[**a**](b)",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkInert(t, text, string(markdown(text)))
		checkInert(t, text, string(diff(text)))
		checkInert(t, text, string(code(text, "go")))
		checkInert(t, text, string(marked(text, strings.Fields(text))))
	})
}

func FuzzCall(f *testing.F) {
	for _, args := range []string{
		`{"file_path":"a.go","content":"<b>"}`, `{"old_string":"a","new_string":"<script>"}`, `{"command":["ls","<b>"]}`, `"*** Begin Patch\n+<b>"`, `{"a":[[{}]]}`, `{`, ``,
	} {
		f.Add("Edit", args, 10)
	}
	f.Fuzz(func(t *testing.T, name, args string, limit int) {
		b := &furl.Block{Kind: furl.KindCall, Name: name, Args: json.RawMessage(args)}
		text, _ := cut(args, max(0, limit))
		out := string(callHTML(b, text))
		checkInert(t, args, out)
		if len(out) > 100*len(args)+1000 {
			t.Fatalf("%q: %d bytes of HTML", args, len(out))
		}
		if title := callTitle(b); strings.ContainsAny(title, "\n\x1b\u202e") || len([]rune(title)) > maxName+102 {
			t.Fatalf("%q %q: title %q", name, args, title)
		}
	})
}

func FuzzBodyLines(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"b":"c\nd\\\"e"}]}`))
	f.Add([]byte("}}}{[\"\\"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := strings.Join(bodyLines(body), ""); got != string(body) {
			t.Fatalf("%q: the lines are %q", body, got)
		}
	})
}

func FuzzPictureIn(f *testing.F) {
	png := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	f.Add([]byte(`{"source":{"type":"base64","media_type":"image/png","data":"`+png+`"}}`), 0)
	f.Add([]byte(`[{"url":"data:image/svg+xml;base64,PHN2Zz4="},{"data":"`+png+`"}]`), 1)
	f.Add([]byte(`{"data":`), 0)
	f.Fuzz(func(t *testing.T, raw []byte, n int) {
		if n < 0 {
			return
		}
		if image := pictureIn(raw, n); len(image) > len(raw) || len(image) > 0 && !bytes.Contains(raw, []byte("data")) {
			t.Fatalf("%q: image %d has %d bytes", raw, n, len(image))
		}
	})
}
