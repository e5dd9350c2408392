package exchange_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/exchange"
	opened "github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
)

// answers returns a function that posts nothing and answers with these bodies in turn. An
// answer starts with its status.
func answers(sent *[]string, list ...string) func(context.Context, []byte) (*http.Response, error) {
	return func(_ context.Context, body []byte) (*http.Response, error) {
		*sent = append(*sent, string(body))
		status, text, _ := strings.Cut(list[0], " ")
		list = list[1:]
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text))}
		switch status {
		case "400":
			resp.StatusCode = http.StatusBadRequest
		case "500":
			resp.StatusCode = http.StatusInternalServerError
		}
		return resp, nil
	}
}

const (
	composedReply   = `200 {"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":1}}`
	composedTooLong = `400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`
	composedFails   = `500 {"type":"error","error":{"type":"api_error","message":"try again"}}`
)

// A composed request is planned from the session, stored before it is sent, shortened as
// often as the provider refuses it, and sent again after a temporary failure.
func TestComposed(t *testing.T) {
	all, _ := open(t, session.Options{Policy: "sliding-window"})
	s := all.Create(storage.Meta{})
	appendAll(t, s, steps(t, 16, 8000))
	api, system, stored := wire.For(furl.FormatAnthropic), "one", 0
	x, err := exchange.Compose(t.Context(), s, exchange.Composed{
		API: api,
		Head: func() ([]byte, opened.Prompt, error) {
			head, err := api.NewRequest(&protocol.Params{Model: "claude-sonnet-4-5", System: system, MaxTokens: 100})
			return head, opened.Prompt{Model: "claude-sonnet-4-5", MaxTokens: 100}, err
		},
		Stored: func(context.Context) (bool, error) {
			stored++
			was := system
			system = "two"
			return was == "one", nil
		},
	})
	if err != nil || stored != 2 || !strings.Contains(string(x.Body), `"two"`) {
		t.Fatalf("error %v, the plan was stored %d times, body %.80s", err, stored, x.Body)
	}
	var sent []string
	var retries []int
	reply, err := x.Ask(t.Context(), exchange.AskOptions{
		Post: answers(&sent, composedFails, composedTooLong, composedTooLong, composedReply), Retries: 1,
		Retry: func(attempt int, _ time.Duration, _ error) { retries = append(retries, attempt) },
	})
	if err != nil || exchange.TextOf(reply) != "Done." || len(sent) != 4 || len(retries) != 1 {
		t.Fatalf("error %v, %d requests, retries %v", err, len(sent), retries)
	}
	if sent[0] != sent[1] || len(sent[2]) >= len(sent[1]) || len(sent[3]) >= len(sent[2]) || len(s.Reductions()) < 2 {
		t.Errorf("requests of %d, %d, %d and %d bytes, %d reductions", len(sent[0]), len(sent[1]), len(sent[2]), len(sent[3]), len(s.Reductions()))
	}
	if err := x.Done(t.Context(), reply); err != nil {
		t.Fatal(err)
	}
	ex, ok := s.Records(0)[len(s.Records(0))-2].Body.(*furl.Exchange)
	if !ok || ex.Usage.Output != 1 {
		t.Errorf("recorded %+v", ex)
	}
}

// A request that is not recorded is sent once, and its refusal is the error.
func TestPlain(t *testing.T) {
	var sent []string
	x := exchange.Plain(wire.For(furl.FormatAnthropic), "m", []byte(`{"model":"m"}`))
	reply, err := x.Ask(t.Context(), exchange.AskOptions{Post: answers(&sent, composedTooLong)})
	if refused, ok := errors.AsType[*protocol.Refusal](err); !ok || refused.Status != http.StatusBadRequest || reply.Overflow == nil || len(sent) != 1 {
		t.Errorf("error %v, %d requests", err, len(sent))
	}
}
