package web

import (
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"
)

func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a <b>c</b> d", "<p>a &lt;b&gt;c&lt;/b&gt; d</p>"},
		{"<system-reminder>\nbe *kind*\n</system-reminder>", "<pre class=\"plain\">&lt;system-reminder&gt;\nbe *kind*\n&lt;/system-reminder&gt;</pre>"},
		{"<script>\nx()\n</script>\nafter", "<pre class=\"plain\">&lt;script&gt;\nx()\n&lt;/script&gt;\n</pre><p>after</p>"},
		{"**b** `c` ~~d~~", "<p><strong>b</strong> <code>c</code> <del>d</del></p>"},
		{"[a](https://x.example/) [b](javascript:x)", `<p><a href="https://x.example/" rel="nofollow noreferrer noopener" target="_blank">a</a> <span class="dest">(https://x.example/)</span> b <span class="dest">(javascript:x)</span></p>`},
		{"[https://x.example/](https://x.example/)", `<p><a href="https://x.example/" rel="nofollow noreferrer noopener" target="_blank">https://x.example/</a></p>`},
		{`[a](https://x.example/ "words <b>")`, `<p><a href="https://x.example/" rel="nofollow noreferrer noopener" target="_blank">a</a> <span class="dest">(https://x.example/ &#34;words &lt;b&gt;&#34;)</span></p>`},
		{"[**word6**](word1)", `<p><strong>word6</strong> <span class="dest">(word1)</span></p>`},
		{"![alt](https://x.example/a.png)", `<p><span class="image">[image https://x.example/a.png]</span>alt</p>`},
		{"```go\nfunc f() {}\n```", `<span class="info">go</span><pre class="code"><span class="c-kd">func</span>`},
		{"```nothing\na < b\n```", `<span class="info">nothing</span><pre class="plain">a &lt; b`},
	} {
		got := strings.TrimSpace(strings.NewReplacer(`<div class="md">`, "", "</div>", "").Replace(string(markdown(c.in))))
		if !strings.HasPrefix(strings.ReplaceAll(got, "\n<p>", "<p>"), c.want) {
			t.Errorf("%q:\ngot  %s\nwant %s", c.in, got, c.want)
		}
	}
}

// Whatever a text has, all its words can be read, and no element of it is on the page.
func TestMarkdownKeepsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"<b x='y'>", "</div>", "word1", "*", "`", "\n", "\n\n", "<!-- word2 -->", "<?word3?>", "<![CDATA[word4]]>",
			"# ", "- ", "> ", "|", "```", "<script>word5</script>", "[word6](", ")", "    ", "&lt;", "<word7", ">", "\\", "<style>", "word8"}), 1, 12).Draw(t, "parts")
		in := strings.Join(parts, "")
		out := string(markdown(in))
		if strings.Contains(out, "<script") || strings.Contains(out, "<style") || strings.Contains(out, "<b") && !strings.Contains(out, "<blockquote") && !strings.Contains(out, "<br") {
			t.Fatalf("%q: %s", in, out)
		}
		if !strings.HasPrefix(out, `<div class="md">`) {
			t.Fatalf("%q: not shown as Markdown: %s", in, out)
		}
		node, err := html.Parse(strings.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for n := range node.Descendants() {
			if n.Type == html.TextNode {
				text.WriteString(n.Data)
			}
		}
		for _, word := range []string{"word1", "word2", "word3", "word4", "word5", "word6", "word7", "word8"} {
			if strings.Count(in, word) > strings.Count(text.String(), word) {
				t.Fatalf("%q: %s is missing in %s", in, word, out)
			}
		}
	})
}

