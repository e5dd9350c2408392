package lexer

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 198)
	tests := []struct {
		text string
		want []string
	}{
		{"", nil},
		{"only plain words in here, nothing else", nil},
		{"read internal/store/sqlite.go and main.go", []string{"internal/store/sqlite.go", "main.go"}},
		{"a.go", nil},                        // too short
		{"ab.go x.yaml", []string{"x.yaml"}}, // five against six
		{"parseConfig ParseConfig PARSED Parsed parsed", []string{"parseConfig", "ParseConfig", "PARSED"}},
		{"snake_case kebab-case abcde1", []string{"snake_case", "kebab-case", "abcde1"}},
		{"one:two a@domain #channel", nil}, // : @ # belong to a name but do not make one
		{"one:two1 me@host.org #channel7", []string{"one:two1", "me@host.org", "channel7"}},
		{"--dry-run, /usr/bin/env: see ./run.sh.", []string{"dry-run", "usr/bin/env", "run.sh"}},
		{"__init__ _private", []string{"__init__", "_private"}}, // _ is not trimmed
		{"...///:::", nil},
		{"/plain/", nil}, // what was trimmed tells nothing
		{"plain- -plain", nil},
		{"https://example.org/a?b=c_d_e_f&g", []string{"https://example.org/a", "c_d_e_f"}},
		{"(foo.Bar)[baz_qux]{x:y.z.w}", []string{"foo.Bar", "baz_qux", "x:y.z.w"}},
		{`"C:\new_dir\file.txt"`, []string{"new_dir", "file.txt"}},
		{"main.go:12:5: undefined", []string{"main.go:12:5"}},
		{long + "1", []string{long + "1"}},
		{long + "12", nil},
		{"straßenÄnderung größer", []string{"straßenÄnderung"}},
		{"Änderung", nil},
		{"данные_1 größe1 größ1", []string{"данные_1", "größe1"}}, // characters, not bytes
		{"٣٤٥٦٧٨", []string{"٣٤٥٦٧٨"}},
		{"foo_bar→baz_qux\u00a0a_b_c_d", []string{"foo_bar", "baz_qux", "a_b_c_d"}},
		{"cafe\u0301_menu nai\u0308veName", []string{"cafe\u0301_menu", "nai\u0308veName"}},
		{"1\ufe0f\u20e3step_1 \u0301a_b_c_d", []string{"step_1", "a_b_c_d"}}, // marks of other characters
		{"foo_bar\xffbaz_qux", []string{"foo_bar", "baz_qux"}},
		{"x_y_z_w x_y_z_w", []string{"x_y_z_w", "x_y_z_w"}},
	}
	for _, tt := range tests {
		if got := slices.Collect(Names(tt.text)); !slices.Equal(got, tt.want) {
			t.Errorf("Names(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestNamesStops(t *testing.T) {
	n := 0
	for range Names("one_name two_names three_names") {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("saw %d names after a break at the second", n)
	}
}

// slowNames follows the definition word by word.
func slowNames(text string) []string {
	var names []string
	var runs []string
	run, letter := "", false // letter: a mark may follow
	for _, r := range replaceInvalid(text) + " " {
		switch {
		case unicode.IsLetter(r):
			run, letter = run+string(r), true
		case unicode.IsMark(r) && letter:
			run += string(r)
		case unicode.IsDigit(r), strings.ContainsRune("_./:@#-", r):
			run, letter = run+string(r), false
		default:
			runs = append(runs, run)
			run, letter = "", false
		}
	}
	for _, run := range runs {
		name := strings.Trim(run, "./:-#@")
		if name == "" {
			continue
		}
		if n := utf8.RuneCountInString(name); n < 6 || n >= 200 {
			continue
		}
		inner := []rune(name)[1:]
		if strings.ContainsFunc(name, unicode.IsDigit) || strings.ContainsAny(name, "/_.-") || slices.ContainsFunc(inner, unicode.IsUpper) {
			names = append(names, name)
		}
	}
	return names
}

func replaceInvalid(text string) string { return strings.ToValidUTF8(text, " ") }

func FuzzNames(f *testing.F) {
	for _, seed := range []string{
		"", "internal/a_b.go:12", "größeÄ1 Ω_Ω_Ω_ \xc3 a\xffb_c_d_e", "::..//--##@@", "ǅungla ǅǅǅǅǅǅ", strings.Repeat("x.", 100),
		strings.Repeat("é", 198) + "1 " + strings.Repeat("é", 199) + "1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := slices.Collect(Names(text)), slowNames(text); !slices.Equal(got, want) {
			t.Errorf("Names(%q) = %q, want %q", text, got, want)
		}
	})
}

// sampleText looks like a tool result: code, paths, prose.
func sampleText(bytes int) string {
	const lines = `	if err := store.Append(ctx, sessionID, records...); err != nil { return fmt.Errorf("append: %w", err) }
internal/store/sqlite.go:214:9: undefined: encodeRecord (did you mean decode_record?)
The quick brown fox reads a page of plain prose that holds no name at all, then stops.
-rw-r--r-- 1 me me 12345 Mar  3 10:15 docs/architecture-overview.md
`
	return strings.Repeat(lines, bytes/len(lines)+1)[:bytes]
}

func BenchmarkNames(b *testing.B) {
	for name, text := range map[string]string{
		"ascii":   sampleText(1 << 20),
		"unicode": strings.ReplaceAll(sampleText(1<<20), "e", "é"),
		"one run": strings.Repeat("a/b", 1<<18),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for range Names(text) {
					n++
				}
			}
		})
	}
}

func TestIsName(t *testing.T) {
	for run, want := range map[string]bool{
		"v2": true, "a.b": true, "x": false, "_": false, "Go": false, "gO": true, "42": false, "12345": false, "123456": true, "1.5": true,
		"plain": false, "größer": false, "größerAls": true, "٣٤": false, "x٣": true,
		strings.Repeat("a", 198) + "1": true, strings.Repeat("a", 199) + "1": false,
	} {
		if got := IsName(run); got != want {
			t.Errorf("IsName(%q) = %v", run, got)
		}
	}
}

func TestParts(t *testing.T) {
	for run, want := range map[string]string{
		"a/b.go": "a b go", "__init__": "init", "plain": "plain", "___": "", "x:1@y#z-w": "x 1 y z w",
	} {
		var got []string
		for part, at := range Parts(run) {
			if run[at:at+len(part)] != part {
				t.Errorf("%q of %q is not at %d", part, run, at)
			}
			got = append(got, part)
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("Parts(%q) = %q, want %q", run, got, want)
		}
	}
}

func TestSubwords(t *testing.T) {
	for part, want := range map[string]string{
		"parseConfig": "parse Config", "HTTPServer": "HTTP Server", "URLs": "UR Ls", "sha256sum": "sha 256 sum", "plain": "", "X": "", "": "",
		"größerAls": "größer Als", "aBcDeFgHiJkLmNoPqR": "", "aBbCcDdEeFfGgHh": "a Bb Cc Dd Ee Ff Gg Hh", "3f2a9c81d07be4": "",
	} {
		var ends [MaxSubwords + 1]int
		var got []string
		for i := range Subwords(part, &ends) {
			got = append(got, part[ends[i]:ends[i+1]])
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("Subwords(%q) = %q, want %q", part, got, want)
		}
	}
}
