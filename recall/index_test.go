package recall

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lexer"
)

// indexOf adds texts as blocks 1, 2, 3 ….
func indexOf(texts ...string) *Index {
	x := new(Index)
	for i, text := range texts {
		x.Add(furl.Pos{Msg: furl.Seq(i + 1)}, text)
	}
	return x
}

func found(hits []Hit) []furl.Seq {
	var seqs []furl.Seq
	for _, h := range hits {
		seqs = append(seqs, h.Pos.Msg)
	}
	return seqs
}

func TestSearch(t *testing.T) {
	x := indexOf(
		/* 1 */ "We keep the sessions in SQLite, one file for all.",
		/* 2 */ "internal/store/sqlite.go:41: undefined: openStore",
		/* 3 */ "func openStore(path string) (*Store, error) {",
		/* 4 */ "The store opens the file when it is asked for a path.",
		/* 5 */ "see sqlite.go",
		/* 6 */ "opening_hours of the grocery store; opening_hours",
		/* 7 */ "func openStore(path string) (*Store, error) {",
		/* 8 */ "Unser Lager öffnet um acht, der Schlüssel liegt bei Jürgen.",
		/* 9 */ "東京都に住んでいます",
		/* 10 */ "retries: 3\nbackoff_ms: 250\nMAX_RETRIES_4711",
	)
	tests := []struct {
		query string
		want  []furl.Seq // the beginning of what is found
	}{
		{"openStore", []furl.Seq{7, 3, 2}},                  // short before long, then newest
		{"`openStore`?", []furl.Seq{7, 3, 2}},               // punctuation around a name does not count
		{"sqlite.go", []furl.Seq{5, 2, 1}},                  // exact, within a longer name, part
		{"store/sqlite.go", []furl.Seq{2, 5}},               // part of a path
		{"penSto", []furl.Seq{7, 3, 2}},                     // part of an identifier
		{"PENSTO", []furl.Seq{7, 3, 2}},                     // whatever the case
		{"open store", []furl.Seq{7, 3}},                    // parts of an identifier as words
		{"which file are sessions kept in", []furl.Seq{1}},  // prose
		{"opened files", []furl.Seq{4}},                     // forms of a word
		{"hour", []furl.Seq{6}},                             // part by mark
		{"schlussel jurgen", []furl.Seq{8}},                 // accents
		{"東京", []furl.Seq{9}},                               // no spaces
		{"住んで", []furl.Seq{9}},                              //
		{"retries_47", []furl.Seq{10}},                      // within a name
		{"max retries", []furl.Seq{10}},                     //
		{"openStore opening_hours", []furl.Seq{6, 7, 3, 2}}, // as many names each: by score
		{"sqlite.go openStore", []furl.Seq{2}},              // one within and one exact
		{"where is opening_hours set", []furl.Seq{6}},       //
		{"zzz", nil}, //
		{"", nil},    //
		{"q", nil},   // too short to look for inside words
		{strings.Repeat("nonsense9 ", 1e4) + "zzz", nil}, //
		{strings.Repeat("(((", 1e4) + "grocery", []furl.Seq{6}},
	}
	for _, tt := range tests {
		got := found(x.Search(tt.query, 0, nil))
		if len(tt.want) == 0 && len(got) > 0 || len(got) < len(tt.want) || !slices.Equal(got[:len(tt.want)], tt.want) {
			t.Errorf("%.40q found %v, want %v first", tt.query, got, tt.want)
		}
	}
}

