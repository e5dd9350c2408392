package fidelity

import (
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/lexer"
)

func TestVariants(t *testing.T) {
	const code = "return store.Append(ctx, records)" // 33 characters
	tests := []struct {
		text string
		want []string
	}{
		{"short", nil},
		{strings.Repeat("x", 29), nil},
		{strings.Repeat("é", 29) + "\n" + strings.Repeat("é", 30), []string{strings.Repeat("é", 30)}},
		{code, []string{code}},
		{"\t\treturn  store.Append(ctx,\trecords)\r\n\n", []string{code}},
		{"   123→\t" + code, []string{"123→ " + code, code}},
		{"   123\t" + code, []string{"123 " + code, code}},
		{"12: " + code, []string{"12: " + code, code}},
		{"12:" + code, []string{"12:" + code, code}},
		{"12|" + code, []string{"12|" + code, code}},
		{"00012| " + code, []string{"00012| " + code, code}},
		{"  12 │ " + code, []string{"12 │ " + code, code}},
		{"12-" + code, []string{"12-" + code, code}},
		{"L12: " + code, []string{"L12: " + code, code}},
		{"L12 " + code, []string{"L12 " + code}},
		{"a/b.go:12:" + code, []string{"a/b.go:12:" + code, code}},
		{"a/b.go:12:5: " + code, []string{"a/b.go:12:5: " + code, "5: " + code, code}},
		{"a/b-c.go-12-\t" + code, []string{"a/b-c.go-12- " + code, code}},
		{"a/b.go:\t" + code, []string{"a/b.go: " + code, code}},
		{"panic: " + code, []string{"panic: " + code}},
		{"+\t" + code, []string{"+ " + code, code}},
		{"-" + code, []string{"-" + code, code}},
		{"> " + code, []string{"> " + code, code}},
		{"12: +" + code, []string{"12: +" + code, "+" + code, code}},
		{"1234567890 " + code, []string{"1234567890 " + code}},
		{"1 2 3 4 " + code, []string{"1 2 3 4 " + code, "2 3 4 " + code, "3 4 " + code, "4 " + code}},
		{"1: only twenty-nine characters!", []string{"1: only twenty-nine characters!"}},
		{code + "\n" + code, []string{code, code}},
	}
	for _, tt := range tests {
		if got := slices.Collect(Variants(tt.text)); !slices.Equal(got, tt.want) {
			t.Errorf("Variants(%q)\n got %q\nwant %q", tt.text, got, tt.want)
		}
	}
}

// For any text, lines are folded, long enough, and each is a suffix of the
// previous one.
func FuzzVariants(f *testing.F) {
	for _, seed := range []string{"a/b.go:12:5: +   123→\tcode that goes on and on", "L\n- \xff\xe2\x80", "::::--1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		for line := range Variants(text) {
			n++
			if lexer.Fold(line) != line || !counts(line) {
				t.Errorf("%q is not a folded line that counts", line)
			}
		}
		if limit := 4 * (strings.Count(text, "\n") + 1); n > limit {
			t.Errorf("%d variants of %d lines", n, limit/4)
		}
		for line, bare := range quotes(text) {
			if !strings.HasSuffix(line, bare) || lexer.Fold(line) != line {
				t.Errorf("line %q, bare %q", line, bare)
			}
		}
	})
}
