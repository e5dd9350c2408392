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

// plainly is a search as one would write it who has all the time there is: the
// formula, for every block, from its text.
type plainly struct {
	blocks []plainBlock
	length int
}

type plainBlock struct {
	session furl.SessionID
	newest  int64 // of the session
	pos     furl.Pos
	counts  map[string]int // of terms, names marked
	length  int
}

func (p *plainly) add(session furl.SessionID, records []furl.Record) {
	newest := int64(0)
	first := len(p.blocks)
	for _, r := range records {
		for i, b := range r.Body.(*furl.Message).Blocks {
			texts := slices.Collect(b.Texts())
			if len(texts) == 0 {
				continue
			}
			block := plainBlock{session: session, pos: furl.Pos{Msg: r.Seq, Block: i}, counts: make(map[string]int)}
			for _, text := range texts {
				for t := range Terms(text) {
					block.counts[plainTerm(&t)]++
					block.length++
				}
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

func plainTerm(t *Term) string {
	if t.Kind == Name {
		return "=" + t.Text
	}
	return t.Text
}

// search ranks all blocks; a query with terms that all stand somewhere whole is
// not looked for inside others.
func (p *plainly) search(text string, limit int) []string {
	q := Parse(text)
	skip := q.common()
	total := float64(len(p.blocks))
	mean := float64(p.length) / total
	weights := make([]float64, len(q.Terms))
	sum := 0.0
	for i := range q.Terms {
		if skip>>i&1 != 0 {
			continue
		}
		docs := 0.0
		for _, b := range p.blocks {
			if b.counts[plainTerm(&q.Terms[i])] > 0 {
				docs++
			}
		}
		weights[i] = q.Terms[i].weight() * math.Log(1+(total-docs+0.5)/(docs+0.5))
		sum += weights[i]
	}
	type scored struct {
		*plainBlock
		score float64
		exact int
	}
	var all []scored
	for b := range p.blocks {
		s := scored{plainBlock: &p.blocks[b]}
		matched := 0.0
		for i := range q.Terms {
			n := float64(s.counts[plainTerm(&q.Terms[i])])
			if n == 0 || weights[i] == 0 {
				continue
			}
			s.score += weights[i] * n * 1.9 / (n + 0.9*(1-0.4+0.4*float64(s.length)/mean))
			matched += weights[i]
			if q.Terms[i].Kind == Name {
				s.exact++
			}
		}
		if matched > 0 {
			s.score *= math.Sqrt(matched / sum)
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b scored) int {
		if q.Names && a.exact != b.exact {
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

// However buckets are read and sessions ranked, side by side and in parts, all
// sessions give what a plain evaluation of every block gives.
func TestPlainEvaluation(t *testing.T) {
	for seed := range uint64(2) {
		v := vocabulary{rand.New(rand.NewPCG(seed, 31))}
		store := inmem.New()
		x := NewIndexer(store, nil)
		x.records = 50
		var p plainly
		for n := range 2 * fewUnits {
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

// name gives a name that stands in some block.
func (p *plainly) name(v vocabulary) string {
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
