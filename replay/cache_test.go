package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/promptcache"
)

// call is one request to a simulated cache and its expected usage.
type call struct {
	at     string // since the start; "" for a recording without times
	model  string // "" is m
	prompt string // a letter a piece; the first is the instructions
	aside  bool
	want   split
}

// pieceTokens are the sizes of pieces, by letter: lower case 600, upper case
// 2,000, digits 10.
func pieceTokens(c rune) int {
	switch {
	case c >= 'a':
		return 600
	case c >= 'A':
		return 2000
	}
	return 10
}

func piecesOf(prompt string) []piece {
	var list []piece
	for _, c := range prompt {
		list = append(list, piece{ID: uint64(c), Tokens: pieceTokens(c), Positions: 1})
	}
	return list
}

// start is the time of the first request of a table.
var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func after(t testing.TB, d string) time.Time {
	t.Helper()
	if d == "" {
		return time.Time{}
	}
	gap, err := time.ParseDuration(d)
	if err != nil {
		t.Fatal(err)
	}
	return start.Add(gap)
}

var (
	marks5m = furl.Caching{Explicit: true, MinPrefix: 1024, Lifetime: 5 * time.Minute, Lookback: 20, MaxMarks: 4}
	auto5m  = furl.Caching{MinPrefix: 1024, Granule: 128, Lifetime: 5 * time.Minute}
)

