package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// figures are what the list shows of a session that follows from its records.
type figures struct {
	records      furl.Seq
	size, hidden int // of the context, in tokens
	sums         storage.Savings
	// points are the sizes of the context, at most maxPoints of them; cuts are the
	// indexes of those after a reduction.
	points   []int
	cuts     []int
	requests int
	largest  int
}

// maxPoints is the number of points of a curve in the list.
const maxPoints = 48

// maxFigures is the number of sessions whose figures are in memory.
const maxFigures = 5000

// figureCache has the figures of sessions as of a number of records.
type figureCache struct {
	mu sync.Mutex
	by map[furl.SessionKey]*figures
	// reading limits how many sessions are read for the list at the same time.
	reading chan struct{}
}

func newFigureCache() *figureCache {
	return &figureCache{by: make(map[furl.SessionKey]*figures), reading: make(chan struct{}, 2)}
}

// of returns the figures of a session with that many records, nil if they are not known.
func (c *figureCache) of(key furl.SessionKey, records furl.Seq) *figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.by[key]; f != nil && f.records == records {
		return f
	}
	return nil
}

func (c *figureCache) set(key furl.SessionKey, f *figures) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.by) >= maxFigures {
		for other := range c.by { // any
			delete(c.by, other)
			break
		}
	}
	c.by[key] = f
}

// forget drops the figures of a session.
func (c *figureCache) forget(key furl.SessionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, key)
}

// figuresOf reads a session.
func figuresOf(s *session.Session) (*figures, error) {
	requests, err := s.Requests()
	if err != nil {
		return nil, err
	}
	usage := s.Context("")
	f := &figures{records: s.Info().Records, size: usage.Size, hidden: usage.Hidden, requests: len(requests), sums: savingsOf(session.TotalsOf(requests))}
	width := max(1, (len(requests)+maxPoints-1)/maxPoints)
	for from := 0; from < len(requests); from += width {
		size, cut := 0, false
		for i := from; i < min(from+width, len(requests)); i++ {
			size = max(size, requests[i].Size)
			cut = cut || len(requests[i].Reductions) > 0
		}
		if cut {
			f.cuts = append(f.cuts, len(f.points))
		}
		f.points = append(f.points, size)
		f.largest = max(f.largest, size)
	}
	return f, nil
}

// savingsOf returns the sums of requests as a ledger has them.
func savingsOf(t session.Totals) storage.Savings {
	return storage.Savings{
		Requests: t.Requests, Tokens: t.Tokens, TokensWithout: t.TokensWithout, SummaryTokens: t.Own.Tokens, Repairs: t.Repairs, RepairTokens: t.RepairTokens, OverWindow: t.Over, Unpriced: t.Unpriced,
		Cost: t.Cost, CostWithout: t.Without, SummaryCost: t.Own.Cost,
		TokensSpread: t.TokensMost - t.TokensWithout, CostSpread: t.WithoutMost - t.Without,
	}
}

// The size of a curve in the list, in pixels.
const (
	sparkWidth  = 96
	sparkHeight = 20
)

// x and y place point i.
func (f *figures) x(i int) float64 {
	if len(f.points) < 2 {
		return sparkWidth / 2
	}
	return 1 + float64(i)*(sparkWidth-2)/float64(len(f.points)-1)
}

func (f *figures) y(i int) float64 {
	return sparkHeight - 1 - float64(f.points[i])*(sparkHeight-3)/float64(max(1, f.largest))
}

// Line are the points of the curve, and Area those of the area below it, for SVG.
func (f *figures) Line() string {
	var b strings.Builder
	for i := range f.points {
		fmt.Fprintf(&b, "%.1f,%.1f ", f.x(i), f.y(i))
	}
	return strings.TrimSpace(b.String())
}

// Area is Line, closed at the bottom.
func (f *figures) Area() string {
	return fmt.Sprintf("%.1f,%d %s %.1f,%d", f.x(0), sparkHeight, f.Line(), f.x(len(f.points)-1), sparkHeight)
}

// dot is a place on the curve.
type dot struct{ X, Y string }

// Cuts are the places of reductions.
func (f *figures) Cuts() []dot {
	list := make([]dot, len(f.cuts))
	for i, at := range f.cuts {
		list[i] = dot{fmt.Sprintf("%.1f", f.x(at)), fmt.Sprintf("%.1f", f.y(at))}
	}
	return list
}

// HasCurve reports whether there is something to draw.
func (f *figures) HasCurve() bool { return len(f.points) > 1 }

// Words describe the curve.
func (f *figures) Words() string {
	text := fmt.Sprintf("Context size of %s: at most %s tokens", pluralOf(f.requests, "request"), thousands(f.largest))
	if n := len(f.cuts); n > 0 {
		text += ", dots are reductions"
	}
	return text
}

// spark responds with the cells of a session's row that require its records. If the
// figures for the number of records in the address are known, it does not open the
// session.
func (p *Page) spark(v *visit) error {
	key := furl.SessionKey{Tenant: v.Sessions.Tenant(), Session: furl.SessionID(v.r.PathValue("id"))}
	n, err := strconv.ParseUint(v.r.FormValue("records"), 10, 63)
	if err != nil {
		return badRequest("invalid number of records %.20q", v.r.FormValue("records"))
	}
	if p.figures.of(key, furl.Seq(n)) == nil {
		if err := v.readFigures(key); err != nil {
			return err
		}
	}
	for info, err := range v.Sessions.List(v.r.Context(), storage.SessionQuery{Prefix: string(key.Session)}) {
		if err != nil {
			return err
		}
		if info.Session == key.Session {
			v.render(http.StatusOK, "cells", new(v.listed(info)))
			return nil
		}
	}
	return notFound("there is no session %.60q", key.Session)
}

// readFigures opens a session and keeps its figures.
func (v *visit) readFigures(key furl.SessionKey) error {
	select {
	case v.p.figures.reading <- struct{}{}:
		defer func() { <-v.p.figures.reading }()
	case <-v.r.Context().Done():
		return v.r.Context().Err()
	}
	s, err := v.Sessions.Open(v.r.Context(), key.Session)
	if err != nil {
		return err
	}
	if v.p.figures.of(key, s.Info().Records) != nil {
		return nil // another request has read it
	}
	f, err := figuresOf(s)
	if err != nil {
		return err
	}
	v.p.figures.set(key, f)
	return nil
}

// showHidden leads to the newest reduction of a session that hides something, or to its
// newest messages if there is none.
func (p *Page) showHidden(v *visit) error {
	query := ""
	for _, red := range slices.Backward(v.s.Reductions()) {
		if red.Shown && !red.Lifted {
			query = "?at=" + seqKey(red.Seq)
			break
		}
	}
	http.Redirect(v.w, v.r, prefix+"/sessions/"+string(v.s.ID())+query, http.StatusSeeOther)
	return nil
}
