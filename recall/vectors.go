package recall

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/furlhq/furl"
)

// Embedder makes vectors of texts: package recall/embeddings has one that asks
// an endpoint.
type Embedder interface {
	// Model names what the vectors are made by. Vectors of different models
	// are never compared.
	Model() string
	// Embed gives a vector for each text, in order, all of one length. It may
	// be called concurrently.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// VectorsOptions are what Vectors may be told.
type VectorsOptions struct {
	// Tenants are whose sessions Run embeds. If nil, the one without a name.
	Tenants []furl.Tenant
	// Interval is how often Run looks for what was appended. If zero, 10 s.
	Interval time.Duration
	// Wait is how long a search waits for the vector of what is searched for
	// before it does without. If zero, 2 s.
	Wait time.Duration
	// Memory is about how many bytes of vectors are kept for the next
	// search. If zero, 64 MB.
	Memory int
	// Log, if set, is told of what Run could not embed.
	Log *slog.Logger
}

// Vectors finds blocks by their meaning, and keeps the vectors that this needs
// in the store: each text's once for all sessions of a tenant. Nothing waits
// for it but a search, and that not for long. It is safe for concurrent use,
// also by several processes.
type Vectors struct {
	store   furl.Store
	kept    furl.VectorStore
	embed   Embedder
	options VectorsOptions

	mu      sync.Mutex
	places  map[furl.SessionKey]*places // of the sessions looked at last
	done    map[furl.SessionKey]furl.Seq
	queries map[string][]float32
	clock   int // counts uses of places
}

// NewVectors returns what finds by meaning in a store. A store that keeps no
// vectors is an error.
func NewVectors(store furl.Store, e Embedder, o *VectorsOptions) (*Vectors, error) {
	kept, ok := store.(furl.VectorStore)
	if !ok {
		return nil, fmt.Errorf("a store of type %T keeps no vectors", store)
	}
	v := &Vectors{store: store, kept: kept, embed: e, places: make(map[furl.SessionKey]*places), done: make(map[furl.SessionKey]furl.Seq), queries: make(map[string][]float32)}
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

// Run embeds what is appended until ctx ends, whose error it returns.
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

// CatchupTenant embeds what is new in a tenant's sessions, the newest session
// first. It ends at the first that the endpoint fails at.
func (v *Vectors) CatchupTenant(ctx context.Context, tenant furl.Tenant) error {
	var keys []furl.SessionKey
	for info, err := range v.store.Sessions(ctx, tenant, furl.SessionQuery{}) {
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
		if err := v.Catchup(ctx, key); err != nil && !errors.Is(err, furl.ErrNoSession) {
			return err
		}
	}
	return nil
}

// embedBatch is how many texts are embedded before they are kept.
const embedBatch = 256

// Catchup embeds a session up to its newest record. What was embedded before,
// in any session of the tenant, is not embedded again, so that it can be
// stopped and begun again at any time.
func (v *Vectors) Catchup(ctx context.Context, key furl.SessionKey) error {
	v.mu.Lock()
	after := v.done[key]
	v.mu.Unlock()
	upto := after
	var texts []string
	flush := func() error {
		if err := v.keep(ctx, key, texts); err != nil {
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

// keep embeds those texts that the tenant has no vector of, and keeps all for
// the session.
func (v *Vectors) keep(ctx context.Context, key furl.SessionKey, texts []string) error {
	if len(texts) == 0 {
		return nil
	}
	of := make(map[furl.Digest]string, len(texts))
	var contents []furl.Digest
	for _, text := range texts {
		d := furl.DigestOf([]byte(text))
		if _, ok := of[d]; !ok {
			contents = append(contents, d)
		}
		of[d] = text
	}
	have, err := v.kept.FindVectors(ctx, key.Tenant, v.embed.Model(), contents)
	if err != nil {
		return err
	}
	vectors := have
	for _, h := range have {
		delete(of, h.Content)
	}
	var missing []string
	for _, d := range contents {
		if text, ok := of[d]; ok {
			missing = append(missing, text)
		}
	}
	if len(missing) > 0 {
		made, err := v.embed.Embed(ctx, missing)
		if err != nil {
			return err
		}
		if len(made) != len(missing) {
			return fmt.Errorf("%d vectors for %d texts", len(made), len(missing))
		}
		for i, text := range missing {
			vectors = append(vectors, furl.Vector{Content: furl.DigestOf([]byte(text)), Data: packVector(made[i])})
		}
	}
	return v.kept.PutVectors(ctx, key, v.embed.Model(), vectors)
}

// packVector brings a vector to length 1: four bytes a number, little-endian.
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

// query gives the vector of what is searched for.
func (v *Vectors) query(ctx context.Context, text string) ([]float32, error) {
	v.mu.Lock()
	known := v.queries[text]
	v.mu.Unlock()
	if known != nil {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, v.options.Wait)
	defer cancel()
	made, err := v.embed.Embed(ctx, []string{cutText(text, chunkBytes)})
	if err != nil {
		return nil, err
	}
	if len(made) != 1 {
		return nil, fmt.Errorf("%d vectors for one text", len(made))
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

// maxQueries is how many vectors of queries are kept.
const maxQueries = 256

// dot is the product of two vectors of one length.
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

// The texts of blocks are embedded in pieces of about a paragraph or a page of
// code, the longest blocks not to their end.
const (
	chunkBytes = 1600
	chunkLeast = 20 // of a text that is embedded at all
	chunkMost  = 64 // pieces of one block
)

// passages cuts a block into what is embedded.
func passages(b *furl.Block) []string {
	if b.Kind == furl.KindOpaque {
		return nil
	}
	text := blockText(b)
	var all []string
	for len(text) >= chunkLeast && len(all) < chunkMost {
		piece := cutText(text, chunkBytes)
		all = append(all, piece)
		text = text[len(piece):]
	}
	return all
}

// cutText gives the beginning of a text, at most limit bytes, to the end of a
// line or word where there is one not too early.
func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:max(endIn(text, limit/2, limit), 1)]
}

// places are the vectors of a session with what they were made of.
type places struct {
	upto  furl.Seq
	at    []furl.Pos
	of    []furl.Digest
	dims  int
	rows  []float32 // of at, one after the other
	found []bool    // that there was a vector
	used  int
}

func (p *places) bytes() int { return 4*len(p.rows) + 60*len(p.at) }

// session gives the vectors of a session, those of new records too.
func (v *Vectors) session(ctx context.Context, key furl.SessionKey, dims int) (*places, error) {
	v.mu.Lock()
	old := v.places[key]
	v.mu.Unlock()
	p := &places{dims: dims}
	if old != nil && old.dims == dims {
		*p = *old // whose slices are only ever appended to, by copies
		p.at, p.of, p.rows, p.found = slices.Clip(p.at), slices.Clip(p.of), slices.Clip(p.rows), slices.Clone(p.found)
	}
	for r, err := range v.store.Read(ctx, key, p.upto) {
		if err != nil {
			return nil, err
		}
		p.upto = r.Seq
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		for i := range m.Blocks {
			for _, text := range passages(&m.Blocks[i]) {
				p.at = append(p.at, furl.Pos{Msg: r.Seq, Block: i})
				p.of = append(p.of, furl.DigestOf([]byte(text)))
				p.found = append(p.found, false)
			}
		}
	}
	if err := v.fill(ctx, key.Tenant, p); err != nil {
		return nil, err
	}
	v.remember(key, p)
	return p, nil
}

// fill looks for the vectors that are not known yet.
func (v *Vectors) fill(ctx context.Context, tenant furl.Tenant, p *places) error {
	missing := make(map[furl.Digest][]int)
	var contents []furl.Digest
	for i, ok := range p.found {
		if !ok {
			if missing[p.of[i]] == nil {
				contents = append(contents, p.of[i])
			}
			missing[p.of[i]] = append(missing[p.of[i]], i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	rows := make([]float32, len(p.at)*p.dims)
	copy(rows, p.rows)
	p.rows = rows
	for chunk := range slices.Chunk(contents, 500) {
		vectors, err := v.kept.FindVectors(ctx, tenant, v.embed.Model(), chunk)
		if err != nil {
			return err
		}
		for _, vec := range vectors {
			if len(vec.Data) != 4*p.dims {
				continue // of another model by the same name
			}
			for _, i := range missing[vec.Content] {
				unpackVector(p.rows[i*p.dims:i*p.dims], vec.Data)
				p.found[i] = true
			}
		}
	}
	return nil
}

// remember keeps a session's vectors, and forgets those not used for longest
// where that is too much.
func (v *Vectors) remember(key furl.SessionKey, p *places) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock++
	p.used = v.clock
	v.places[key] = p
	sum := 0
	for _, q := range v.places {
		sum += q.bytes()
	}
	for sum > v.options.Memory && len(v.places) > 0 {
		oldest := key
		for k, q := range v.places {
			if q.used < v.places[oldest].used {
				oldest = k
			}
		}
		sum -= v.places[oldest].bytes()
		delete(v.places, oldest)
		if oldest == key {
			break
		}
	}
}
