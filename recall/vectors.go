package recall

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// Embedder computes vectors of texts. Package recall/embeddings has one that
// calls an endpoint.
type Embedder interface {
	// Model returns the name of the model. Vectors of different models are not
	// compared.
	Model() string
	// Embed returns a vector for each text, in order, all of the same length. It
	// may be called concurrently.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// VectorsOptions are the options of Vectors.
type VectorsOptions struct {
	// Tenants are the tenants whose sessions Run embeds. If nil, the tenant "".
	Tenants []furl.Tenant
	// Interval is how often Run looks for new records. If zero, 10 s.
	Interval time.Duration
	// Wait is how long a search waits for the vector of its query before it
	// continues without vectors. If zero, 2 s.
	Wait time.Duration
	// Memory is roughly how many bytes of vectors are cached. If zero, 64 MB.
	Memory int
	// Log, if set, gets errors of Run.
	Log *slog.Logger
}

// Vectors finds blocks by their meaning. It keeps vectors in the store, one per
// text for all sessions of a tenant. It is safe for concurrent use, also by
// several processes.
type Vectors struct {
	store   storage.Store
	vectors storage.VectorStore
	embed   Embedder
	options VectorsOptions

	mu      sync.Mutex
	cache   map[furl.SessionKey]*sessionVectors
	uses    int                          // of the cache
	done    map[furl.SessionKey]furl.Seq // the last record that was embedded
	queries map[string][]float32         // vectors of queries
}

// NewVectors returns the vectors of a store, which must be a storage.VectorStore.
func NewVectors(store storage.Store, e Embedder, o *VectorsOptions) (*Vectors, error) {
	vectors, ok := store.(storage.VectorStore)
	if !ok {
		return nil, fmt.Errorf("a store of type %T cannot keep vectors", store)
	}
	v := &Vectors{store: store, vectors: vectors, embed: e, cache: make(map[furl.SessionKey]*sessionVectors), done: make(map[furl.SessionKey]furl.Seq), queries: make(map[string][]float32)}
	if o != nil {
		v.options = *o
	}
	if v.options.Tenants == nil {
		v.options.Tenants = []furl.Tenant{""}
	}
	v.options.Interval = cmp.Or(v.options.Interval, 10*time.Second)
	v.options.Wait = cmp.Or(v.options.Wait, 2*time.Second)
	v.options.Memory = cmp.Or(v.options.Memory, 64<<20)
	if v.options.Log == nil {
		v.options.Log = slog.New(slog.DiscardHandler)
	}
	return v, nil
}

// Run embeds sessions as they grow, until ctx ends; it returns the error of ctx.
func (v *Vectors) Run(ctx context.Context) error {
	tick := time.NewTicker(v.options.Interval)
	defer tick.Stop()
	for {
		for _, tenant := range v.options.Tenants {
			if err := v.CatchupTenant(ctx, tenant); err != nil && ctx.Err() == nil {
				v.options.Log.Error("embed sessions", "tenant", tenant, "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// CatchupTenant embeds the new records of a tenant's sessions, the newest session
// first. It stops at the first error.
func (v *Vectors) CatchupTenant(ctx context.Context, tenant furl.Tenant) error {
	var keys []furl.SessionKey
	for info, err := range v.store.Sessions(ctx, tenant, storage.SessionQuery{}) {
		if err != nil {
			return fmt.Errorf("list sessions to embed: %w", err)
		}
		v.mu.Lock()
		done := v.done[info.SessionKey]
		v.mu.Unlock()
		if done < info.Records {
			keys = append(keys, info.SessionKey)
		}
	}
	for _, key := range keys {
		if err := v.Catchup(ctx, key); err != nil && !errors.Is(err, storage.ErrNoSession) {
			return err
		}
	}
	return nil
}

// embedBatch is about how many texts are embedded before their vectors are stored.
const embedBatch = 256

// Catchup embeds a session up to its newest record. It does not embed a text
// again that any session of the tenant has, so it can be stopped and repeated at
// any time.
func (v *Vectors) Catchup(ctx context.Context, key furl.SessionKey) error {
	v.mu.Lock()
	after := v.done[key]
	v.mu.Unlock()
	upto := after
	var texts []string
	flush := func() error {
		if err := v.put(ctx, key, texts); err != nil {
			return fmt.Errorf("embed session %s: %w", key.Session, err)
		}
		texts = texts[:0]
		v.mu.Lock()
		v.done[key] = upto
		v.mu.Unlock()
		return nil
	}
	for r, err := range v.store.Read(ctx, key, after) {
		if err != nil {
			return fmt.Errorf("embed session %s: %w", key.Session, err)
		}
		upto = r.Seq
		if m, ok := r.Body.(*furl.Message); ok {
			for i := range m.Blocks {
				texts = append(texts, passages(&m.Blocks[i])...)
			}
		}
		if len(texts) >= embedBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// put stores the vectors of texts for a session. It embeds texts of which the
// tenant has no vector.
func (v *Vectors) put(ctx context.Context, key furl.SessionKey, texts []string) error {
	if len(texts) == 0 {
		return nil
	}
	byContent := make(map[furl.Digest]string, len(texts))
	var contents []furl.Digest
	for _, text := range texts {
		d := furl.DigestOf([]byte(text))
		if _, ok := byContent[d]; !ok {
			contents = append(contents, d)
		}
		byContent[d] = text
	}
	vectors, err := v.vectors.FindVectors(ctx, key.Tenant, v.embed.Model(), contents)
	if err != nil {
		return err
	}
	for _, vec := range vectors {
		delete(byContent, vec.Content)
	}
	var missing []string
	for _, d := range contents {
		if text, ok := byContent[d]; ok {
			missing = append(missing, text)
		}
	}
	if len(missing) > 0 {
		made, err := v.embed.Embed(ctx, missing)
		if err != nil {
			return err
		}
		if len(made) != len(missing) {
			return fmt.Errorf("the embedder returned %d vectors for %d texts", len(made), len(missing))
		}
		for i, text := range missing {
			vectors = append(vectors, storage.Vector{Content: furl.DigestOf([]byte(text)), Data: packVector(made[i])})
		}
	}
	return v.vectors.PutVectors(ctx, key, v.embed.Model(), vectors)
}

// packVector encodes a vector, scaled to length 1, in four bytes per number,
// little-endian.
func packVector(v []float32) []byte {
	norm := 0.0
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	scale := 1 / math.Sqrt(norm)
	if norm == 0 || math.IsNaN(scale) || math.IsInf(scale, 0) {
		scale = 0
	}
	data := make([]byte, 0, 4*len(v))
	for _, x := range v {
		y := float32(0)
		if scale != 0 {
			y = float32(float64(x) * scale)
		}
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(y))
	}
	return data
}

func unpackVector(dst []float32, data []byte) []float32 {
	for ; len(data) >= 4; data = data[4:] {
		dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(data)))
	}
	return dst
}

// query returns the vector of a query.
func (v *Vectors) query(ctx context.Context, text string) ([]float32, error) {
	v.mu.Lock()
	known := v.queries[text]
	v.mu.Unlock()
	if known != nil {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, v.options.Wait)
	defer cancel()
	made, err := v.embed.Embed(ctx, []string{cutPassage(text)})
	if err != nil {
		return nil, err
	}
	if len(made) != 1 {
		return nil, fmt.Errorf("the embedder returned %d vectors for one text", len(made))
	}
	q := unpackVector(nil, packVector(made[0]))
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.queries) >= maxQueries {
		clear(v.queries)
	}
	v.queries[text] = q
	return q, nil
}

// maxQueries is how many vectors of queries are cached.
const maxQueries = 256

// dot returns the dot product of two vectors of the same length.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// Blocks are embedded in passages of about a paragraph or a page of code.
const (
	maxPassageBytes = 1600
	minPassageBytes = 20 // shorter texts are not embedded
	maxPassages     = 64 // of one block; the rest is not embedded
)

// passages returns the passages of a block.
func passages(b *furl.Block) []string {
	if b.Kind == furl.KindOpaque {
		return nil
	}
	text := blockText(b)
	var all []string
	for len(text) >= minPassageBytes && len(all) < maxPassages {
		p := cutPassage(text)
		all = append(all, p)
		text = text[len(p):]
	}
	return all
}

// cutPassage returns the first passage of a text. It ends with a line or a word if
// one ends in its second half.
func cutPassage(text string) string {
	if len(text) <= maxPassageBytes {
		return text
	}
	return text[:max(endBetween(text, maxPassageBytes/2, maxPassageBytes), 1)]
}
