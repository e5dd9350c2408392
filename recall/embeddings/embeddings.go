// Package embeddings gets vectors from an endpoint with OpenAI's embeddings API
// (https://platform.openai.com/docs/api-reference/embeddings), which many servers
// have, including local ones.
//
//	client := embeddings.New("http://127.0.0.1:11434/v1", "nomic-embed-text", nil)
//	vectors := recall.NewVectors(store, client, nil)
package embeddings

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Options are the options of a Client.
type Options struct {
	// Key, if set, is sent as a bearer token. It is never logged, stored or part of
	// an error.
	Key string
	// HTTP is the HTTP client. If nil, one with a timeout of 30 s.
	HTTP *http.Client
	// Batch is the maximum number of texts per request. If zero, 64.
	Batch int
	// Retries is how often a request is repeated after a temporary error (429,
	// 5xx, no connection). If zero, 3; if negative, never.
	Retries int
	// Wait is the time before the first retry; it doubles with each retry. A
	// longer Retry-After of the server is used instead, up to 30 s. If zero, 0.5 s.
	Wait time.Duration
}

// Client gets vectors of one model from one endpoint. It is a recall.Embedder and
// safe for concurrent use.
type Client struct {
	url, model string
	o          Options
}

// New returns a client of the endpoint base + "/embeddings".
func New(base, model string, o *Options) *Client {
	c := &Client{url: strings.TrimRight(base, "/") + "/embeddings", model: model}
	if o != nil {
		c.o = *o
	}
	if c.o.HTTP == nil {
		c.o.HTTP = &http.Client{Timeout: 30 * time.Second}
	}
	c.o.Batch = cmp.Or(max(c.o.Batch, 0), 64)
	c.o.Wait = cmp.Or(c.o.Wait, 500*time.Millisecond)
	if c.o.Retries == 0 {
		c.o.Retries = 3
	}
	return c
}

// Model returns the name of the model.
func (c *Client) Model() string { return c.model }

// Embed returns a vector for each text, in order, all of the same length.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	all := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		n := min(len(texts), c.o.Batch)
		vectors, err := c.batch(ctx, texts[:n])
		if err != nil {
			return nil, fmt.Errorf("embed %d texts with %s: %w", n, c.model, err)
		}
		all = append(all, vectors...)
		texts = texts[n:]
	}
	for _, v := range all {
		if len(v) != len(all[0]) {
			return nil, fmt.Errorf("embed with %s: vectors of %d and of %d numbers", c.model, len(all[0]), len(v))
		}
	}
	return all, nil
}

const (
	maxWait  = 30 * time.Second
	maxReply = 64 << 20 // bytes
	maxError = 300      // bytes of a reply in an error
)

func (c *Client) batch(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(struct {
		Model    string   `json:"model"`
		Input    []string `json:"input"`
		Encoding string   `json:"encoding_format"`
	}{c.model, texts, "float"})
	if err != nil {
		return nil, err
	}
	wait := c.o.Wait
	for tries := 0; ; tries++ {
		vectors, err := c.post(ctx, body, len(texts))
		var again *retryable
		if err == nil || !errors.As(err, &again) || tries >= c.o.Retries {
			return vectors, err
		}
		timer := time.NewTimer(min(max(wait, again.after), maxWait))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
		wait *= 2
	}
}

// retryable is an error that a retry may avoid.
type retryable struct {
	error
	after time.Duration
}

func (r *retryable) Unwrap() error { return r.error }

func (c *Client) post(ctx context.Context, body []byte, texts int) ([][]float32, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	}
	resp, err := c.o.HTTP.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &retryable{error: err}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return nil, &retryable{error: fmt.Errorf("read the reply of the endpoint: %w", err)}
	case len(data) > maxReply:
		return nil, fmt.Errorf("the reply has more than %d bytes", maxReply)
	case resp.StatusCode/100 == 2:
		return vectors(data, texts)
	}
	// The reply may contain the key.
	text := strings.TrimSpace(string(data))
	if c.o.Key != "" {
		text = strings.ReplaceAll(text, c.o.Key, "***")
	}
	err = fmt.Errorf("the endpoint responded with status %d: %.*q", resp.StatusCode, maxError, text)
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500 {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return nil, &retryable{err, time.Duration(min(max(seconds, 0), 3600)) * time.Second}
	}
	return nil, err
}

// vectors parses a reply to so many texts.
func vectors(data []byte, texts int) ([][]float32, error) {
	var reply struct {
		Data []struct {
			Index     *int      `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &reply); err != nil {
		return nil, fmt.Errorf("read the reply of the endpoint: %w", err)
	}
	if len(reply.Data) != texts {
		return nil, fmt.Errorf("the endpoint returned %d vectors for %d texts", len(reply.Data), texts)
	}
	all := make([][]float32, texts)
	for i, d := range reply.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= texts || all[i] != nil || len(d.Embedding) == 0 {
			return nil, fmt.Errorf("vector %d of %d is missing or empty", i, texts)
		}
		all[i] = d.Embedding
	}
	return all, nil
}
