package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/token"
)

// What is compared runs in processes of its own, so that none of them pays for
// the memory and the collections of another. This file has those that are not
// furl: this program again, with another task.

// Headers by which the client tells the upstream what to answer.
const (
	headerStep   = "X-Bench-Step"
	headerStream = "X-Bench-Stream"
	headerKeep   = "X-Bench-Keep" // under which name to keep the body
	headerSent   = "X-Bench-Sent" // of the answer: when it began
)

// child serves a task on a free port, whose address it prints, until standard
// input ends.
func child(task, upstream string) error {
	var h http.Handler
	switch task {
	case "upstream":
		h = new(dummy)
	case "proxy":
		u, err := url.Parse(upstream)
		if err != nil {
			return err
		}
		h = plainProxy(u)
	case "tokenizer":
		token.O200k().Count("The vocabulary is in memory now, and nothing else is.")
		h = http.NotFoundHandler()
	default:
		return fmt.Errorf("no task %q", task)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /bench/usage", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(ownUsage()) })
	mux.Handle("/", h)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", ln.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(ln, mux)
}

// plainProxy is the standard library's, as it comes, with room for as many
// connections as are measured.
func plainProxy(u *url.URL) http.Handler {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u)
			// The transport looks for more after the end of a body when its
			// server may have closed it already, and then breaks the request.
			r.Out.Body = io.NopCloser(io.LimitReader(r.Out.Body, r.Out.ContentLength))
		},
	}
}

// dummy answers at once, as soon as it has the request.
type dummy struct {
	n    atomic.Int64
	kept sync.Map // bodies by name
}

func (d *dummy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/bench/kept/"); ok {
		body, _ := d.kept.LoadAndDelete(name)
		b, _ := body.([]byte)
		_, _ = w.Write(b)
		return
	}
	step, _ := strconv.Atoi(r.Header.Get(headerStep))
	if r.Header.Get(headerPieces) != "" {
		if body, err := io.ReadAll(r.Body); err == nil {
			pieces(w, body, step, fmt.Sprintf("id_%d", d.n.Add(1)))
		}
		return
	}
	size, err := d.read(r)
	if err != nil {
		return
	}
	stream := r.Header.Get(headerStream) == "1"
	format := furl.FormatAnthropic
	switch {
	case strings.HasSuffix(r.URL.Path, "/completions"):
		format = furl.FormatChat
	case strings.HasSuffix(r.URL.Path, "/responses"):
		format = furl.FormatResponses
	}
	first, rest := answer(format, stream, step, fmt.Sprintf("id_%d", d.n.Add(1)), int(size/4))
	w.Header().Set("Content-Type", "application/json")
	if stream {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.Header().Set(headerSent, strconv.FormatInt(time.Now().UnixNano(), 10))
	_, _ = w.Write(first)
	if stream {
		_ = http.NewResponseController(w).Flush()
	}
	_, _ = w.Write(rest)
}

// read takes the body in, and keeps it if that is asked for.
func (d *dummy) read(r *http.Request) (int64, error) {
	name := r.Header.Get(headerKeep)
	if name == "" {
		return io.Copy(io.Discard, r.Body)
	}
	body, err := io.ReadAll(r.Body)
	d.kept.Store(name, body)
	return int64(len(body)), err
}
