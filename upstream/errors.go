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

// Stage is the point at which a request failed.
type Stage string

// The stages of a request.
const (
	StageRequest Stage = "request" // before connecting
	StageConnect Stage = "connect" // connecting; nothing was sent
	StageAnswer  Stage = "answer"  // sent, maybe in part; no response yet
	StageBody    Stage = "body"    // the response was cut off
)

// Error is a failure between furl and the provider. Its text has no parts of the
// request or the response.
type Error struct {
	Stage   Stage
	Host    string
	Timeout bool // a time limit of Options was exceeded
	Err     error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s from %s: %s", e.Stage, e.Host, Text(e.Err))
}

func (e *Error) Unwrap() error { return e.Err }

// Causes of an Error.
var (
	ErrConnectTimeout = errors.New("connection timed out")
	ErrAnswerTimeout  = errors.New("response timed out")
	ErrIdle           = errors.New("response stalled")
	ErrTotal          = errors.New("response took too long")
	ErrClientGone     = errors.New("client disconnected")
)

// Text returns an error's text without quoted parts: net/http quotes received data,
// which may contain secrets. It also removes malformed header lines, which net/http
// does not quote.
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

// Path returns the path of a request for logs. It replaces segments that are not
// words of the providers' APIs by "…": they may be ids or keys.
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

// maxSegments is the number of segments that Path returns. No API has more.
const maxSegments = 12

// apiWords are the segments of paths in the providers' APIs and furl's API.
var apiWords = strings.Fields(`v1 v1beta anthropic openai api furl
	messages count_tokens batches results cancel complete chat completions responses compact input_items input_tokens conversations items
	models embeddings moderations files content uploads parts images generations edits variations audio speech transcriptions translations
	fine_tuning jobs vector_stores search assistants threads runs steps realtime sessions evals containers skills organizations usage
	tokenize detokenize tags show generate props health version oauth hello event_logging batch
	status reload view context records reductions events branches blocks reduce restore pin release fork echo login logout assets`)

// Panicked returns a text for logs about the value of a panic. Only the text of
// runtime errors is included: other values may have data of requests.
func Panicked(p any) string {
	if e, ok := p.(runtime.Error); ok {
		return Text(e)
	}
	return fmt.Sprintf("a %T", p)
}

// StatusClientGone is the status recorded for a request whose client disconnected.
// It is never sent.
const StatusClientGone = 499

// Status is the HTTP status for the client.
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

// Refusal returns the error for the client. The codec sets its type by the status.
func (e *Error) Refusal() *protocol.Refusal {
	what := "the provider's response was cut off"
	switch e.Stage {
	case StageRequest:
		what = "cannot send the request to the provider"
	case StageConnect:
		what = "cannot connect to the provider"
	case StageAnswer:
		what = "the provider did not respond"
	}
	return &protocol.Refusal{Status: e.Status(), Message: fmt.Sprintf("furl: %s (%s): %s", what, e.Host, Text(e.Err))}
}

// fail returns an Error for an error of a transport or a body. cause is the reason
// for cancelling the request, or nil.
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

// WriteError writes an error response in the provider's format. requestID may be
// empty.
func WriteError(w http.ResponseWriter, c protocol.ReplyCodec, r *protocol.Refusal, requestID string) error {
	body := c.ErrorBody(r, requestID)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(r.Status)
	if _, err := w.Write(body); err != nil {
		return fmt.Errorf("write the error response: %w", err)
	}
	return nil
}
