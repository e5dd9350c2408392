package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/furlhq/furl/internal/lexer"
)

// show gives terms as text: =Name, .part, word.
func show(text string) string {
	var out []string
	for t := range analyze(text) {
		out = append(out, [...]string{"", ".", "="}[t.kind]+t.text)
	}
	return strings.Join(out, " ")
}

func TestTerms(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", ""},
		{"?! — …", ""},
		{"The quick Foxes", "the quick fox"},
		{"don't say what's Caroline's", "don say what carolin"},
		{"o'clock 's", "o clock"},
		{"parseConfig", "=parseConfig .parseconfig .pars .config"},
		{"ParseConfig", "=ParseConfig .parseconfig .pars .config"},
		{"HTTPServer", "=HTTPServer .httpserver .http .server"},
		{"URLs", "=URLs .url .ur .ls"},
		{"PARSE_CONFIG", "=PARSE_CONFIG .pars .config"},
		{"internal/store/sqlite.go", "=internal/store/sqlite.go .internal .stor .sqlit .go"},
		{"/a/b/", "=a/b .a .b"},
		{"./run.sh.", "=run.sh .run .sh"},
		{"--dry-run", "=dry-run .dry .run"},
		{"main.go:12:5:", "=main.go:12:5 .main .go .12 .5"},
		{"user@host", "user host"}, // no sign of a name
		{"user@host.org", "=user@host.org .user .host .org"},
		{"sha256", "=sha256 .sha256 .sha .256"},
		{"42 4711 123456", "42 4711 =123456 .123456"},
		{"v2", "=v2 .v2 .v .2"},
		{"3f2a9c81d07be4", "=3f2a9c81d07be4 .3f2a9c81d07be4"}, // a digest has no parts
		{"__init__", "=__init__ .init"},
		{"___", "=___"},
		{"Straße Größen", "strass grossen groessen"},
		{"Café résumés", "caf resum"},
		{"größerAls", "=größerAls .grosseral .groesseral .grosser .groesser .als"},
		{"данные_1", "=данные_1 .данные .1"},
		{"東京都に", "東 東京 京 京都 都 都に に"},
		{"東", "東"},
		{"東京/大阪", "=東京/大阪 .東 .東京 .京 .大 .大阪 .阪"},
		{"bad\xffbytes", "bad byt"},
	}
	for _, tt := range tests {
		if got := show(tt.text); got != tt.want {
			t.Errorf("analyze(%q)\n got %s\nwant %s", tt.text, got, tt.want)
		}
	}
}

// Forms of one word are equal, and different words are not.
func TestNormal(t *testing.T) {
	for _, forms := range []string{
		"agree agrees agreed", "make makes making", "stop stops stopped stopping", "decide decides decided deciding",
		"box boxes boxed", "match matches matched", "policy policies", "try tries tried trying", "class classes",
		"index indexes indexed indexing", "write writes writing", "quick quickly", "surprising surprisingly",
		"status", "analysis", "Café cafes", "plan plans planned planning", "call calls called calling",
	} {
		words := strings.Fields(forms)
		for _, w := range words[1:] {
			if normalize(w) != normalize(words[0]) {
				t.Errorf("%s gives %q, %s gives %q", words[0], normalize(words[0]), w, normalize(w))
			}
		}
	}
	seen := make(map[string]string)
	for w := range strings.FieldsSeq("sing single string ring thing bed need red ship sheep bus buses his this these use us is as code coder king") {
		key := normalize(w)
		if other, ok := seen[key]; ok && !strings.HasPrefix(w, other) {
			t.Errorf("%s and %s are both %q", other, w, key)
		}
		seen[key] = w
	}
}

func TestLongRuns(t *testing.T) {
	long := strings.Repeat("abcdefghi/", 30) // 299 characters as one run
	var names, parts int
	for term := range analyze(long + " " + strings.Repeat("x", 65) + " " + strings.Repeat("y", 1000)) {
		switch term.kind {
		case nameToken:
			names++
		default:
			parts++
		}
	}
	if names != 0 || parts != 30 {
		t.Errorf("%d names and %d parts, want 0 and 30", names, parts)
	}
}

