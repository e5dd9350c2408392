package token_test

import (
	"compress/gzip"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/token"
)

// mixed is a text of sections of all kinds, each up to most bytes long, so
// that no part is representative of the others.
func mixed(size, most int, r *rand.Rand) string {
	kinds := []string{
		sample(most, "The |word| |word| of a |word| is |name|, and |word| |word|. |"),
		sample(most, "\tif err := s.|name|(w, |number|); err != nil {\n\t\treturn fmt.Errorf(\"|word| %s: %w\", |name|, err)\n\t}\n"),
		sample(most, `{"id":"|name|","|word|":|number|,"|name|":[|number|,|number|]},`),
		sample(most, "2026-01-02T15:04:05.|number|Z INFO |word|/|name|.go:|number|\n"),
	}
	for _, name := range []string{"base64", "spaces", "digits", "random letters", "one ideograph"} {
		kinds = append(kinds, hostile(most)[name])
	}
	var b strings.Builder
	for b.Len() < size {
		kind := kinds[r.IntN(len(kinds))]
		b.WriteString(kind[:min(len(kind), 1+r.IntN(most))])
	}
	return b.String()[:size]
}

// offBy returns the relative error of a text's size.
func offBy(text string) float64 {
	want := token.CountExact(text)
	return math.Abs(float64(token.O200k().Count(text)-want)) / float64(want)
}

// Up to a megabyte the count is exact; for larger texts the error is at most
// two percent.
func TestCountOfHugeTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; skipped by -short")
	}
	r := rand.New(rand.NewPCG(3, 4))
	if off := offBy(mixed(1<<20, 5000, r)); off != 0 {
		t.Errorf("1 MiB: off by %.4f, want exact", off)
	}
	for _, test := range []struct{ mb, section int }{{2, 2_000}, {2, 50_000}, {4, 300_000}} {
		if off := offBy(mixed(test.mb<<20, test.section, r)); off > 0.02 {
			t.Errorf("%d MiB in sections of up to %d bytes: off by %.4f, want at most 0.02", test.mb, test.section, off)
		}
	}
	for name, text := range hostile(3 << 19) {
		if off := offBy(text); off > 0.02 {
			t.Errorf("%s: off by %.4f, want at most 0.02", name, off)
		}
	}
}

// The same holds for the recordings, each as one text.
func TestCountOfRecordings(t *testing.T) {
	root := recordings.Dir(t)
	files, err := filepath.Glob(filepath.Join(root, "*", "*.gz"))
	if err != nil {
		t.Fatal(err)
	}
	var off []float64
	for _, file := range files {
		if text := unpacked(t, file); len(text) > 3<<19 {
			off = append(off, offBy(text))
		}
	}
	if len(off) == 0 {
		t.Fatalf("no recording in %s is larger than a megabyte and a half", root)
	}
	slices.Sort(off)
	t.Logf("%d texts, off by: median %.4f, 90th percentile %.4f, most %.4f", len(off), off[len(off)/2], off[len(off)*9/10], off[len(off)-1])
	if most := off[len(off)-1]; most > 0.02 {
		t.Errorf("off by %.4f, want at most 0.02", most)
	}
}

func unpacked(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func BenchmarkCountHuge(b *testing.B) {
	const size = 16 << 20
	texts := map[string]string{"code": sample(size, "\tif err := s.|name|(w, |number|); err != nil {\n\t\treturn fmt.Errorf(\"|word| %s: %w\", |name|, err)\n\t}\n")}
	for _, name := range []string{"one letter", "base64", "random letters"} {
		texts[name] = hostile(size)[name]
	}
	for name, text := range texts {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			c := token.O200k()
			b.SetBytes(size)
			for b.Loop() {
				c.Count(text)
			}
		})
	}
}
