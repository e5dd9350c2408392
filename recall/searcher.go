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
	seen := make(damages)
	for lost := 0; ; {
		err := s.search(ctx, &req, seen, out)
		var d *damage
		switch {
		case err == nil:
			return out, nil
		case errors.As(err, &d) && !seen.without(d.key):
			s.mend(ctx, d, seen, out)
		case errors.Is(err, errStale) && lost < maxStale:
			lost++
		default:
			return nil, fmt.Errorf("search: %w", err)
		}
	}
}

// damages counts how often a search met damaged pages of a session, beginning
// again each time.
type damages map[furl.SessionKey]int

// tooDamaged is how often, before it does without them.
const tooDamaged = 3

func (d damages) without(key furl.SessionKey) bool { return d[key] >= tooDamaged }

// mend makes the pages of a session again that a search has found damaged. If
// it cannot, as in a store that is only read, the search does without them.
func (s *Searcher) mend(ctx context.Context, d *damage, seen damages, out *Result) {
	seen[d.key]++
	old := errors.Is(d.err, errVersion)
	if seen[d.key] == 1 && !old {
		return // they may have been seen in the middle of a change
	}
	if old {
		s.log.Info("make a search index of this version", "session", d.key.Session)
	} else {
		s.log.Warn("rebuild a search index", "session", d.key.Session, "err", d.err)
	}
	text := d.Error() + "; it was made again"
	if err := s.indexer.Rebuild(ctx, d.key); err != nil && !errors.Is(err, furl.ErrNoSession) {
		seen[d.key] = tooDamaged
		text = fmt.Sprintf("%v; its messages were read instead, for it cannot be made again: %v", d, err)
	} else if old {
		return
	}
	out.Warnings = append(out.Warnings, furl.Warning{Code: WarnIndex, Text: text})
}

func (s *Searcher) search(ctx context.Context, req *Request, seen damages, out *Result) error {
	q := Parse(req.Text)
	look, err := s.look(ctx, req, &q, seen)
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
	if err := look.describe(top); err != nil {
		return err
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
	errs := make([]error, len(hits))
	eachAtOnce(len(hits), readers, func(i int) { errs[i] = s.excerpt(ctx, req, &hits[i]) })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Searcher) excerpt(ctx context.Context, req *Request, h *Found) error {
	r, err := record(ctx, s.store, furl.SessionKey{Tenant: req.Tenant, Session: h.Session}, h.Pos.Msg)
	if err != nil {
		return err
	}
	m, ok := r.Body.(*furl.Message)
	if !ok || h.Pos.Block >= len(m.Blocks) {
		return fmt.Errorf("%w: record %d of session %s has no block %d", errStale, h.Pos.Msg, h.Session, h.Pos.Block)
	}
	h.At = r.At
	h.Excerpt, _, _ = Excerpt(blockText(&m.Blocks[h.Pos.Block]), req.Text, req.Excerpt)
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
