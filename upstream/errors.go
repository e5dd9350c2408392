package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl/protocol"
)

// Stage says how far a request came.
type Stage string

// The stages of a request.
const (
	StageRequest Stage = "request" // nothing was done
	StageConnect Stage = "connect" // no connection; nothing was sent
	StageAnswer  Stage = "answer"  // sent, maybe in part; no answer yet
	StageBody    Stage = "body"    // the answer was cut off
)

// Error is a failure between furl and the provider. Its text holds nothing of
// what was sent.
type Error struct {
	Stage   Stage
	Host    string
	Timeout bool // a limit of Options has passed
	Err     error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s from %s: %s", e.Stage, e.Host, Text(e.Err))
}

func (e *Error) Unwrap() error { return e.Err }

// What ended a request, as Error.Err wraps it.
var (
	ErrConnectTimeout = errors.New("no connection in time")
	ErrAnswerTimeout  = errors.New("no answer in time")
	ErrIdle           = errors.New("the answer stalled")
	ErrTotal          = errors.New("the answer took too long")
	ErrClientGone     = errors.New("the client has gone")
)

// Text is an error's text without quoted parts: net/http quotes what came over
// the wire, and there may be a secret in it. Where it does not quote it, in what
// it says of a header's line, that is left out too.
func Text(err error) string {
	text, _, cut := strings.Cut(err.Error(), `"`)
	if wire, ok := errors.AsType[textproto.ProtocolError](err); ok {
		if before, _, found := strings.Cut(text, string(wire)); found {
			what, _, _ := strings.Cut(string(wire), ":")
			text, cut = before+what+": ", true
		}
	}
	if cut {
		text += "…"
	}
	return text
}

// Path is the path of a request as it may be in a log: what is not a word of
// the providers' APIs, such as an id, or a key that a client was told to put
// there, is left out.
func Path(u *url.URL) string {
	segments := strings.Split(u.Path, "/")
	if len(segments) > maxSegments {
		segments = append(segments[:maxSegments:maxSegments], "…")
	}
	for i, s := range segments {
		if s != "" && !slices.Contains(apiWords, s) {
			segments[i] = "…"
		}
	}
	return strings.Join(segments, "/")
}

// maxSegments is more than any path of an API has.
const maxSegments = 12

// apiWords are what paths of the providers' APIs are made of.
var apiWords = strings.Fields(`v1 v1beta anthropic openai api furl
	messages count_tokens batches results cancel complete chat completions responses compact input_items input_tokens conversations items
	models embeddings moderations files content uploads parts images generations edits variations audio speech transcriptions translations
	fine_tuning jobs vector_stores search assistants threads runs steps realtime sessions evals containers skills organizations usage
	tokenize detokenize tags show generate props health version oauth hello event_logging batch
	status reload view context records reductions events branches blocks reduce restore pin release fork echo`)

// Panicked is what may be in a log of what was panicked with: the errors of
// the language hold no data.
func Panicked(p any) string {
	if e, ok := p.(runtime.Error); ok {
		return Text(e)
	}
	return fmt.Sprintf("a %T", p)
}

// StatusClientGone is the status noted for a request whose client went away;
// it is never sent.
const StatusClientGone = 499

// Status is the HTTP status that the failure means to a client.
func (e *Error) Status() int {
	switch {
	case errors.Is(e.Err, ErrClientGone):
		return StatusClientGone
	case errors.Is(e.Err, ErrPath):
		return http.StatusBadRequest
	case e.Timeout:
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// Refusal is the failure in words for a client. Its type is left to the codec,
// which knows the provider's word for the status.
func (e *Error) Refusal() *protocol.Refusal {
	what := "The provider's answer was cut off"
	switch e.Stage {
	case StageRequest:
		what = "The request cannot be sent on"
	case StageConnect:
		what = "The provider cannot be reached"
	case StageAnswer:
		what = "The provider did not answer"
	}
	return &protocol.Refusal{Status: e.Status(), Message: fmt.Sprintf("furl: %s (%s): %s", what, e.Host, Text(e.Err))}
}

// fail makes an Error of what a transport or a body gave. cause is the reason
// for which the request was cancelled, nil if it was not.
func (c *Client) fail(stage Stage, err, cause error) *Error {
	if cause != nil {
		err = cause
	}
	if errors.Is(err, context.Canceled) {
		err = ErrClientGone
	}
	e := &Error{Stage: stage, Host: c.base.Host, Err: err}
	switch {
	case errors.Is(err, ErrConnectTimeout), errors.Is(err, ErrAnswerTimeout), errors.Is(err, ErrIdle), errors.Is(err, ErrTotal),
		errors.Is(err, context.DeadlineExceeded):
		e.Timeout = true
	case err == io.EOF:
		e.Err = io.ErrUnexpectedEOF
	}
	return e
}

// WriteError answers a client with a refusal in the shape of the provider's
// own errors. requestID may be empty.
func WriteError(w http.ResponseWriter, c protocol.ReplyCodec, r *protocol.Refusal, requestID string) error {
	body := c.ErrorBody(r, requestID)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(r.Status)
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("answer with an error: %w", err)
	}
	return nil
}