func TestSearchOptions(t *testing.T) {
	x := new(Index)
	for i := range 20 {
		x.Add(furl.Pos{Msg: furl.Seq(i/4 + 1), Block: i % 4}, "same_text", fmt.Sprintf("number_%d", i))
	}
	if n := len(x.Search("same_text", 0, nil)); n != 5 {
		t.Errorf("%d hits without a limit, want 5", n)
	}
	for _, limit := range []int{1, 7, 20, 1 << 30} {
		if n := len(x.Search("same_text", limit, nil)); n != min(limit, 20) {
			t.Errorf("%d hits at limit %d", n, limit)
		}
	}
	if hits := x.Search("same_text", -1, nil); len(hits) != 0 {
		t.Errorf("%d hits at limit -1", len(hits))
	}
	hits := x.Search("same_text number_7", 2, func(p furl.Pos) bool { return p.Msg < 3 })
	want := []Hit{
		{Pos: furl.Pos{Msg: 2, Block: 3}, Exact: 2, Matched: []string{"same_text", "number_7"}},
		{Pos: furl.Pos{Msg: 2, Block: 2}, Exact: 1, Matched: []string{"same_text", "number"}},
	}
	for i := range hits {
		if hits[i].Score <= 0 {
			t.Errorf("hit %d has the score %g", i, hits[i].Score)
		}
		hits[i].Score = 0
	}
	if !reflect.DeepEqual(hits, want) {
		t.Errorf("hits\n%+v, want\n%+v", hits, want)
	}
	if hits := x.Search("ame_tex", 1, nil); len(hits) != 1 || !slices.Contains(hits[0].Matched, "ame_tex") {
		t.Errorf("a piece of a name: %+v", hits)
	}
	if hits := new(Index).Search("same_text", 0, nil); len(hits) != 0 || new(Index).Len() != 0 {
		t.Errorf("an empty index finds %v", hits)
	}
}

// wordMaker makes names and words that share their parts.
type wordMaker struct{ *rand.Rand }

func (v wordMaker) part() string {
	parts := strings.Fields("store session log record append read write open close sqlite view plan mask token user error path file test main")
	return parts[v.IntN(len(parts))]
}

func (v wordMaker) name() string {
	switch v.IntN(6) {
	case 0:
		return v.part() + "/" + v.part() + "/" + v.part() + ".go"
	case 1:
		return v.part() + "_" + v.part()
	case 2:
		p := v.part()
		return v.part() + strings.ToUpper(p[:1]) + p[1:]
	case 3:
		return fmt.Sprintf("%s-%d", v.part(), v.IntN(1000))
	case 4:
		return fmt.Sprintf("%s.%s:%d", v.part(), v.part(), v.IntN(100))
	}
	return fmt.Sprintf("%x", v.Uint64())
}

func (v wordMaker) text(words int) string {
	var b strings.Builder
	for range words {
		if v.IntN(3) == 0 {
			b.WriteString(v.name())
		} else {
			b.WriteString(v.part())
		}
		b.WriteString([]string{" ", "\n", "(", ", "}[v.IntN(4)])
	}
	return b.String()
}

// A search for a name finds a block with it among the first five, whatever else
// matches. So does a search for a piece of it, unless the piece is a name itself.
func TestNamesAreFound(t *testing.T) {
	seeds := uint64(8)
	if RaceDetector {
		seeds = 2
	}
	for seed := range seeds {
		v := wordMaker{rand.New(rand.NewPCG(seed, 1))}
		x := new(Index)
		holders := make(map[string][]int)
		const blocks = 400
		for i := range blocks {
			text := v.text(1 + v.IntN(200))
			x.Add(furl.Pos{Msg: furl.Seq(i)}, text)
			for name := range lexer.Names(text) {
				if h := holders[name]; len(h) == 0 || h[len(h)-1] != i {
					holders[name] = append(h, i)
				}
			}
		}
		for i, name := range slices.Sorted(maps.Keys(holders)) {
			if i%16 != int(seed) {
				continue // a search of its pieces goes over everything
			}
			held := holders[name]
			hidden := held[v.IntN(len(held))]
			share := v.IntN(blocks) // how many others may be found
			only := func(p furl.Pos) bool {
				i := int(p.Msg)
				return i == hidden || i*7919%blocks < share && !slices.Contains(held, i)
			}
			hits := x.Search(name, 0, only)
			if len(hits) == 0 || hits[0].Pos.Msg != furl.Seq(hidden) || hits[0].Exact != 1 {
				t.Errorf("seed %d: %s is in %d, found %+v", seed, name, hidden, hits)
			}
			for _, h := range hits {
				if !only(h.Pos) {
					t.Errorf("seed %d: %s found in %d, which is excluded", seed, name, h.Pos.Msg)
				}
			}
			if again := x.Search(name, 0, only); !reflect.DeepEqual(hits, again) {
				t.Errorf("seed %d: %s found %v, then %v", seed, name, hits, again)
			}
			piece := name[1:]
			hits = x.Search(piece, blocks, only)
			if !slices.ContainsFunc(hits, func(h Hit) bool { return h.Pos.Msg == furl.Seq(hidden) }) {
				t.Errorf("seed %d: %s of %s in %d is not found", seed, piece, name, hidden)
			}
		}
	}
}

