package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/furlhq/furl"
)

// SearcherOptions are what a Searcher may be told.
type SearcherOptions struct {
	// Vectors, if set, finds by meaning too.
	Vectors *Vectors
	// Log, if set, is told of damaged pages.
	Log *slog.Logger
}

// Searcher finds blocks in a store. What was appended before a search began is
// found, whether it is indexed or not; the same records give the same hits in
// the same order on every store, however much of them is indexed.
type Searcher struct {
	store   furl.Store
	indexer *Indexer
	vectors *Vectors
	log     *slog.Logger
}

// NewSearcher returns a Searcher of a store. Without furl.Searchable, which
// all of furl's stores have, each search reads all there is.
func NewSearcher(store furl.Store, o *SearcherOptions) *Searcher {
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

// maxStale bounds how often a search begins again because what it reads is
// being merged.
const maxStale = 8

// Search finds the blocks that fit a request best: see Index.Search for what
// fits. Where all sessions are searched, of equals those of the session with
// the newest message come first; and looking inside words and names is left to
// queries of names of which some are not found whole, and to those that find
// nothing else: in the newest sessions first, until something was found in a few
// hundred blocks or 64 sessions were looked into that may have it. Words that say
// little are not looked for there beside others.
//
// A session that does not exist is an error wrapping furl.ErrNoSession.
func (s *Searcher) Search(ctx context.Context, req Request) (*Result, error) {
	req.Limit = min(cmp.Or(max(req.Limit, 0), defaultLimit), maxLimit)
	req.Offset = min(max(req.Offset, 0), maxOffset)
	req.Excerpt = cmp.Or(req.Excerpt, defaultExcerpt)
	out := &Result{}
	for lost := 0; ; lost++ {
		err := s.search(ctx, &req, out)
		var d *damage
		switch {
		case err == nil:
			return out, nil
		case errors.As(err, &d) && lost < maxStale:
			// It may have been seen in the middle of a change.
			if lost == 0 {
				continue
			}
			s.log.Warn("rebuild a search index", "session", d.key.Session, "err", d.err)
			out.Warnings = append(out.Warnings, furl.Warning{Code: WarnIndex, Text: d.Error() + "; it was made again"})
			if err := s.indexer.Rebuild(ctx, d.key); err != nil {
				return nil, fmt.Errorf("search: %w", err)
			}
		case errors.Is(err, errStale) && lost < maxStale:
		default:
			return nil, fmt.Errorf("search: %w", err)
		}
	}
}

func (s *Searcher) search(ctx context.Context, req *Request, out *Result) error {
	q := Parse(req.Text)
	look, err := s.look(ctx, req, &q)
	if err != nil {
		return err
	}
	want := req.Offset + req.Limit + 1
	depth := want
	fuse := s.vectors != nil && !req.Lexical
	if fuse {
		depth = max(depth, fusionDepth)
	}
	top := rank(&q, &look.corpus, depth, look.only)
	if look.err != nil {
		return look.err
	}
	found := make([]Found, len(top))
	for i, r := range top {
		if found[i], err = look.found(&r); err != nil {
			return err
		}
		found[i].Matched = q.matched(r.matched, r.pieces)
	}
	out.Hits, out.More = nil, false
	if fuse {
		near, err := s.near(ctx, req, look)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, errStale) || errors.Is(err, errDamaged) {
				return err
			}
			out.Warnings = append(out.Warnings, furl.Warning{Code: WarnVectors, Text: err.Error()})
		} else {
			found = fuseRanks(found, near, q.Names)
		}
	}
	out.More = len(found) >= want
	found = found[min(req.Offset, len(found)):]
	out.Hits = found[:min(req.Limit, len(found))]
	if req.Excerpt < 0 {
		return nil
	}
	return s.excerpts(ctx, req, out.Hits)
}

// excerpts fills in what the messages themselves say.
func (s *Searcher) excerpts(ctx context.Context, req *Request, hits []Found) error {
	last := furl.Record{}
	session := furl.SessionID("")
	for i := range hits {
		h := &hits[i]
		if session != h.Session || last.Seq != h.Pos.Msg {
			r, err := record(ctx, s.store, furl.SessionKey{Tenant: req.Tenant, Session: h.Session}, h.Pos.Msg)
			if err != nil {
				return err
			}
			last, session = r, h.Session
		}
		m, ok := last.Body.(*furl.Message)
		if !ok || h.Pos.Block >= len(m.Blocks) {
			return fmt.Errorf("%w: record %d of session %s has no block %d", errStale, h.Pos.Msg, h.Session, h.Pos.Block)
		}
		h.At = last.At
		h.Excerpt, _, _ = Excerpt(blockText(&m.Blocks[h.Pos.Block]), req.Text, req.Excerpt)
	}
	return nil
}

// blockText is what can be read in a block, piece by piece in lines.
func blockText(b *furl.Block) string {
	var texts []string
	for text := range b.Texts() {
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

// record reads one record.
func record(ctx context.Context, store furl.Store, key furl.SessionKey, seq furl.Seq) (furl.Record, error) {
	for r, err := range store.Read(ctx, key, seq-1) {
		return r, err
	}
	return furl.Record{}, fmt.Errorf("record %d of session %s: %w", seq, key.Session, ErrNotFound)
}

// ErrNotFound is returned for a message, block or range that is not there.
var ErrNotFound = errors.New("not found")

func timeOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}
