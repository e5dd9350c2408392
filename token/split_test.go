package token

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// The definition of the pieces, as OpenAI publishes it with o200k_base,
// without the look-ahead, which this regexp package does not support.
var defined = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?`,
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?`,
	`\p{N}{1,3}`,
	` ?[^` + blanks + `\p{L}\p{N}]+[\r\n/]*`,
	`[` + blanks + `]*[\r\n]+`,
}, "|") + `)`)

const blanks = `\t\n\v\f\r\x{85}\p{Z}`

var run = regexp.MustCompile(`^[` + blanks + `]+`)

func splitByDefinition(s string) int {
	if m := defined.FindStringIndex(s); m != nil {
		return m[1]
	}
	m := run.FindStringIndex(s)
	if m == nil {
		return 0
	}
	if m[1] == len(s) {
		return m[1]
	}
	if _, size := utf8.DecodeLastRuneInString(s[:m[1]]); m[1] > size {
		return m[1] - size // \s+(?!\S)
	}
	return m[1]
}

// split gives the same pieces as the definition, on texts that mix all
// classes of characters.
func TestSplit(t *testing.T) {
	alphabet := []string{
		"a", "b", "s", "t", "A", "B", "Ǆ", "ǅ", "ʰ", "漢", "ª", "\u0301", "\u200d", "1", "٣", "½", " ", "\t", "\u00a0", "\u2003", "\u0085",
		"\n", "\r", "/", "'", "'ll", "'S", "'re", ".", "_", "=", "🎉", "ß", "é", "\x00", "\ufffd",
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 50_000 {
		var b strings.Builder
		for range 1 + r.IntN(9) {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		text := b.String()
		for s := text; s != ""; {
			got, want := split(s), splitByDefinition(s)
			if got != want {
				t.Fatalf("%q: after %q the piece is %q, want %q", text, text[:len(text)-len(s)], s[:got], s[:want])
			}
			s = s[got:]
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("A\u0301B'LL \r\n  /x\n1234")
	f.Add("\xff\xfe\x80")
	f.Fuzz(func(t *testing.T, text string) {
		valid := utf8.ValidString(text)
		for s := text; s != ""; {
			got := split(s)
			if got <= 0 || got > len(s) {
				t.Fatalf("%q: a piece of %d bytes", s, got)
			}
			if valid && got != splitByDefinition(s) {
				t.Fatalf("%q: the piece is %q, want %q", s, s[:got], s[:splitByDefinition(s)])
			}
			s = s[got:]
		}
	})
}
