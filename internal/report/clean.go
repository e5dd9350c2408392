package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean prepares a text from a recording for one line of the page. It spells
// out control characters, invisible characters and those that change the
// direction of text, and cuts the middle out of texts longer than limit
// characters. It does not escape HTML; the templates do.
func clean(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unicode.Is(unicode.C, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return shorten(b.String(), limit)
}

// shorten cuts the middle out of a text with more characters than limit.
func shorten(s string, limit int) string {
	if len(s) <= limit || utf8.RuneCountInString(s) <= limit {
		return s
	}
	r := []rune(s)
	head := (limit - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(limit-1-head):])
}

// Bounds on texts, in characters.
const (
	nameLength = 200
	noteLength = 1000
)

func name(s string) string { return clean(s, nameLength) }

// places shortens file names by the folder that contains all files.
type places struct{ common string }

func newPlaces(files []string) places {
	if len(files) < 2 {
		return places{}
	}
	common := files[0]
	for _, f := range files[1:] {
		n := 0
		for n < len(common) && n < len(f) && common[n] == f[n] {
			n++
		}
		common = common[:n]
	}
	return places{common[:strings.LastIndexAny(common, `/\`)+1]}
}

// name is the shortened and cleaned name of a file.
func (p places) name(file string) string { return name(strings.TrimPrefix(file, p.common)) }

func notes(list []string, limit int) []string {
	var out []string
	for i, s := range list {
		if i == limit {
			out = append(out, fmt.Sprintf("and %s more", count(len(list)-limit)))
			break
		}
		out = append(out, clean(s, noteLength))
	}
	return out
}
