package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// A request's body must arrive at this pace, after a period of grace.
const (
	bodyGrace = 30 * time.Second
	bodyPace  = 16 << 10 // bytes per second
)

var (
	errTooSlow  = errors.New("the body did not come in time")
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
