// Package highlight finds the syntax of source code for the page and the chat. The
// lexers are those of Chroma. Chroma's package lexers registers all of them when a
// program starts, which costs 10 ms and 4 MB in every process of furl. Here they are in
// an archive that is read when code is highlighted for the first time.
package highlight

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
	"github.com/klauspost/compress/zstd"
)

// archive is a zip archive of Chroma's lexers in its XML format, compressed as a whole. "make generate"
// makes it from the version of Chroma in go.mod; Chroma's license is in its module.
//
//go:embed lexers.zip.zst
var archive []byte

var registry = sync.OnceValue(func() *chroma.LexerRegistry {
	all := chroma.NewLexerRegistry()
	files, err := open(archive)
	if err != nil {
		panic(fmt.Sprintf("highlight: embedded lexers: %v", err)) // TestLexers reads them all
	}
	for _, f := range files.File {
		all.Register(chroma.MustNewXMLLexer(files, f.Name))
	}
	return all
})

func open(archive []byte) (*zip.Reader, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	b, err := d.DecodeAll(archive, nil)
	if err != nil {
		return nil, err
	}
	return zip.NewReader(bytes.NewReader(b), int64(len(b)))
}

// similar has the languages whose lexers Chroma has only as Go code, and the ones that
// are used for them.
var similar = map[string]string{"svelte": "html", "less": "scss", "lisp": "scheme", "common-lisp": "scheme", "el": "scheme", "elisp": "scheme", "erb": "html", "phtml": "php", "go-html-template": "go-template", "go-text-template": "go-template", "rst": "markdown", "raku": "perl", "perl6": "perl"}

// Language returns the name of the language of a file, or "" if it is unknown.
func Language(file string) string {
	if l := registry().Match(file); l != nil {
		return l.Config().Name
	}
	return similar[strings.TrimPrefix(filepath.Ext(file), ".")]
}

// maxCode is the length of the longest code that is split into tokens, and maxLine that of
// its longest line, in bytes: the regular expressions of some lexers need more than linear time.
const (
	maxCode = 32 << 10
	maxLine = 8 << 10
)

// Tokens splits source code into tokens. It reports false if the language is unknown, or
// the code is too long or cannot be split. The texts of the tokens together are the code, with a newline at
// the end in some languages.
func Tokens(code, language string) ([]chroma.Token, bool) {
	if language == "" || len(code) > maxCode {
		return nil, false
	}
	for line := range strings.Lines(code) {
		if len(line) > maxLine {
			return nil, false
		}
	}
	lexer := registry().Get(language)
	if lexer == nil {
		lexer = registry().Get(similar[language])
	}
	if lexer == nil {
		return nil, false
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code)
	if err != nil {
		return nil, false
	}
	return tokens.Tokens(), true
}