func TestSearchesAtOnce(t *testing.T) {
	v := wordMaker{rand.New(rand.NewPCG(1, 2))}
	x := new(Index)
	for i := range 100 {
		x.Add(furl.Pos{Msg: furl.Seq(i)}, v.text(50))
	}
	want := x.Search("store/log/view.go open", 0, nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if got := x.Search("store/log/view.go open", 0, nil); !reflect.DeepEqual(got, want) {
					t.Errorf("found %v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzSearch(f *testing.F) {
	f.Add("parseConfig in a/b.go", "a/b.go")
	f.Add("東京 x_1", "京 x")
	f.Add("İstanbul'da", "istanbul")
	f.Fuzz(func(t *testing.T, text, query string) {
		x := indexOf("first_text of all", text, query)
		x.Search(query, 0, nil)
		for name := range lexer.Names(text) {
			hits := x.Search(name, 0, func(p furl.Pos) bool { return p.Msg != 3 })
			if !slices.Contains(found(hits), 2) {
				t.Errorf("%q in %q is not found: %v", name, text, hits)
			}
		}
	})
}

// session returns the texts of a long session: pieces of files, listings and
// prose, with many names, most of them rare.
func session(messages, words int) []string {
	v := wordMaker{rand.New(rand.NewPCG(7, 7))}
	zipf := rand.NewZipf(v.Rand, 1.1, 20, 300_000)
	texts := make([]string, messages)
	for i := range texts {
		var b strings.Builder
		for n := range words {
			z := zipf.Uint64()
			switch z % 5 {
			case 0:
				fmt.Fprintf(&b, "pkg%d/dir%d/file_%d.go:%d ", z%19, z%211, z, n)
			case 1:
				fmt.Fprintf(&b, "handleRequest%d(ctx, ", z)
			case 2:
				fmt.Fprintf(&b, "word%c%c%c ", 'a'+z%26, 'a'+z/26%26, 'a'+z/676%26)
			default:
				b.WriteString("the quick brown fox ")
			}
			if n%9 == 8 {
				b.WriteByte('\n')
			}
		}
		texts[i] = b.String()
	}
	return texts
}

// memory returns the index of the texts and its size in bytes.
func memory(texts []string) (*Index, int) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := indexOf(texts...)
	runtime.GC()
	runtime.ReadMemStats(&after)
	return x, int(after.HeapAlloc) - int(before.HeapAlloc)
}

func size(texts []string) int {
	n := 0
	for _, text := range texts {
		n += len(text)
	}
	return n
}

// The index of 1,000 messages of 3 KB is a few times their size, because of new
// names; more of the same messages add little (see BenchmarkAdd).
func TestIndexMemory(t *testing.T) {
	texts := session(1000, 150)
	x, used := memory(texts)
	t.Logf("%d messages, %.1f MB of text: %.1f MB, %d runs, %d terms", x.Len(), float64(size(texts))/1e6, float64(used)/1e6, len(x.analyzed), len(x.postings))
	if used > 20e6 {
		t.Errorf("the index takes %d bytes", used)
	}
	runtime.KeepAlive(x)
}

func BenchmarkAdd(b *testing.B) {
	texts := session(10_000, 150) // 30 MB
	b.SetBytes(int64(size(texts)))
	for b.Loop() {
		indexOf(texts...)
	}
	x, used := memory(texts)
	b.ReportMetric(float64(used)/1e6, "MB-resident")
	runtime.KeepAlive(x)
}

func BenchmarkSearch(b *testing.B) {
	texts := session(10_000, 150)
	x := indexOf(texts...)
	for _, query := range []string{"handleRequest1", "file_20", "handleRequest299999", "ndleReques", "why does the quick brown fox call wordabc"} {
		b.Run(strings.ReplaceAll(query, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x.Search(query, 0, nil)
			}
		})
	}
	b.Run("excerpt", func(b *testing.B) {
		text := strings.Join(texts[:10], "")
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			excerptOf(text, "handleRequest1 fox", 300)
		}
	})
}
