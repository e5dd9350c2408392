package token_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/token"
	"github.com/tiktoken-go/tokenizer/codec"
)

// Counts of ordinary texts match the published encoding.
func TestCount(t *testing.T) {
	ref := codec.NewO200kBase()
	for _, text := range []string{
		"", "a", " ", "\n", "hello world", "Hello, World! It's 12345.", "\tif err != nil {\n\t\treturn err\n\t}\n",
		"I'LL we've don't THEY'RE x'y", "snake_case camelCase HTTPServer X509", "/usr/local/bin//x\n\nnext",
		"日本語のテキスト、そして英語", "naïve café Straße ΑΒΓδ", "👩‍👩‍👧‍👦 🎉🎉", "e\u0301e\u0301 \u0301", "0123456789 ٣٤٥",
		"a  b   c    \n  d", "\r\n\r\n", `{"id": "toolu_01", "n": 1.50, "s": "\u00e9"}`,
	} {
		want, err := ref.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := token.O200k().Count(text); got != want {
			t.Errorf("%q: got %d tokens, want %d", text, got, want)
		}
	}
	// The Go reference splits blanks differently from the original, which has
	// one token for each of these.
	for _, text := range []string{"\n \n", "\n\t\n"} {
		if got := token.O200k().Count(text); got != 1 {
			t.Errorf("%q: got %d tokens, want 1", text, got)
		}
	}
}

// hostile returns texts that are slow in other counters.
func hostile(size int) map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	letters := make([]byte, size)
	for i := range letters {
		letters[i] = byte('a' + r.IntN(26))
	}
	raw := make([]byte, size*3/4)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	fill := func(s string) string { return strings.Repeat(s, size/len(s)+1)[:size/len(s)*len(s)] }
	return map[string]string{
		"one letter":        fill("a"),
		"spaces":            fill(" "),
		"equals":            fill("="),
		"newlines":          fill("\n"),
		"blanks and lines":  fill(" \n\t\n   "),
		"random letters":    string(letters),
		"base64":            base64.StdEncoding.EncodeToString(raw),
		"not UTF-8":         string(raw),
		"zero width":        fill("\u200b"),
		"joiners":           fill("\u200d"),
		"combining marks":   "a" + fill("\u0301"),
		"marks on capitals": fill("A\u0301B"),
		"capitals":          fill("A"),
		"one ideograph":     fill("漢"),
		"digits":            fill("7"),
		"apostrophes":       fill("a'"),
		"slashes":           fill("/\n"),
		"null bytes":        fill("\x00"),
	}
}

// Twice the text takes about twice the time, for any text. The cache is empty
// each time, because it would hold the short text and not the long one.
func TestCountIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; skipped by -short")
	}
	const size = 1 << 15
	token.CountCold("load the vocabulary")
	long := hostile(2 * size)
	for name, short := range hostile(size) {
		ratio := 0.0
		for range 10 { // other processes may disturb the measurement
			once, twice := best(short), best(long[name])
			if ratio = float64(twice) / float64(once); ratio <= 3 || twice < 2*time.Millisecond {
				ratio = 0
				break
			}
		}
		if ratio > 0 {
			t.Errorf("%s: twice the text took %.1f times as long", name, ratio)
		}
	}
}

func best(text string) time.Duration {
	d := time.Hour
	for range 3 {
		begun := time.Now()
		token.CountCold(text)
		d = min(d, time.Since(begun))
	}
	return d
}

// Long runs without a break are cut to bound memory. That adds at most half a
// percent.
func TestCountOfLongPieces(t *testing.T) {
	ref := codec.NewO200kBase()
	for _, name := range []string{"one letter", "equals", "capitals", "random letters", "one ideograph", "combining marks"} {
		text := hostile(100_000)[name]
		want, err := ref.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := token.O200k().Count(text); got < want || float64(got) > 1.005*float64(want) {
			t.Errorf("%s: got %d tokens, want %d or up to half a percent more", name, got, want)
		}
	}
}

// Counting gives the same results from many goroutines at once.
func TestCountConcurrently(t *testing.T) {
	texts := make([]string, 50)
	for i := range texts {
		texts[i] = fmt.Sprintf("word%d Word%d WORD%d and some_more of the same, %d times\n", i, i*7, i*31, i*i)
	}
	want := make([]int, len(texts))
	for i, s := range texts {
		want[i] = token.O200k().Count(s)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			c := token.O200k()
			for i, s := range texts {
				if got := c.Count(s); got != want[i] {
					t.Errorf("%q: got %d tokens, want %d", s, got, want[i])
				}
			}
		})
	}
	wg.Wait()
}

