package recall

import (
	"context"
	"slices"

	"github.com/furlhq/furl"
)

// sessionVectors are the vectors of a session up to a record.
type sessionVectors struct {
	upto      furl.Seq
	positions []furl.Pos // of the passages
	contents  []furl.Digest
	dims      int
	vectors   []float32 // dims numbers per passage
	found     []bool    // the passage has a vector
	used      int       // when the cache last used it
}

func (s *sessionVectors) vector(i int) []float32 { return s.vectors[i*s.dims : (i+1)*s.dims] }

func (s *sessionVectors) bytes() int { return 4*len(s.vectors) + 60*len(s.positions) }

// session returns the vectors of a session, including those of new records.
func (v *Vectors) session(ctx context.Context, key furl.SessionKey, dims int) (*sessionVectors, error) {
	v.mu.Lock()
	old := v.cache[key]
	v.mu.Unlock()
	s := &sessionVectors{dims: dims}
	if old != nil && old.dims == dims {
		*s = *old // other searches may use old: appending copies its slices
		s.positions, s.contents, s.vectors, s.found = slices.Clip(s.positions), slices.Clip(s.contents), slices.Clip(s.vectors), slices.Clone(s.found)
	}
	for r, err := range v.store.Read(ctx, key, s.upto) {
		if err != nil {
			return nil, err
		}
		s.upto = r.Seq
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		for i := range m.Blocks {
			for _, text := range passages(&m.Blocks[i]) {
				s.positions = append(s.positions, furl.Pos{Msg: r.Seq, Block: i})
				s.contents = append(s.contents, furl.DigestOf([]byte(text)))
				s.found = append(s.found, false)
			}
		}
	}
	if err := v.fill(ctx, key.Tenant, s); err != nil {
		return nil, err
	}
	v.remember(key, s)
	return s, nil
}

// fill reads vectors from the store for passages that have none so far.
func (v *Vectors) fill(ctx context.Context, tenant furl.Tenant, s *sessionVectors) error {
	missing := make(map[furl.Digest][]int)
	var contents []furl.Digest
	for i, ok := range s.found {
		if !ok {
			if missing[s.contents[i]] == nil {
				contents = append(contents, s.contents[i])
			}
			missing[s.contents[i]] = append(missing[s.contents[i]], i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	vectors := make([]float32, len(s.positions)*s.dims)
	copy(vectors, s.vectors)
	s.vectors = vectors
	for chunk := range slices.Chunk(contents, 500) {
		found, err := v.vectors.FindVectors(ctx, tenant, v.embed.Model(), chunk)
		if err != nil {
			return err
		}
		for _, vec := range found {
			if len(vec.Data) != 4*s.dims {
				continue // of another model with the same name
			}
			for _, i := range missing[vec.Content] {
				unpackVector(s.vectors[i*s.dims:i*s.dims], vec.Data)
				s.found[i] = true
			}
		}
	}
	return nil
}

// remember caches the vectors of a session. If the cache is too large, it drops
// the sessions that were used least recently.
func (v *Vectors) remember(key furl.SessionKey, s *sessionVectors) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.uses++
	s.used = v.uses
	v.cache[key] = s
	sum := 0
	for _, other := range v.cache {
		sum += other.bytes()
	}
	for sum > v.options.Memory && len(v.cache) > 0 {
		oldest := key
		for k, other := range v.cache {
			if other.used < v.cache[oldest].used {
				oldest = k
			}
		}
		sum -= v.cache[oldest].bytes()
		delete(v.cache, oldest)
		if oldest == key {
			break
		}
	}
}
