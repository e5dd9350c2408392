package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// A request's body may take its time, but has to come. It must be there at a
// certain pace behind a while of grace, and all bodies together may take so much
// memory.
const (
	bodyGrace = 30 * time.Second
	bodyPace  = 16 << 10 // bytes per second
	maxBodies = 512 << 20
)

var (
	errTooSlow  = errors.New("the body did not come in time")
	errTooMuch  = errors.New("the requests under way are too large together")
	errTooLarge = errors.New("the body is larger than this gateway takes")
)

// paced reads a body that has to come at a pace.
type paced struct {
	io.ReadCloser
	rc    *http.ResponseController
	begun time.Time
	grace time.Duration
	n     int64
	late  atomic.Bool // it did not come in time
}

func (g *Gateway) paced(w http.ResponseWriter, r *http.Request) *paced {
	return &paced{ReadCloser: r.Body, rc: http.NewResponseController(w), begun: time.Now(), grace: g.o.BodyGrace}
}

func (p *paced) Read(b []byte) (int, error) {
	// Not every writer has deadlines; the server's own limits hold then.
	_ = p.rc.SetReadDeadline(p.begun.Add(p.grace + time.Duration(p.n)*time.Second/bodyPace))
	n, err := p.ReadCloser.Read(b)
	switch p.n += int64(n); {
	case err == io.EOF:
		_ = p.rc.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		// The deadline stays: nobody is to wait for the rest.
		p.late.Store(true)
		err = errTooSlow
	}
	return n, err
}

// held counts bytes of bodies while they are read.
type held struct {
	io.Reader
	all *atomic.Int64
	max int64
	n   int64
}

func (h *held) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	h.n += int64(n)
	if h.all.Add(int64(n)) > h.max {
		return n, errTooMuch
	}
	return n, err
}

// letGo takes back what was counted of a body.
func (g *Gateway) letGo(n int) { g.held.Add(int64(-n)) }
