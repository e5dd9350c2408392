package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// limited returns a body that fails if the provider sends nothing for Options.Idle,
// or if the request takes longer than Options.Total. At its end the response has the
// trailers, without those that are furl's.
func (c *Client) limited(resp *http.Response, ctx context.Context, cancel context.CancelCauseFunc) io.ReadCloser {
	withoutOwn(resp.Trailer) // that are announced
	b := &limitedBody{ReadCloser: resp.Body, client: c, ctx: ctx, cancel: cancel, resp: resp}
	b.idle = time.AfterFunc(c.opts.Idle, func() { cancel(ErrIdle) })
	b.idle.Stop()
	if c.opts.Total > 0 {
		b.total = time.AfterFunc(c.opts.Total, func() { cancel(ErrTotal) })
	}
	return b
}

type limitedBody struct {
	io.ReadCloser
	client *Client
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer // runs during a Read
	total  *time.Timer // nil: no limit
	resp   *http.Response
	err    error
}

// Read implements io.Reader. Its error is io.EOF or an *Error. Later calls return the
// same error.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	b.idle.Reset(b.client.opts.Idle)
	n, err := b.ReadCloser.Read(p)
	b.idle.Stop()
	if errors.Is(err, io.EOF) {
		withoutOwn(b.resp.Trailer)
	} else if err != nil {
		err = b.client.fail(StageBody, err, context.Cause(b.ctx))
	}
	b.err = err
	return n, err
}

// Close ends the request. It cancels the request if the body was not read to its end.
func (b *limitedBody) Close() error {
	b.idle.Stop()
	if b.total != nil {
		b.total.Stop()
	}
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
