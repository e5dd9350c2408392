package recall

import (
	"cmp"
	"context"
	"slices"

	"github.com/furlhq/furl"
)

const (
	// fusionDepth is how many hits by words and by vectors are fused.
	fusionDepth = 50
	// fusionK is the constant of reciprocal rank fusion, 60 as its authors have
	// it (Cormack, Clarke and Büttcher, 2009). It flattens the first ranks.
	fusionK = 60
	// vectorWeight is the weight of a rank by vectors, relative to one by words:
	// in what agents write and read, names and exact words are better evidence.
	vectorWeight = 0.5
	// maxVectorSessions is how many sessions, the newest, a search of all sessions
	// compares.
	maxVectorSessions = 16
)

// nearest returns the blocks whose vectors are most similar to that of the query.
func (s *Searcher) nearest(ctx context.Context, req *Request, snap *snapshot) ([]Hit, error) {
	q, err := s.vectors.query(ctx, req.Text)
	if err != nil {
		return nil, err
	}
	type candidate struct {
		docID
		similar float32
	}
	var best []candidate
	for n := len(snap.sessions) - 1; n >= 0 && len(snap.sessions)-n <= maxVectorSessions; n-- {
		r := snap.sessions[n]
		v, err := s.vectors.session(ctx, r.key, len(q))
		if err != nil {
			return nil, err
		}
		docs, err := snap.fields(r)
		if err != nil {
			return nil, err
		}
		similar := make(map[uint32]float32) // of the best passage
		for i, pos := range v.positions {
			if !v.found[i] {
				continue
			}
			d, ok := slices.BinarySearchFunc(docs, pos, func(d document, pos furl.Pos) int {
				return cmp.Or(cmp.Compare(d.pos.Msg, pos.Msg), cmp.Compare(d.pos.Block, pos.Block))
			})
			if !ok || docs[d].pos.Msg <= snap.copied[r.key.Session] || !req.selects(r.key.Session, &docs[d]) {
				continue
			}
			x := dot(q, v.vector(i))
			if before, ok := similar[uint32(d)]; !ok || x > before {
				similar[uint32(d)] = x
			}
		}
		for d, x := range similar {
			best = append(best, candidate{docID{n, d}, x})
		}
	}
	slices.SortFunc(best, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.similar, a.similar), cmp.Compare(b.leaf, a.leaf), cmp.Compare(b.doc, a.doc))
	})
	var hits []Hit
	for _, c := range best[:min(len(best), fusionDepth)] {
		h := snap.hit(c.docID)
		h.Similar = float64(c.similar)
		hits = append(hits, h)
	}
	return hits, nil
}

// fuse merges two rankings by reciprocal rank fusion. If the query consists of
// names, blocks that have them stay before all others.
func fuse(lexical, near []Hit, namesOnly bool) []Hit {
	type place struct {
		session furl.SessionID
		pos     furl.Pos
	}
	at := make(map[place]int)
	var all []Hit
	exact := 0
	for rank, h := range lexical {
		if namesOnly && h.Exact > 0 {
			exact++
		}
		h.Score = 1 / float64(fusionK+rank+1)
		at[place{h.Session, h.Pos}] = len(all)
		all = append(all, h)
	}
	for rank, h := range near {
		score := vectorWeight / float64(fusionK+rank+1)
		if i, ok := at[place{h.Session, h.Pos}]; ok {
			all[i].Score += score
			all[i].Similar = h.Similar
			continue
		}
		h.Score = score
		all = append(all, h)
	}
	slices.SortStableFunc(all[exact:], func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	for i := exact - 1; i >= 0; i-- { // scores must not contradict the order
		if i+1 < len(all) {
			all[i].Score = max(all[i].Score, all[i+1].Score)
		}
	}
	return all
}
