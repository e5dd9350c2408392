package modelsapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// Limits of asking.
const (
	interval   = 24 * time.Hour // for a model and a provider, also after a failure
	askTimeout = 30 * time.Second
	maxAsking  = 4       // models at a time
	maxQueries = 5       // for a model
	maxAnswer  = 8 << 20 // in bytes; OpenRouter's list has about one MB
)

// headers are those of a client's request that are sent with a query: its credential, and
// what the credential needs.
var headers = []string{
	"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key",
	"Anthropic-Version", "Anthropic-Beta", "Openai-Organization", "Openai-Project", "User-Agent",
}

// Ask asks a provider about a model in the background, if that is due. header is that of a
// request for the model in a format, as it was sent to the provider, which has accepted it.
func (b *Book) Ask(up *upstream.Client, format furl.Format, model string, header http.Header) {
	queries := wire.ModelQueries(format, up.Vendor(), model)
	if len(queries) == 0 || !b.begin(up.Address(), model) {
		return
	}
	sent := make(http.Header)
	for _, name := range headers {
		if v := header.Values(name); len(v) > 0 {
			sent[name] = v
		}
	}
	sent.Set("Accept", "application/json")
	go func() {
		defer b.asking.Done()
		defer func() { <-b.slots }()
		defer func() {
			if p := recover(); p != nil {
				b.log.Error("furl panicked while it asked about a model", "panic", upstream.Panicked(p), "stack", string(debug.Stack()))
			}
		}()
		b.ask(up, model, queries, sent)
	}()
}

// begin reports whether a model is to be asked about now, and records that it is.
func (b *Book) begin(provider, model string) bool {
	if model == "" || len(model) > maxModelName {
		return false
	}
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.done:
		return false
	default:
	}
	f := b.facts[key{provider, model}]
	if now.Sub(f.Asked) < interval && !now.Before(f.Asked) {
		return false
	}
	select {
	case b.slots <- struct{}{}:
	default:
		return false // a later request asks
	}
	f.Provider, f.Model, f.Asked = provider, model, now
	b.facts[key{provider, model}] = f
	b.asking.Add(1)
	return true
}

// ask sends queries until one tells the window, and keeps what was said.
func (b *Book) ask(up *upstream.Client, model string, queries []protocol.ModelQuery, header http.Header) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-b.done:
			cancel()
		case <-stop:
		}
	}()
	var said protocol.ModelAnswer
	var from string
	var failed error
	for n := 0; n < maxQueries && len(queries) > 0 && said.Window == 0; n++ {
		q := queries[0]
		queries = queries[1:]
		body, err := send(ctx, up, &q, header)
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("%s: %w", q.Path, err))
			continue
		}
		a := q.Read(body)
		a.Window, a.MaxOutput = inRange(a.Window), inRange(a.MaxOutput)
		if a.Window > 0 || a.MaxOutput > 0 {
			said.Window, said.MaxOutput = a.Window, cmp.Or(a.MaxOutput, said.MaxOutput)
			from = urlOf(up, &q)
		}
		queries = append(a.Next, queries...)
	}
	b.mu.Lock()
	k := key{up.Address(), model}
	f := b.facts[k]
	f.Provider, f.Model, f.Failed = k.provider, k.model, ""
	switch {
	case said.Window > 0 || said.MaxOutput > 0:
		f.Window, f.MaxOutput, f.From, f.At = said.Window, said.MaxOutput, from, f.Asked
	case failed != nil:
		f.Failed = upstream.Text(failed)
	default:
		f.Failed = "the provider does not say"
	}
	b.facts[k] = f
	b.mu.Unlock()
	b.log.Info("asked the provider about a model", "host", up.Host(), "model", model, "window", f.Window, "failed", f.Failed)
	if err := b.save(); err != nil {
		b.log.Warn("what the provider said about a model could not be written", "error", err)
	}
}

// urlOf returns the URL of a query, for people.
func urlOf(up *upstream.Client, q *protocol.ModelQuery) string {
	if q.Root {
		up = up.Root()
	}
	return up.URL(addressOf(q))
}

// addressOf returns the URL of a query without the host.
func addressOf(q *protocol.ModelQuery) *url.URL {
	u := &url.URL{Path: q.Path, RawPath: q.Path}
	if q.Name != "" {
		u.Path, u.RawPath = q.Path+"/"+q.Name, q.Path+"/"+url.PathEscape(q.Name)
	}
	values := make(url.Values)
	for name, value := range q.Query {
		values.Set(name, value)
	}
	u.RawQuery = values.Encode()
	return u
}

// send sends a query and returns the body of the response.
func send(ctx context.Context, up *upstream.Client, q *protocol.ModelQuery, header http.Header) ([]byte, error) {
	r := (&http.Request{Method: http.MethodGet, URL: addressOf(q), Header: header.Clone()}).WithContext(ctx)
	if q.Body != nil {
		r.Method, r.ContentLength = http.MethodPost, int64(len(q.Body))
		r.Body = io.NopCloser(bytes.NewReader(q.Body))
		r.Header.Set("Content-Type", "application/json")
	}
	if q.Root {
		up = up.Root()
	}
	resp, err := up.RoundTrip(r) // follows no redirects
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // read only
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errors.New("the response is too large")
	}
	return body, err
}

// Wait waits until everything that was asked is answered and written.
func (b *Book) Wait() { b.asking.Wait() }

// Close stops asking, and waits for what is being written.
func (b *Book) Close() {
	b.mu.Lock()
	select {
	case <-b.done:
	default:
		close(b.done)
	}
	b.mu.Unlock()
	b.asking.Wait()
}