// What the renderer does not write is not on the page, whatever renders it.
func TestOnlyAllowed(t *testing.T) {
	for _, html := range []string{
		"", "a", "<p>a</p>", `<ol start="3"><li>a</li></ol>`, `<input checked="" disabled="" type="checkbox" /> x`, "<br />", "<hr>", `<span class="c-kd">x</span>`,
		`<a href="https://x.example/?a=1&amp;b=2" rel="nofollow noreferrer noopener" target="_blank">`,
	} {
		if !onlyAllowed(html) {
			t.Errorf("%s is refused", html)
		}
	}
	for _, html := range []string{
		"<", "<p", "< p>", "<script>", "</script>", "<P>", "<img>", "<!-- -->", "<?x?>", "<p/onclick>", `<p onclick="x">`, `<p class="x">`, "<span class=x>", `<span class="x"id="y">`, `<span class="x" >`,
		`<span  class="x">`, `<span class="a\b">`, `<span class="x`, `<span class="a"b">`, `<input type="text">`, `<ol start="x">`, `<a href="javascript:x">`, `<a href="//x">`, `<a href="https://x" target="y">`,
		`<a href="https://x y">`, "<a\nhref=\"https://x\">", "<svg>", "<p></p><iframe>",
	} {
		if onlyAllowed(html) {
			t.Errorf("%s is allowed", html)
		}
	}
	for text, want := range map[string]string{
		"<https://x.example/> <a@b.example> <ftp://x.example>": `<p><a href="https://x.example/" rel="nofollow noreferrer noopener" target="_blank">https://x.example/</a> a@b.example ftp://x.example</p>`,
		"[a](/b) [c](//d) [e](HTTP://f) [g](https:h)":          `<p>a <span class="dest">(/b)</span> c <span class="dest">(//d)</span> <a href="HTTP://f" rel="nofollow noreferrer noopener" target="_blank">e</a> <span class="dest">(HTTP://f)</span> g <span class="dest">(https:h)</span></p>`,
	} {
		if got := string(markdown(text)); got != `<div class="md">`+want+"\n</div>" {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// The HTML of a text is not much longer than the text, whatever it has.
func TestMarkdownBounds(t *testing.T) {
	deep, lines := "", ""
	for i := 0; len(deep) < maxMarkdown-400; i++ {
		deep += strings.Repeat(" ", min(2*i, 300)) + "- a\n"
	}
	for i := 1; len(lines) < maxMarkdown-500; i++ {
		lines += strings.Repeat("`", i%300) + "a\n"
	}
	for name, in := range map[string]string{
		"brackets":      strings.Repeat(strings.Repeat("[", 4000)+"\n", 16),
		"stars":         strings.Repeat(strings.Repeat("*a ", 2600)+"\n", 8),
		"emphasis":      strings.Repeat("**a*b_", 1300),
		"quotes":        strings.Repeat(strings.Repeat(">", 8000)+"\n", 8),
		"spaced quotes": strings.Repeat("> ", 4000) + "\n" + strings.Repeat("> ", 4000),
		"list":          strings.Repeat("- ", 4000) + "x",
		"deep list":     deep, "code": lines,
		"wide table":  strings.Repeat("|a", 1500) + "|\n" + strings.Repeat("|-", 1500) + "|\n" + strings.Repeat("|x\n", 18000),
		"long table":  strings.Repeat("|a", 30) + "|\n" + strings.Repeat("|-", 30) + "|\n" + strings.Repeat("|x\n", 18000),
		"links":       strings.Repeat("[a](b", 1500),
		"html":        strings.Repeat("<a ", 2700) + "\n" + strings.Repeat("<!--", 2000),
		"definitions": strings.Repeat("[a]: b\n", 9000),
		"entities":    strings.Repeat("&lt;", 2000),
		"json":        "```json\n" + strings.Repeat("[", 30000) + "\n```",
	} {
		in = in[:min(len(in), maxMarkdown)]
		if out := markdown(in); len(out) > 6*len(in)+1000 {
			t.Errorf("%s: %d bytes of HTML for %d", name, len(out), len(in))
		}
	}
}

// A changed line that looks like the head of a file or of a hunk is shown as changed.
func TestDiffOfDiff(t *testing.T) {
	text := "--- a\n+++ b\n@@ -1,2 +1,3 @@\n x\n---- a/file\n+--- a/file\n+++++ b/file\n@@ -9 +10,1 @@\n-@@ old\n+*** new\n*** Begin Patch\n"
	var got []string
	for _, m := range regexp.MustCompile(`<span class="(\w*)">`).FindAllStringSubmatch(string(diff(text)), -1) {
		got = append(got, m[1])
	}
	want := "file file at  del add add at del add file"
	if strings.Join(got, " ") != want {
		t.Errorf("classes %q, want %q", got, want)
	}
}
