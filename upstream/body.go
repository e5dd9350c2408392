package upstream

import (
	"context"
	"errors"
	"io"
	"time"
)

// limited returns a body that fails if the provider sends nothing for Options.Idle,
// or if the request takes longer than Options.Total.
func (c *Client) limited(body io.ReadCloser, ctx context.Context, cancel context.CancelCauseFunc) io.ReadCloser {
	b := &limitedBody{ReadCloser: body, client: c, ctx: ctx, cancel: cancel}
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
	if err != nil && !errors.Is(err, io.EOF) {
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
