package furlhttp

import (
	"bytes"
	"io"
	"net/http"

	"github.com/furlhq/furl/policy"
)

// bypass sends a request with HeaderBypass unchanged. Nothing hides the images in it that
// the provider refuses, so a note says that there are some.
func (t *Transport) bypass(q *modelRequest) (*http.Response, error) {
	t.o.Hooks.passed(PassedBypass, nil)
	resp, err := t.o.Base.RoundTrip(withoutOwnHeaders(q.Request))
	if err != nil {
		return nil, err
	}
	if large := t.largeImages(q); large != "" {
		addNote(resp.Header, refusedImages+large)
	}
	return resp, nil
}

// largeImages says which images of a request the provider refuses for their size, "" if
// there are none or the body cannot be read a second time.
func (t *Transport) largeImages(q *modelRequest) (large string) {
	defer func() {
		if t.o.Hooks.Panicked == nil {
			return
		}
		if p := recover(); p != nil {
			t.o.Hooks.Panicked(p)
		}
	}()
	body := t.sentBody(q.Request)
	if !bytes.Contains(body, []byte("image")) {
		return ""
	}
	req, err := q.api.DecodeRequest(body)
	if err != nil {
		return ""
	}
	return policy.LargeImagesIn(req.Messages, t.sessions.Model(req.Model, req.Format))
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
