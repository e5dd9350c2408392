package furlhttp

import (
	"bytes"
	"io"
	"net/http"

	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/wire"
)

// bypass sends a request with HeaderBypass unchanged. Nothing hides the images in it that
// the provider refuses, so a note says that there are some.
func (t *Transport) bypass(r *http.Request, api wire.API) (*http.Response, error) {
	resp, err := t.pass(withoutOwnHeaders(r), &session.Exchange{Passed: session.PassedBypass})
	if err != nil {
		return nil, err
	}
	DescribeBypass(resp.Header, t.sessions, api, t.sentBody(r))
	return resp, nil
}

// DescribeBypass adds a note to the headers of the response to a request that was sent
// unchanged, if the provider refuses images in it for their size.
func DescribeBypass(h http.Header, all *session.Sessions, api wire.API, body []byte) {
	defer func() { _ = recover() }() // the request was sent; only a note is lost
	if !bytes.Contains(body, []byte("image")) {
		return
	}
	req, err := api.DecodeRequest(body)
	if err != nil {
		return
	}
	if large := policy.LargeImagesIn(req.Messages, all.Model(req.Model, req.Format)); large != "" {
		addNote(h, refusedImages+large)
	}
}

// sentBody returns the body of a request that was sent, nil if it is larger than
// Options.MaxBody or cannot be read again.
func (t *Transport) sentBody(r *http.Request) []byte {
	if b, ok := r.Body.(bodyBytes); ok {
		return b.Bytes()
	}
	if r.GetBody == nil {
		return nil
	}
	again, err := r.GetBody()
	if err != nil {
		return nil
	}
	defer again.Close()
	body, err := io.ReadAll(io.LimitReader(again, t.o.MaxBody+1))
	if err != nil || int64(len(body)) > t.o.MaxBody {
		return nil
	}
	return body
}