func TestCountMedia(t *testing.T) {
	image := func(w, h int) furl.Media { return furl.Media{Kind: furl.KindImage, Width: w, Height: h, Bytes: 5000} }
	claude := token.New(nil)
	high := token.For(&furl.Model{Provider: "anthropic", ImageTokens: 4784, PixelsPerToken: 784})
	gpt4o := token.For(&furl.Model{Provider: "openai", ImageTokens: 1445})
	gpt5 := token.For(&furl.Model{Provider: "openai", ImageTokens: 1190})
	for _, tt := range []struct {
		name string
		c    *token.Counter
		m    furl.Media
		want int
	}{
		{"Claude, small", claude, image(200, 200), 54},
		{"Claude, a screenshot", claude, image(1000, 1000), 1334},
		{"Claude, above the cap", claude, image(4000, 4000), 1600},
		{"Claude, unknown size", claude, image(0, 0), 1600},
		{"Claude, high resolution", high, image(1000, 1000), 1276},
		{"Claude, high resolution, above the cap", high, image(4000, 4000), 4784},
		{"GPT-4o, one tile", gpt4o, image(512, 512), 255},
		{"GPT-4o, square", gpt4o, image(1024, 1024), 765},
		{"GPT-4o, tall", gpt4o, image(2048, 4096), 1105},
		{"GPT-4o, huge", gpt4o, image(20_000, 20_000), 765},
		{"GPT-4o, a line", gpt4o, image(20_000, 10), 765},
		{"GPT-5, square", gpt5, image(1024, 1024), 630},
		{"GPT-5, unknown size", gpt5, image(0, 0), 1190},
		{"a PDF", claude, furl.Media{Kind: furl.KindDocument, Type: "application/pdf", Bytes: 480_000}, 20_000},
		{"a small PDF", claude, furl.Media{Kind: furl.KindDocument, Type: "application/pdf", Bytes: 900}, 1500},
		{"a text file", claude, furl.Media{Kind: furl.KindDocument, Type: "text/plain", Bytes: 4001}, 1001},
		{"nonsense", claude, furl.Media{Kind: furl.KindDocument, Type: "text/plain", Bytes: -5}, 0},
	} {
		if got := tt.c.CountMedia(tt.m); got != tt.want {
			t.Errorf("%s: got %d tokens, want %d", tt.name, got, tt.want)
		}
	}
}

func FuzzCount(f *testing.F) {
	f.Add("Hello, World! It's 12345.\n \n")
	f.Add("a\u0301\u200d漢字\xff\xfe 'll")
	f.Fuzz(func(t *testing.T, text string) {
		c := token.O200k()
		n := c.Count(text)
		if n > len(text) || n == 0 && text != "" {
			t.Errorf("%q: %d tokens for %d bytes", text, n, len(text))
		}
		if again := c.Count(text); again != n {
			t.Errorf("%q: %d tokens, then %d", text, n, again)
		}
	})
}

// sample is a text of the given size with similar lines, like what agents
// read: half common words, half names and numbers.
func sample(size int, line string) string {
	r := rand.New(rand.NewPCG(7, 8))
	common := strings.Fields("the of and to in for is on that with as by from this be are was request server error return value file name index test build")
	name := func() string {
		b := make([]byte, 0, 12)
		for range 1 + r.IntN(3) {
			b = append(b, "bcdfghklmnprstvw"[r.IntN(16)], "aeiou"[r.IntN(5)], "lmnrstx"[r.IntN(7)])
		}
		return string(b)
	}
	var b strings.Builder
	for b.Len() < size {
		for part := range strings.FieldsFuncSeq(line, func(c rune) bool { return c == '|' }) {
			switch part {
			case "word":
				b.WriteString(common[r.IntN(len(common))])
			case "name":
				b.WriteString(name())
			case "number":
				fmt.Fprint(&b, r.IntN(100_000))
			default:
				b.WriteString(part)
			}
		}
	}
	return b.String()[:size]
}

func BenchmarkCount(b *testing.B) {
	const size = 100_000
	texts := map[string]string{
		"prose": sample(size, "The |word| |word| of a |word| is |name|, and |word| |word| |word| |name| |word|. |"),
		"code":  sample(size, "func (s *|name|) |word|(w http.ResponseWriter, |name| int) error {\n\tif err := s.|name|(w, |number|); err != nil {\n\t\treturn fmt.Errorf(\"|word| %s: %w\", |name|, err)\n\t}\n}\n"),
		"json":  sample(size, `{"id":"|name|","|word|":|number|,"path":"/|name|/|word|.go","ok":true,"|name|":[|number|,|number|]},`),
		"log":   sample(size, "2026-01-02T15:04:05.|number|Z INFO |word|/|name|.go:|number| |word| |word| |name|=|number|ms\n"),
	}
	for _, name := range []string{"one letter", "base64", "random letters", "one ideograph"} {
		texts[name] = hostile(size)[name]
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			c := token.O200k()
			b.SetBytes(int64(len(texts[name])))
			b.ReportAllocs()
			for b.Loop() {
				c.Count(texts[name])
			}
		})
	}
}

// First is the duration of a process's first count.
func BenchmarkFirst(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		token.CountFirst("hello")
	}
}
