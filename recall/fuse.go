package recall

import (
	"cmp"
	"context"
	"slices"

	"github.com/furlhq/furl"
)

const (
	// fusionDepth is how many hits of each kind are fused.
	fusionDepth = 50
	// fusionRank is what makes the first ranks differ less: the 60 of the
	// method's authors (Cormack, Clarke and Büttcher, 2009).
	fusionRank = 60
	// nearWeight is what a rank by meaning counts for beside one by words: in
	// what agents say and read, names and exact words tell more.
	nearWeight = 0.5
	// nearSessions is how many sessions, the newest, are looked at by meaning
	// in a search of all.
	nearSessions = 16
)

// near finds the blocks whose meaning is nearest to the request's text, the
// nearest first.
func (s *Searcher) near(ctx context.Context, req *Request, l *look) ([]Found, error) {
	q, err := s.vectors.query(ctx, req.Text)
	if err != nil {
		return nil, err
	}
	type candidate struct {
		doc
		like float32
	}
	var best []candidate
	for n := len(l.units) - 1; n >= 0 && len(l.units)-n <= nearSessions; n-- {
		u := l.units[n]
		p, err := s.vectors.session(ctx, u.key, len(q))
		if err != nil {
			return nil, err
		}
		docs, err := l.documents(u)
		if err != nil {
			return nil, err
		}
		like := make(map[uint32]float32)
		for i, pos := range p.at {
			if !p.found[i] {
				continue
			}
			d, ok := slices.BinarySearchFunc(docs, pos, func(d document, pos furl.Pos) int {
				return cmp.Or(cmp.Compare(d.pos.Msg, pos.Msg), cmp.Compare(d.pos.Block, pos.Block))
			})
			if !ok || !req.wants(u.key.Session, &docs[d]) {
				continue
			}
			x := dot(q, p.rows[i*p.dims:(i+1)*p.dims])
			if before, ok := like[uint32(d)]; !ok || x > before {
				like[uint32(d)] = x
			}
		}
		for d, x := range like {
			best = append(best, candidate{doc{n, d}, x})
		}
	}
	slices.SortFunc(best, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.like, a.like), cmp.Compare(b.unit, a.unit), cmp.Compare(b.doc.doc, a.doc.doc))
	})
	var found []Found
	for _, c := range best[:min(len(best), fusionDepth)] {
		u := l.units[c.unit]
		f := u.docTab[c.doc.doc].found(u.key.Session)
		f.Similar = float64(c.like)
		found = append(found, f)
	}
	return found, nil
}

// fuseRanks makes one order of two by reciprocal ranks. If the query is names
// alone, blocks that hold them stay before all others.
func fuseRanks(words, near []Found, names bool) []Found {
	type place struct {
		session furl.SessionID
		pos     furl.Pos
	}
	at := make(map[place]int)
	var all []Found
	exact := 0
	for rank, f := range words {
		if names && f.Exact > 0 {
			exact++
		}
		f.Score = 1 / float64(fusionRank+rank+1)
		at[place{f.Session, f.Pos}] = len(all)
		all = append(all, f)
	}
	for rank, f := range near {
		score := nearWeight / float64(fusionRank+rank+1)
		if i, ok := at[place{f.Session, f.Pos}]; ok {
			all[i].Score += score
			all[i].Similar = f.Similar
			continue
		}
		f.Score = score
		all = append(all, f)
	}
	slices.SortStableFunc(all[exact:], func(a, b Found) int { return cmp.Compare(b.Score, a.Score) })
	for i := exact - 1; i >= 0; i-- { // scores say the order
		if i+1 < len(all) {
			all[i].Score = max(all[i].Score, all[i+1].Score)
		}
	}
	return all
}
