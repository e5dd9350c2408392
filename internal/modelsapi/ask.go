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
	"slices"
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

// headers are the headers of a client's request that are sent with a query: its credential,
// and the headers that providers require with it.
var headers = []string{
	"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key",
	"Anthropic-Version", "Anthropic-Beta", "Openai-Organization", "Openai-Project", "User-Agent",
}

// Ask asks a provider about a model in the background, if that is due. header is the header
// of a request for the model in a format, which the provider has accepted. The caller may
// change it afterwards.
func (b *Book) Ask(up *upstream.Client, format furl.Format, model string, header http.Header) {
	queries := wire.ModelQueries(format, up.Vendor(), model)
	k := key{up.Address(), model}
	if len(queries) == 0 || !b.begin(k) {
		return
	}
	sent := make(http.Header)
	for _, name := range headers {
		if v := header.Values(name); len(v) > 0 {
			sent[name] = slices.Clone(v)
		}
	}
	sent.Set("Accept", "application/json")
	go func() {
		defer b.asking.Done()
		defer func() { <-b.slots }()
		b.ask(up, k, queries, sent)
	}()
}

// begin reports whether to ask about a model now. If so, the caller must call end.
func (b *Book) begin(k key) bool {
	if k.model == "" || len(k.model) > maxModelName {
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
	if f := b.facts[k]; b.busy[k] || now.Sub(f.Asked) < interval && !now.Before(f.Asked) {
		return false
	}
	select {
	case b.slots <- struct{}{}:
	default:
		return false // a later request asks
	}
	b.busy[k] = true
	b.asking.Add(1)
	return true
}

// end records the result of asking about a model. A query that Close has cancelled is not
// recorded: the next process asks again.
func (b *Book) end(k key, sizes protocol.ModelAnswer, from string, err error) {
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.busy, k)
	if errors.Is(err, errClosed) {
		return
	}
	f := b.facts[k]
	f.Provider, f.Model, f.Asked, f.Failed = k.provider, k.model, now, ""
	if err != nil {
		f.Failed = upstream.Text(err)
	} else {
		f.Window, f.MaxOutput, f.From, f.At = sizes.Window, sizes.MaxOutput, from, now
	}
	b.facts[k] = f
	b.trim()
}

// Reasons for which a provider reports nothing.
var (
	errClosed   = errors.New("furl is stopping")
	errSilent   = errors.New("the provider reports no sizes")
	errPanicked = errors.New("furl panicked")
)

// ask asks about a model, and records the result.
func (b *Book) ask(up *upstream.Client, k key, queries []protocol.ModelQuery, header http.Header) {
	sizes, from, err := b.query(up, queries, header)
	b.end(k, sizes, from, err)
	if errors.Is(err, errClosed) {
		return
	}
	failed := ""
	if err != nil {
		failed = upstream.Text(err)
	}
	b.log.Info("asked the provider about a model", "host", up.Host(), "model", k.model, "window", sizes.Window, "failed", failed)
	if err := b.save(); err != nil {
		b.log.Warn("cannot write the sizes that providers report of their models", "error", err)
	}
}

// query sends queries until a response has the window. It returns the sizes, and the URL
// that reported them.
func (b *Book) query(up *upstream.Client, queries []protocol.ModelQuery, header http.Header) (sizes protocol.ModelAnswer, from string, err error) {
	defer func() {
		if p := recover(); p != nil {
			b.log.Error("furl panicked while it asked about a model", "panic", upstream.Panicked(p), "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	go func() {
		select {
		case <-b.done:
			stop(errClosed)
		case <-ctx.Done():
		}
	}()
	var failed error
	for n := 0; n < maxQueries && len(queries) > 0 && sizes.Window == 0; n++ {
		q := queries[0]
		queries = queries[1:]
		body, err := send(ctx, up, &q, header)
		if errors.Is(context.Cause(ctx), errClosed) && err != nil {
			return protocol.ModelAnswer{}, "", errClosed
		}
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("%s: %w", q.Path, err))
			continue
		}
		a := q.Read(body)
		a.Window, a.MaxOutput = inRange(a.Window), inRange(a.MaxOutput)
		if a.Window > 0 || a.MaxOutput > 0 {
			sizes.Window, sizes.MaxOutput = a.Window, cmp.Or(a.MaxOutput, sizes.MaxOutput)
			from = urlOf(up, &q)
		}
		queries = append(a.Next, queries...)
	}
	if sizes.Window > 0 || sizes.MaxOutput > 0 {
		return sizes, from, nil
	}
	return sizes, from, cmp.Or(failed, errSilent)
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

// Wait waits until all queries are answered and their results are written.
func (b *Book) Wait() { b.asking.Wait() }

// Close cancels the queries, sends no others, and waits until the file is written.
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
