package recall

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
)

// reference is a search without an index: the formula, for every block, from its
// text.
type reference struct {
	blocks []referenceBlock
	length int
}

type referenceBlock struct {
	session furl.SessionID
	newest  int64 // of the session
	pos     furl.Pos
	counts  map[string]int // of terms, names marked
	length  int
	answers bool // the block before
}

func (p *reference) add(session furl.SessionID, records []furl.Record) {
	newest := int64(0)
	first := len(p.blocks)
	asked := furl.Seq(0) // the message of the last block, if that asks something
	for _, r := range records {
		for i, b := range r.Body.(*furl.Message).Blocks {
			texts := slices.Collect(b.Texts())
			if len(texts) == 0 {
				continue
			}
			block := referenceBlock{session: session, pos: furl.Pos{Msg: r.Seq, Block: i}, counts: make(map[string]int)}
			for _, text := range texts {
				for t := range analyze(text) {
					block.counts[referenceTerm(&t)]++
					block.length++
				}
			}
			block.answers = b.Kind == furl.KindText && asked != 0 && asked != r.Seq
			if asked = 0; b.Kind == furl.KindText && asks(b.Text) {
				asked = r.Seq
			}
			newest = max(newest, millis(r.At))
			p.blocks = append(p.blocks, block)
			p.length += block.length
		}
	}
	for i := range p.blocks[first:] {
		p.blocks[first+i].newest = newest
	}
}

func referenceTerm(t *token) string {
	if t.kind == nameToken {
		return "=" + t.text
	}
	return t.text
}

// search ranks all blocks. Some block must have each term of the query itself: it
// does not search inside terms.
func (p *reference) search(text string, limit int) []string {
	q := parseQuery(text)
	skip := q.stopWords()
	total := float64(len(p.blocks))
	mean := float64(p.length) / total
	weights := make([]float64, len(q.terms))
	sum := 0.0
	for i := range q.terms {
		if skip>>i&1 != 0 {
			continue
		}
		docs := 0.0
		for _, b := range p.blocks {
			if b.counts[referenceTerm(&q.terms[i])] > 0 {
				docs++
			}
		}
		weights[i] = q.terms[i].boost() * math.Log(1+(total-docs+0.5)/(docs+0.5))
		sum += weights[i]
	}
	type scored struct {
		*referenceBlock
		score float64
		exact int
	}
	var all []scored
	before := 0.0 // score of the block before, by its own text
	for b := range p.blocks {
		s := scored{referenceBlock: &p.blocks[b]}
		matched := 0.0
		for i := range q.terms {
			n := float64(s.counts[referenceTerm(&q.terms[i])])
			if n == 0 || weights[i] == 0 {
				continue
			}
			s.score += weights[i] * n * 1.9 / (n + 0.9*(1-0.4+0.4*float64(s.length)/mean))
			matched += weights[i]
			if q.terms[i].kind == nameToken {
				s.exact++
			}
		}
		own := 0.0
		if matched > 0 {
			own = s.score * math.Sqrt(matched/sum)
		}
		if s.score = own; s.answers && !q.namesOnly {
			s.score += answerShare * before
		}
		if before = own; s.score > 0 {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b scored) int {
		if q.namesOnly && a.exact != b.exact {
			return cmp.Compare(b.exact, a.exact)
		}
		if math.Abs(a.score-b.score) > 1e-9 {
			return cmp.Compare(b.score, a.score)
		}
		return cmp.Or(cmp.Compare(b.newest, a.newest), strings.Compare(string(b.session), string(a.session)),
			cmp.Compare(b.pos.Msg, a.pos.Msg), cmp.Compare(b.pos.Block, a.pos.Block))
	})
	var out []string
	for _, s := range all[:min(len(all), limit)] {
		out = append(out, fmt.Sprintf("%s %v %.6f", s.session, s.pos, s.score))
	}
	return out
}

// A search of all sessions has the result of scoring every block, in whatever
// order it reads buckets and ranks sessions.
func TestReference(t *testing.T) {
	for seed := range uint64(2) {
		v := wordMaker{rand.New(rand.NewPCG(seed, 31))}
		store := inmem.New()
		x := NewIndexer(store, nil)
		x.maxRecords = 50
		var p reference
		for n := range 2 * minParallelLeaves {
			key := furl.SessionKey{Session: furl.SessionID(fmt.Sprint("s", n))}
			records := randomSession(v, 1+v.IntN(50))
			p.add(key.Session, records)
			put(t, store, key, records)
			if v.IntN(5) > 0 {
				if err := x.Catchup(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
		}
		s := NewSearcher(store, nil)
		for range 15 {
			for _, q := range []string{v.part(), v.part() + " " + v.part() + " " + v.part(), "why is the " + v.part() + " of " + v.part() + " here", p.name(v)} {
				limit := 1 + v.IntN(40)
				var got []string
				for _, f := range search(t, s, Request{Text: q, Limit: limit}) {
					got = append(got, fmt.Sprintf("%s %v %.6f", f.Session, f.Pos, f.Score))
				}
				if want := p.search(q, limit); !slices.Equal(got, want) {
					t.Fatalf("seed %d, %q:\n got %s\nwant %s", seed, q, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
				}
			}
		}
	}
}

// name returns a name of some block.
func (p *reference) name(v wordMaker) string {
	for {
		var names []string
		for term := range p.blocks[v.IntN(len(p.blocks))].counts {
			if name, ok := strings.CutPrefix(term, "="); ok {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			return names[v.IntN(len(names))]
		}
	}
}