func FuzzTerms(f *testing.F) {
	for _, seed := range []string{
		"parseConfig in internal/store.go:12", "ДаннЫе東京x1y2z3", "a'b's ’s \xff'\xc3", strings.Repeat("aB", 200), "İİ_ıı ǅa ŉŉŉŉŉŉŉ",
		strings.Repeat("日", 300), "…///x///…", "0_0.0/0-0:0@0#0", "5ŉ",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		names := make(map[string]bool)
		for term := range analyze(text) {
			if term.from < last || term.to > len(text) || term.from >= term.to || term.text == "" {
				t.Fatalf("%+v after %d in %d bytes", term, last, len(text))
			}
			last = term.from
			if term.kind == nameToken {
				if place := text[term.from:term.to]; place != term.text && !strings.Contains(normalForm(place), term.text) {
					t.Errorf("name %q is not in %q, the text at its place", term.text, place)
				}
				names[term.text] = true
			} else if utf8.ValidString(text) && !utf8.ValidString(term.text) {
				t.Errorf("%q is not UTF-8", term.text)
			}
		}
		for name := range lexer.Names(text) {
			if !names[name] && normalForm(name) == name { // others are terms in normal form, perhaps of several words
				t.Errorf("%q is a name, but no term", name)
			}
		}
		for _, limit := range []int{0, 1, 7, 50} {
			piece, from, to := excerptOf(text, "parseConfig 東京 b", limit)
			if from < 0 || to < from || to > len(text) || to-from > limit || strings.Trim(piece, "…") != strings.Trim(text[from:to], "…") {
				t.Errorf("Excerpt of %d bytes is %q, %d to %d", limit, piece, from, to)
			}
		}
	})
}

func excerptOf(text, query string, limit int) (string, int, int) {
	q := parseQuery(query)
	return excerpt(text, &q, limit)
}

func TestExcerpt(t *testing.T) {
	prose := strings.Repeat("filler words go on and on\n", 40)
	text := prose + "the fox met parseConfig here\n" + prose + "a fox and a hen\n" + prose
	tests := []struct {
		name, query string
		limit       int
		want        string
	}{
		{"whole", "fox", len(text), text},
		{"a name counts most", "fox hen parseConfig", 40, "…the fox met parseConfig here\nfiller…"},
		{"more terms count more", "fox hen", 40, "…on\na fox and a hen\nfiller words go on…"},
		{"piece", "arseConf", 30, "…met parseConfig here\nfiller…"},
		{"nothing there", "zebra", 25, "filler words go on and…"},
		{"no room for the hit", "parseConfig", 5, "…parse…"},
		{"no room", "parseConfig", 0, ""},
	}
	for _, tt := range tests {
		got, from, to := excerptOf(text, tt.query, tt.limit)
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if to-from > tt.limit || strings.Trim(got, "…") != text[from:to] {
			t.Errorf("%s: %q is not bytes %d to %d", tt.name, got, from, to)
		}
	}
	if got, _, _ := excerptOf("ééééé", "x", 5); got != "éé…" {
		t.Errorf("cut inside a character: %q", got)
	}
}

func TestParse(t *testing.T) {
	tests := []struct {
		text  string
		names bool
		terms int
	}{
		{"", false, 0},
		{"store.go", true, 3},
		{"`store.go`, parseConfig", true, 7},
		{"where is store.go", false, 5},
		{"store store STORE.", false, 2}, // STORE is a name, whose part is store
		{strings.Repeat("a_b ", 1000), true, 3},
	}
	for _, tt := range tests {
		q := parseQuery(tt.text)
		if q.namesOnly != tt.names || len(q.terms) != tt.terms {
			t.Errorf("parseQuery(%.20q): names %v, terms %v; want %v, %d", tt.text, q.namesOnly, q.terms, tt.names, tt.terms)
		}
	}
	var long []string
	for i := range 500 {
		long = append(long, fmt.Sprintf("word%cx", 'a'+i%26), fmt.Sprint(i))
	}
	if q := parseQuery(strings.Join(long, " ")); len(q.terms) != maxQueryTerms || len(q.runs) > maxQueryTerms {
		t.Errorf("%d terms and %d runs of a long query", len(q.terms), len(q.runs))
	}
	if !slices.ContainsFunc(parseQuery("what about it").terms, func(t token) bool { return stopWords[t.text] }) {
		t.Error("a query of common words has none")
	}
}

func TestAccents(t *testing.T) {
	for from, want := range map[string]string{
		"ÀÉÎÕÜÝÿ": "aeiouyy", "ĀĄĆĎĐĒĘĞ": "aacddeeg", "ĤĪİıĴĶŁłŃŇ": "hiiijkllnn", "ŌŐŘŚŠŤŦŪŲ": "oorssttuu", "ŴŶŸŹŽž": "wyyzzz", "ßæœĸĳŋŉ": "ssaeoeĸĳnn",
	} {
		if got := lower(from); got != want {
			t.Errorf("lower(%q) = %q, want %q", from, got, want)
		}
	}
	if n := len(unaccented); n != 0x180-0xC0 {
		t.Errorf("the table has %d characters", n)
	}
}
