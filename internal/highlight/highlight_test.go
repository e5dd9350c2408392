package highlight

import (
	"archive/zip"
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/klauspost/compress/zstd"
)

//go:generate go test -run TestLexers -update

var update = flag.Bool("update", false, "write lexers.zip.zst")

// TestLexers fails if the archive does not have the lexers of the version of Chroma in go.mod.
func TestLexers(t *testing.T) {
	want := xmlLexers(t)
	if *update {
		if err := os.WriteFile("lexers.zip.zst", pack(t, want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	files, err := open(archive)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range files.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name] = string(b)
	}
	if !maps.Equal(got, want) {
		t.Error("the archive is not that of this version of Chroma: run make generate")
	}
}

// xmlLexers returns the lexers of Chroma in its XML format. Lexers that need Go code are left
// out; those of Go and Markdown have a small part of it, which is replaced.
func xmlLexers(t *testing.T) map[string]string {
	names := regexp.MustCompile(`[^a-z0-9]+`)
	files := map[string]string{}
	add := func(l chroma.Lexer) {
		r, ok := l.(*chroma.RegexLexer)
		if !ok {
			return
		}
		text, err := chroma.Marshal(r)
		if err != nil {
			return
		}
		name := names.ReplaceAllStringFunc(strings.ToLower(l.Config().Name), func(s string) string { return fmt.Sprintf("_%x", s) }) + ".xml"
		if files[name] != "" {
			t.Fatalf("two lexers named %s", name)
		}
		head, states, _ := strings.Cut(string(text), "<rules>") // the order of states is random
		const start = "\n    <state "                           // a state may have no end tag of its own
		list := strings.Split(strings.TrimSuffix(states, "\n  </rules>\n</lexer>"), start)[1:]
		slices.Sort(list)
		files[name] = head + "<rules>" + start + strings.Join(list, start) + "</rules></lexer>"
	}
	for _, l := range lexers.GlobalLexerRegistry.Lexers {
		switch l.Config().Name {
		case "Go":
			add(goLexer(l.(*chroma.RegexLexer)))
		case "HTTP":
			add(httpLexer)
		case "markdown", "Common Lisp", "EmacsLisp":
			add(inner(l)) // the rest of it adds what only its own language has: front matter, names of functions
		default:
			add(l)
		}
	}
	return files
}

// goLexer is the lexer of Go without templates in raw strings.
func goLexer(l *chroma.RegexLexer) chroma.Lexer {
	rules := l.MustRules().Clone()
	for i, r := range rules["root"] {
		if strings.HasPrefix(r.Pattern, "(`)") {
			rules["root"][i].Type = chroma.LiteralString
		}
	}
	return chroma.MustNewLexer(l.Config(), func() chroma.Rules { return rules })
}

// httpLexer is the lexer of HTTP without the language of the body.
var httpLexer = chroma.MustNewLexer(&chroma.Config{Name: "HTTP", Aliases: []string{"http"}, NotMultiline: true, DotAll: true}, func() chroma.Rules {
	return chroma.Rules{
		"root": {
			{Pattern: `([A-Z]+)( +)([^ \r\n]+)( +)(HTTP/[0-9.]+)(\r?\n|\Z)`, Type: chroma.ByGroups(chroma.NameFunction, chroma.Text, chroma.NameNamespace, chroma.Text, chroma.KeywordReserved, chroma.Text), Mutator: chroma.Push("headers")},
			{Pattern: `(HTTP/[0-9.]+)( +)(\d{3})( *)([^\r\n]*)(\r?\n|\Z)`, Type: chroma.ByGroups(chroma.KeywordReserved, chroma.Text, chroma.LiteralNumber, chroma.Text, chroma.NameException, chroma.Text), Mutator: chroma.Push("headers")},
		},
		"headers": {
			{Pattern: `([^\s:]+)( *)(:)( *)([^\r\n]+)(\r?\n|\Z)`, Type: chroma.ByGroups(chroma.Name, chroma.Text, chroma.Operator, chroma.Text, chroma.Literal, chroma.Text)},
			{Pattern: `\r?\n`, Type: chroma.Text, Mutator: chroma.Push("body")},
		},
		"body": {{Pattern: `.+`, Type: chroma.Text}},
	}
})

// inner returns the lexer that another one changes.
func inner(l chroma.Lexer) chroma.Lexer {
	v := reflect.ValueOf(l).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			if in, ok := v.Field(i).Interface().(chroma.Lexer); ok {
				return in
			}
		}
	}
	return l
}

func pack(t *testing.T, files map[string]string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	return e.EncodeAll(b.Bytes(), nil)
}

// Names of languages in Markdown, and of files, that coding agents use.
func TestLanguages(t *testing.T) {
	code := "# a // b \"c\" 1\nif (x) { return <b> }\n"
	for name := range strings.FieldsSeq(`bash sh shell zsh console fish powershell bat go golang python py python3 js javascript mjs jsx ts typescript tsx java kotlin scala
		groovy c cpp c++ h hpp csharp cs c# fsharp vb.net objective-c swift rust rs ruby rb erb php perl lua r julia dart elixir erlang haskell ocaml clojure nim zig v d
		html xml svg css scss sass less vue svelte json jsonc json5 yaml yml toml ini properties md markdown rst tex sql postgres mysql graphql proto protobuf docker dockerfile
		makefile make cmake terraform hcl nginx systemd diff patch http solidity glsl asm nasm gas awk sed vim gherkin prolog fortran cobol groovy jinja handlebars go-template`) {
		tokens, ok := Tokens(code, name)
		if !ok {
			t.Errorf("language %s is unknown", name)
			continue
		}
		var text strings.Builder
		for _, tok := range tokens {
			text.WriteString(tok.Value)
		}
		if text.String() != code {
			t.Errorf("%s: the tokens are %q", name, text.String())
		}
	}
	for file, want := range map[string]string{
		"a/b.go": "Go", "x.py": "Python", "Dockerfile": "Docker", "Makefile": "Makefile", "a.tsx": "TypeScript", "x.svelte": "html", "x.php": "PHP", "README.md": "markdown", "docs/a.rst": "markdown", "x.unknown": "", "": "",
	} {
		if got := Language(file); got != want {
			t.Errorf("%q is %q, expected %q", file, got, want)
		}
	}
	if _, ok := Tokens(code, "no such language"); ok {
		t.Error("an unknown language has a lexer")
	}
}
