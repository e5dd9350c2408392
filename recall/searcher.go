package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// SearcherOptions are the options of a Searcher.
type SearcherOptions struct {
	// Vectors, if set, adds blocks of similar meaning.
	Vectors *Vectors
	// Log, if set, gets damaged pages.
	Log *slog.Logger
}

// Searcher searches the sessions of a store. A search finds all records that
// were appended before it, whether they are indexed or not. The same records give
// the same hits in the same order on every store, however much of them is
// indexed. A Searcher is safe for concurrent use.
type Searcher struct {
	store   storage.Store
	indexer *Indexer
	vectors *Vectors
	log     *slog.Logger
	cache   sharedCache
}

// NewSearcher returns a Searcher of a store. If the store is not a
// storage.Searchable, each search reads all records in its scope.
func NewSearcher(store storage.Store, o *SearcherOptions) *Searcher {
	s := &Searcher{store: store, log: slog.New(slog.DiscardHandler)}
	if o != nil {
		s.vectors = o.Vectors
		if o.Log != nil {
			s.log = o.Log
		}
	}
	s.indexer = NewIndexer(store, &IndexerOptions{Log: s.log})
	return s
}

// maxStale is how often a search starts again because an indexer changed the
// pages that it reads.
const maxStale = 8

// Search returns the blocks that match a request, the best first; Index.Search
// says what matches. A search of all sessions differs in two ways: equal hits are
// ordered by their session, the one with the newest message first; and it
// searches inside words only for queries of names of which some are not found,
// and for queries that match nothing. Then it searches the newest sessions first,
// until it has a few hundred blocks or has searched 64 sessions, and leaves out stop words.
// What a fork has of a session in the store is found in that session only.
//
// A session that does not exist is an error wrapping storage.ErrNoSession.
func (s *Searcher) Search(ctx context.Context, req Request) (*Result, error) {
	req.Limit = min(cmp.Or(max(req.Limit, 0), defaultLimit), maxLimit)
	req.Offset = min(max(req.Offset, 0), maxOffset)
	req.Excerpt = cmp.Or(req.Excerpt, defaultExcerpt)
	out := &Result{}
	counts := make(damageCounts)
	for stale := 0; ; {
		err := s.search(ctx, &req, counts, out)
		var d *damageError
		switch {
		case err == nil:
			return out, nil
		case errors.As(err, &d) && !counts.skipIndex(d.key):
			s.repair(ctx, furl.SessionKey{Tenant: req.Tenant, Session: req.Session}, d, counts, out)
		case errors.Is(err, errStale) && stale < maxStale:
			stale++
		default:
			return nil, fmt.Errorf("search: %w", err)
		}
	}
}

// search searches for the text of a request, and if nothing matches, for the text with
// letters swapped.
func (s *Searcher) search(ctx context.Context, req *Request, counts damageCounts, out *Result) error {
	out.Query = ""
	if err := s.searchText(ctx, req, counts, out); err != nil || len(out.Hits) > 0 {
		return err
	}
	if req.Offset > 0 { // is this the end of the hits, or are there none?
		first, none := *req, Result{}
		first.Offset, first.Limit, first.Excerpt = 0, 1, -1
		if err := s.searchText(ctx, &first, counts, &none); err != nil || len(none.Hits) > 0 {
			return err
		}
	}
	text, err := s.swapped(ctx, req, counts)
	if err != nil || text == "" {
		return err
	}
	again := *req
	again.Text, out.Query = text, text
	return s.searchText(ctx, &again, counts, out)
}

func (s *Searcher) searchText(ctx context.Context, req *Request, counts damageCounts, out *Result) error {
	q := parseQuery(req.Text)
	snap, err := s.snapshot(ctx, req, &q, counts)
	if err != nil {
		return err
	}
	want := req.Offset + req.Limit + 1
	depth := want
	useVectors := s.vectors != nil && !req.Lexical
	snap.corpus.answerShare = answerShare
	if useVectors {
		snap.corpus.answerShare = fusedAnswerShare
		depth = max(depth, fusionDepth)
	}
	top := topDocs(&q, &snap.corpus, depth, snap.selects)
	if snap.err != nil {
		return snap.err
	}
	hits, err := snap.hits(top)
	if err != nil {
		return err
	}
	out.Hits, out.More = nil, false
	if useVectors {
		near, err := s.nearest(ctx, req, snap)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, errStale) || errors.Is(err, errDamaged) {
				return err
			}
			out.Warnings = append(out.Warnings, furl.Warning{Code: WarnVectors, Text: err.Error()})
		} else {
			hits = fuse(hits, near, q.namesOnly)
		}
	}
	out.More = len(hits) >= want
	hits = hits[min(req.Offset, len(hits)):]
	out.Hits = hits[:min(req.Limit, len(hits))]
	if req.Excerpt < 0 {
		return nil
	}
	errs := make([]error, len(out.Hits))
	parallel(len(out.Hits), maxReads, func(i int) { errs[i] = s.addExcerpt(ctx, req, &q, &out.Hits[i]) })
	return firstError(errs)
}

// addExcerpt reads the message of a hit.
func (s *Searcher) addExcerpt(ctx context.Context, req *Request, q *query, h *Hit) error {
	r, err := readRecord(ctx, s.store, furl.SessionKey{Tenant: req.Tenant, Session: h.Session}, h.Pos.Msg)
	if err != nil {
		return err
	}
	m, ok := r.Body.(*furl.Message)
	if !ok || h.Pos.Block >= len(m.Blocks) {
		return fmt.Errorf("%w: record %d of session %s has no block %d", errStale, h.Pos.Msg, h.Session, h.Pos.Block)
	}
	h.At = r.At
	h.Excerpt, _, _ = excerpt(blockText(&m.Blocks[h.Pos.Block]), q, req.Excerpt)
	return nil
}

// blockText returns the texts of a block, one per line.
func blockText(b *furl.Block) string {
	var texts []string
	for text := range b.Texts() {
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

func readRecord(ctx context.Context, store storage.Store, key furl.SessionKey, seq furl.Seq) (furl.Record, error) {
	for r, err := range store.Read(ctx, key, seq-1) {
		return r, err
	}
	return furl.Record{}, fmt.Errorf("record %d of session %s: %w", seq, key.Session, ErrNotFound)
}