// The tables follow the providers' documented rules by hand (Anthropic and
// OpenAI, prompt caching).
func TestPromptCache(t *testing.T) {
	old := strings.Repeat("0123456789", 5) // 50 pieces of 10 tokens
	for _, tt := range []struct {
		name  string
		rules furl.Caching
		calls []call
	}{
		{"marks: a prompt that grows is read to its old end", marks5m, []call{
			{at: "0s", prompt: "Aab", want: split{Write: 3200}},
			{at: "10s", prompt: "Aabcd", want: split{Read: 3200, Write: 1200}},
			{at: "20s", prompt: "Aabcd", want: split{Read: 4400}},
		}},
		{"explicit: below the minimum nothing is written, without an error", marks5m, []call{
			{at: "0s", prompt: "a", want: split{Fresh: 600}},
			{at: "1s", prompt: "ab", want: split{Write: 1200}}, // a alone was not there to read
			{at: "2s", prompt: "axy", want: split{Write: 1800, Broke: true}},
			{at: "3s", prompt: "axyz", want: split{Read: 1800, Write: 600}},
		}},
		{"marks: a changed message is read up to, from an entry in reach", marks5m, []call{
			{at: "0s", prompt: "Aabcd", want: split{Write: 4400}},
			// Entries end after A and d. b is new, and only A is before it.
			{at: "1s", prompt: "AaXcd", want: split{Read: 2000, Write: 3800, Broke: true}},
			// The breakpoint where the requests differ wrote an entry after a.
			{at: "2s", prompt: "AaYcd", want: split{Read: 2600, Write: 3200, Broke: true}},
		}},
		{"marks: an entry 19 positions before the break is found, 20 before it is not", marks5m, []call{
			{at: "0s", prompt: "A" + old[:10] + "x", want: split{Write: 2700}},                           // entries after A and x
			{at: "1s", prompt: "A" + old[:10] + "yy", want: split{Read: 2000, Write: 1300, Broke: true}}, // and after the tenth
			{at: "2s", prompt: "A" + old[:29] + "z", want: split{Read: 2100, Write: 790, Broke: true}},
			{at: "3s", prompt: "A" + old[:29] + "Z", want: split{Read: 2100, Write: 2190, Broke: true}}, // 19 from the 29th to the tenth
			{at: "4s", prompt: "A" + old[:49] + "z", want: split{Read: 2290, Write: 800, Broke: true}},  // the entry of request 3's break
			{at: "5s", prompt: "A" + old[:49] + "Z", want: split{Read: 2000, Write: 2490, Broke: true}}, // 20 from the 49th to the 29th
		}},
		{"marks: the end's own lookback counts, too", marks5m, []call{
			{at: "0s", prompt: "A" + old[:5], want: split{Write: 2050}},
			{at: "1s", model: "other", prompt: "B", want: split{Write: 2000}},
			// The previous request was to another model, so the only
			// breakpoints are after A and at the end. 19 positions back is an
			// entry, ...
			{at: "2s", prompt: "A" + old[:24], want: split{Read: 2050, Write: 190}},
			{at: "3s", model: "other", prompt: "B", want: split{Read: 2000}},
			// ... 20 positions back is none.
			{at: "4s", prompt: "A" + old[:44], want: split{Read: 2000, Write: 440}},
		}},
		{"marks: a lifetime is counted from the last use", marks5m, []call{
			{at: "0s", prompt: "Aab", want: split{Write: 3200}},
			{at: "5m", prompt: "Aabc", want: split{Read: 3200, Write: 600}},
			{at: "10m", prompt: "Aabcd", want: split{Read: 3800, Write: 600}},
			{at: "15m1s", prompt: "Aabcde", want: split{Write: 5000}},
		}},
		{"marks: reading a prompt keeps what it contains alive", marks5m, []call{
			{at: "0s", prompt: "Aab", want: split{Write: 3200}},
			{at: "4m", prompt: "Aabc", want: split{Read: 3200, Write: 600}},
			{at: "8m", prompt: "Aabx", want: split{Read: 3200, Write: 600, Broke: true}},
		}},
		{"marks: a model has its own entries, and finds them again", marks5m, []call{
			{at: "0s", prompt: "Aab", want: split{Write: 3200}},
			{at: "1s", model: "other", prompt: "Aabc", want: split{Write: 3800}},
			{at: "2s", prompt: "Aabcd", want: split{Read: 3200, Write: 1200}},
			{at: "6m", model: "other", prompt: "Aabcd", want: split{Write: 4400}},
		}},
		{"marks: a rewind finds what stood before", marks5m, []call{
			{at: "0s", prompt: "Aab", want: split{Write: 3200}},
			{at: "1s", prompt: "Aabcd", want: split{Read: 3200, Write: 1200}},
			{at: "2s", prompt: "Aabx", want: split{Read: 3200, Write: 600, Broke: true}},
			{at: "3s", prompt: "Aabcde", want: split{Read: 4400, Write: 600, Broke: true}}, // and back to the first branch
		}},
		{"marks: other instructions change everything", marks5m, []call{
			{at: "0s", prompt: "Aab", want: split{Write: 3200}},
			{at: "1s", prompt: "Bab", want: split{Write: 3200, Broke: true}},
		}},
		{"marks: without times one request follows the other", marks5m, []call{
			{prompt: "Aab", want: split{Write: 3200}},
			{prompt: "Aabc", want: split{Read: 3200, Write: 600}},
		}},
		{"marks: a cold cache breaks no prefix", marks5m, []call{
			{at: "0s", prompt: "Aab", want: split{Write: 3200}},
			{at: "6m", prompt: "Axy", want: split{Write: 3200}},
		}},
		{"marks: the agent does not go on from a summary's request", marks5m, []call{
			{at: "0s", prompt: "Aab", want: split{Write: 3200}},
			{at: "1s", prompt: "Aabcs", aside: true, want: split{Read: 3200, Write: 1200}},
			{at: "2s", prompt: "Aabcd", want: split{Read: 3200, Write: 1200}},
		}},
		{"automatic: whole granules of the shared prefix", auto5m, []call{
			{at: "0s", prompt: "Aab", want: split{Write: 3200}},
			{at: "1s", prompt: "Aabc", want: split{Read: 25 * 128, Write: 600}},          // exactly 3,200
			{at: "2s", prompt: "Aabcd", want: split{Read: 29 * 128, Write: 4400 - 3712}}, // of 3,800
		}},
		{"automatic: below the minimum nothing is read", auto5m, []call{
			{at: "0s", prompt: "a", want: split{Fresh: 600}},
			{at: "1s", prompt: "ab", want: split{Write: 1200}}, // shares 600
			{at: "2s", prompt: "abc", want: split{Read: 9 * 128, Write: 1800 - 1152}},
			{at: "3s", prompt: "axyz", want: split{Write: 2400, Broke: true}}, // shares 600
		}},
		{"automatic: the longest of all earlier prompts is read", auto5m, []call{
			{at: "0s", prompt: "Aabcd", want: split{Write: 4400}},
			{at: "1s", prompt: "Axy", want: split{Read: 15 * 128, Write: 3200 - 1920, Broke: true}},
			{at: "2s", prompt: "Aabcde", want: split{Read: 34 * 128, Write: 5000 - 4352, Broke: true}},
		}},
		{"automatic: each prompt lives by itself", auto5m, []call{
			{at: "0s", prompt: "Aabcd", want: split{Write: 4400}},
			{at: "4m", prompt: "Axy", want: split{Read: 1920, Write: 1280, Broke: true}},
			// The entries after A on the first branch are older than five
			// minutes.
			{at: "8m", prompt: "Aabcd", want: split{Read: 1920, Write: 2480, Broke: true}},
			{at: "13m1s", prompt: "Aabcd", want: split{Write: 4400}},
		}},
		{"automatic: a model has its own prompts", auto5m, []call{
			{at: "0s", prompt: "Aab", want: split{Write: 3200}},
			{at: "1s", model: "other", prompt: "Aab", want: split{Write: 3200}},
			{at: "2s", prompt: "Aab", want: split{Read: 3200}},
		}},
		{"none: all is fresh", furl.Caching{}, []call{
			{at: "0s", prompt: "Aab", want: split{Fresh: 3200}},
			{at: "0s", prompt: "Axb", want: split{Fresh: 3200}},
			{prompt: "Ayb", want: split{Fresh: 3200}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c promptCache
			for i, req := range tt.calls {
				serve := c.request
				if req.aside {
					serve = c.summary
				}
				got := serve(tt.rules, "m"+req.model, piecesOf(req.prompt), after(t, req.at))
				got.Shared = 0
				if got != req.want {
					t.Errorf("request %d, %s: %+v, want %+v", i+1, req.prompt, got, req.want)
				}
			}
		})
	}
}

// All of a prompt is billed once, and only what was sent before is read.
func TestPromptCacheBillsAll(t *testing.T) {
	for _, rules := range []furl.Caching{marks5m, auto5m} {
		var c promptCache
		at := start
		seen := map[string]bool{}
		for i := range 400 {
			at = at.Add(time.Duration(i*37%20) * time.Second)
			prompt := "A" + strings.Repeat("ab", i%7) + fmt.Sprint(i*31%50) + strings.Repeat("c", i%3)
			s := c.request(rules, "m", piecesOf(prompt), at)
			if got, want := s.prompt(), promptcache.Sum(piecesOf(prompt)); got != want {
				t.Fatalf("request %d: billed %d of %d tokens", i, got, want)
			}
			most := 0
			for n := range len(prompt) + 1 {
				if seen[prompt[:n]] {
					most = promptcache.Sum(piecesOf(prompt[:n]))
				}
			}
			if s.Read > most || s.Read < 0 || s.Write < 0 {
				t.Fatalf("request %d: %+v, but %d tokens were sent before", i, s, most)
			}
			for n := range len(prompt) + 1 {
				seen[prompt[:n]] = true
			}
		}
	}
}

// Consecutive calls, and consecutive results, count once for the lookback. Other
// blocks count each.
func TestPositions(t *testing.T) {
	kinds := map[rune]furl.Kind{'t': furl.KindText, 'h': furl.KindThinking, 'c': furl.KindCall, 'r': furl.KindResult, 'i': furl.KindImage}
	for blocks, want := range map[string]int{
		"":       1, // a message is a position
		"t":      1,
		"htc":    3,
		"htcccc": 3,
		"rrrr":   1,
		"rrrt":   2,
		"ctc":    3,
		"tt":     2,
		"ii":     2,
	} {
		m := &furl.Message{}
		for _, k := range blocks {
			m.Blocks = append(m.Blocks, furl.Block{Kind: kinds[k]})
		}
		if got := positions(m); got != want {
			t.Errorf("%q: %d positions, want %d", blocks, got, want)
		}
	}
}

// Consecutive calls in one message are one position, so many parallel calls do not
// put an entry out of reach.
func TestLookbackCountsRuns(t *testing.T) {
	for _, positions := range []int{1, 2} {
		var c promptCache
		list := piecesOf("Aab")
		c.request(marks5m, "m", list, start)
		c.request(marks5m, "other", list, start)
		for range 19 {
			list = append(list, piece{ID: 7, Tokens: 10, Positions: positions})
		}
		want := split{Read: 3200, Write: 190}
		if positions == 2 {
			want = split{Read: 2000, Write: 1390} // 38 positions to the entry after b
		}
		if got := c.request(marks5m, "m", list, start); got != want {
			t.Errorf("19 messages of %d positions: %+v, want %+v", positions, got, want)
		}
	}
}
