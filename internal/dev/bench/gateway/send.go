package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/furlhq/furl"
)

// target is a way to the upstream.
type target struct {
	name   string
	p      *process
	bypass bool // the gateway is asked to leave the request alone
	// reduced is how many reductions its answers have named so far.
	reduced int
	client  *http.Client
}

func newTarget(name string, p *process) *target {
	return &target{name: name, p: p, client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 64, DisableCompression: true, WriteBufferSize: 64 << 10,
	}}}
}

// request is one to be sent to several targets.
type request struct {
	format furl.Format
	body   []byte
	stream bool
	step   int
	keep   string // under which the upstream is to keep what it gets
	pieces bool   // the answer's text is to come in pieces
	// session binds it, where what a history says is not to.
	session string
}

// sample is what came of one.
type sample struct {
	total, first time.Duration
	relay        time.Duration // from the upstream's first byte to the client's
	piece        time.Duration // the longest such way of any piece of the text
	asked        bool          // the model asked furl's memory
	reductions   int           // that were made for it
	note         string
}

func (t *target) send(r *request) (sample, error) {
	s := sample{relay: unmeasured, piece: unmeasured}
	req, err := http.NewRequest(http.MethodPost, t.p.url+path(r.format), bytes.NewReader(r.body))
	if err != nil {
		return s, err
	}
	h := req.Header
	h.Set("Content-Type", "application/json")
	h.Set("X-Api-Key", "bench")
	h.Set("Anthropic-Version", "2023-06-01")
	h.Set(headerStep, strconv.Itoa(r.step))
	if r.stream {
		h.Set(headerStream, "1")
	}
	if r.keep != "" {
		h.Set(headerKeep, r.keep)
	}
	if r.pieces {
		h.Set(headerPieces, "1")
	}
	if t.bypass {
		h.Set("X-Furl-Bypass", "1")
	}
	if r.session != "" && t.p.furl {
		h.Set("X-Furl-Session", r.session)
	}
	began := time.Now()
	resp, err := t.client.Do(req)
	if err != nil {
		return s, fmt.Errorf("%s: %w", t.name, err)
	}
	defer resp.Body.Close()
	var buf [4 << 10]byte
	n, err := io.ReadAtLeast(resp.Body, buf[:], 1)
	now := time.Now()
	s.first = now.Sub(began)
	if at, bad := strconv.ParseInt(resp.Header.Get(headerSent), 10, 64); bad == nil {
		s.relay = now.Sub(time.Unix(0, at))
	}
	switch {
	case err != nil:
	case r.pieces:
		s.asked = resp.Header.Get(headerAsked) != ""
		err = s.readPieces(io.MultiReader(bytes.NewReader(buf[:n]), resp.Body))
	default:
		_, err = io.Copy(io.Discard, resp.Body)
	}
	s.total = time.Since(began)
	if err != nil {
		return s, fmt.Errorf("%s: the answer: %w", t.name, err)
	}
	if resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("%s: %s: %s", t.name, resp.Status, buf[:n])
	}
	s.reductions, _ = strconv.Atoi(resp.Header.Get("X-Furl-Reductions"))
	s.note = resp.Header.Get("X-Furl-Note")
	return s, nil
}

// kept fetches what the upstream got under a name.
func kept(upstream *process, name string) ([]byte, error) {
	resp, err := http.Get(upstream.url + "/bench/kept/" + name)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}
