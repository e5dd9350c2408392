package furlhttp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/protocol"
)

// answerCommand answers a request that ends with a command to furl, if its session
// asks for commands: it sets q.answer.
func (t *Transport) answerCommand(q *modelRequest, req *protocol.Request, o exchange.BeginOptions) error {
	text, s, ok, err := t.exchanges.AnswerCommand(q.Context(), req, o.Commands, o)
	switch {
	case err != nil && q.Context().Err() != nil:
		return context.Cause(q.Context())
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnrecorded, err)
	case !ok:
		return nil
	}
	t.o.Hooks.passed(PassedCommand, nil)
	contentType, body := q.api.TextReply(req, exchange.ReplyID(), text, time.Now())
	q.answer = localResponse(q, http.StatusOK, contentType, body)
	if s != nil {
		q.answer.Header.Set(HeaderSession, string(s.ID()))
	}
	q.answer.Header.Set(HeaderNote, "answered by furl: the message is a command")
	return nil
}

// refusal returns a refusal as a response to a request.
func refusal(q *modelRequest, r *protocol.Refusal) *http.Response {
	return localResponse(q, r.Status, "application/json", q.api.ErrorBody(r, ""))
}

// localResponse returns a response that no provider has sent.
func localResponse(q *modelRequest, status int, contentType string, body []byte) *http.Response {
	h := http.Header{"Content-Type": {contentType}, "Content-Length": {strconv.Itoa(len(body))}}
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: q.Request,
	}
}
