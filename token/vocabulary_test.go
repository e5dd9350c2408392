package token

import (
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

//go:generate go test -run TestVocabulary -update

var update = flag.Bool("update", false, "write o200k.bin anew")

// published returns the tokens of the module's o200k_base by rank, and their
// ranks.
var published = sync.OnceValues(func() ([]string, map[string]uint32) {
	from := codec.NewO200kBase()
	tokens, ranks := make([]string, o200kTokens), make(map[string]uint32, o200kTokens)
	for rank := range tokens {
		tokens[rank], _ = from.Decode([]uint{uint(rank)})
		ranks[tokens[rank]] = uint32(rank)
	}
	return tokens, ranks
})

// naive encodes by the definition: of all neighbours that form a token
// together, the first of the lowest rank is merged, again and again, until at
// most atMost parts are left.
func naive(ranks map[string]uint32, piece string, atMost int) []string {
	var parts []string
	for i := range len(piece) {
		parts = append(parts, piece[i:i+1])
	}
	for len(parts) > atMost {
		lowest, at := uint32(none), 0
		for i := range len(parts) - 1 {
			if rank, ok := ranks[parts[i]+parts[i+1]]; ok && rank < lowest {
				lowest, at = rank, i
			}
		}
		if lowest == none {
			break
		}
		parts[at] += parts[at+1]
		parts = slices.Delete(parts, at+1, at+2)
	}
	return parts
}

// The file matches the module's vocabulary: the byte of each of the first
// tokens, the last merge of every other.
func TestVocabulary(t *testing.T) {
	tokens, ranks := published()
	want := make([]byte, byteTokens, len(o200kFile))
	bits, held := uint64(0), 0 // bits that do not fill a byte so far
	for id, token := range tokens {
		switch parts := naive(ranks, token, 2); {
		case id < byteTokens && len(token) == 1:
			want[id] = token[0]
		case id >= byteTokens && len(parts) == 2:
			bits |= (uint64(ranks[parts[0]]) | uint64(ranks[parts[1]])<<tokenBits) << held
			for held += 2 * tokenBits; held >= 8; held -= 8 {
				want = append(want, byte(bits))
				bits >>= 8
			}
		default:
			t.Fatalf("token %d, %q, is not made by a merge: %q", id, token, parts)
		}
	}
	if *update {
		if err := os.WriteFile("o200k.bin", want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if o200kFile != string(want) {
		t.Error("o200k.bin is not the module's vocabulary; go generate writes it")
	}
}

// Searches for pairs are short.
func TestSearchesAreShort(t *testing.T) {
	v := newVocabulary()
	run, longest, taken := 0, 0, 0
	for i := range 2 * len(v.slots) { // a run may continue at the start
		if v.slots[i%len(v.slots)] == 0 {
			run = 0
			continue
		}
		run++
		taken++
		longest = max(longest, run)
	}
	if taken/2 != o200kTokens-byteTokens {
		t.Errorf("%d slots are taken, want one for each of the %d tokens that are merged", taken/2, o200kTokens-byteTokens)
	}
	if longest > 40 {
		t.Errorf("%d slots in a row are taken, want at most 40", longest)
	}
}

// A count is found under its hash only.
func TestPieceCache(t *testing.T) {
	c := new(pieceCache)
	for _, h := range []uint64{0, 1, 1 << cacheBits, 0xFEDC_BA98_7654_3210} {
		if n, ok := c.get(h); ok {
			t.Errorf("%x: got %d from an empty cache", h, n)
		}
		c.put(h, maxCached)
		if n, ok := c.get(h); n != maxCached || !ok {
			t.Errorf("%x: got %d, %t, want %d", h, n, ok, maxCached)
		}
		for bit := range 64 {
			if n, ok := c.get(h ^ 1<<bit); ok && n != maxCached {
				t.Errorf("%x: got %d by a hash that differs in bit %d", h, n, bit)
			}
		}
	}
}

// Merging by pairs gives the same as the definition, by scan and by heap: for
// adjacent tokens, tokens cut anywhere, texts of few letters, and arbitrary
// bytes.
func TestEncode(t *testing.T) {
	tokens, ranks := published()
	v := newVocabulary()
	const letters = "aeinst \n-"
	r := rand.New(rand.NewPCG(5, 6))
	for i := range 10_000 {
		var b strings.Builder
		for range 1 + r.IntN(8) {
			switch i % 3 {
			case 0:
				b.WriteString(tokens[r.IntN(len(tokens))])
			case 1:
				b.WriteByte(letters[r.IntN(len(letters))])
			default:
				b.WriteByte(byte(r.Uint32()))
			}
		}
		piece := b.String()
		piece = piece[r.IntN(min(len(piece), 4)):]
		checkEncode(t, v, ranks, piece)
	}
}

func checkEncode(t *testing.T, v *vocabulary, ranks map[string]uint32, piece string) {
	t.Helper()
	want := len(naive(ranks, piece, 1))
	if got := v.heap(piece); got != want {
		t.Errorf("%q: got %d tokens from the heap, want %d", piece, got, want)
	}
	if len(piece) > maxScanned {
		return
	}
	if got := v.scan(piece); got != want {
		t.Errorf("%q: got %d tokens, want %d", piece, got, want)
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("internationalization")
	f.Add("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	f.Add("\xff\xfe漢字")
	v := newVocabulary()
	f.Fuzz(func(t *testing.T, piece string) {
		if len(piece) == 0 || len(piece) > 1000 {
			return // the definition takes quadratic time
		}
		_, ranks := published()
		checkEncode(t, v, ranks, piece)
	})
}
