package sdktest

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
	wireanthropic "github.com/furlhq/furl/wire/anthropic"
	wireopenai "github.com/furlhq/furl/wire/openai"
)

// foreseer relays requests to a provider and holds each to what the reply
// before it let it foresee: the history begins with the last request's, and
// goes on with the reply as it was understood.
type foreseer struct {
	t      *testing.T
	codec  protocol.Codec
	client *upstream.Client

	mu      sync.Mutex
	chain   furl.Digest // of the last request and its reply
	matched int         // requests that were as foreseen
}

// foreseen starts a foreseer in front of a sim and gives its address.
func foreseen(t *testing.T, codec protocol.Codec) (*foreseer, string) {
	t.Helper()
	provider := httptest.NewServer(sim.New(&sim.Options{Player: player(), AnyField: true}))
	t.Cleanup(provider.Close)
	client, err := upstream.New(provider.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	f := &foreseer{t: t, codec: codec, client: client}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	return f, srv.URL
}

func (f *foreseer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
		return
	}
	req, err := f.codec.DecodeRequest(body)
	if err != nil {
		f.t.Error(err)
		return
	}
	var chain furl.Digest
	var chains []furl.Digest
	for i := range req.Messages {
		chain = req.Messages[i].Extend(chain)
		chains = append(chains, chain)
	}
	switch {
	case f.chain.IsZero():
	case slices.Contains(chains, f.chain):
		f.matched++
	default:
		f.t.Errorf("%s: the history is not what the reply foretold: %s", f.codec.Format(), body)
	}
	out := r.Clone(r.Context())
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.Header.Set("Accept-Encoding", "identity")
	resp, err := f.client.RoundTrip(out)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer resp.Body.Close()
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	reader := wire.NewReplyReader(wire.For(f.codec.Format()), resp.StatusCode, resp.Header.Get("Content-Type"))
	_, cut := io.Copy(flushing{w}, io.TeeReader(resp.Body, reader))
	reply, err := reader.Reply(nil)
	if err != nil || !reply.Complete || len(reply.Messages) == 0 || reply.Usage == (furl.Usage{}) {
		f.t.Errorf("understood %+v, %v", reply, err)
	}
	for _, m := range reply.Messages {
		chain = m.Extend(chain)
	}
	f.chain = chain
	if cut != nil && r.Context().Err() == nil { // a client may leave at [DONE]
		f.t.Error(cut)
	}
}

// flushing flushes each piece.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	_ = http.NewResponseController(f.ResponseWriter).Flush()
	return n, err
}

// foretold runs a test with whole and with streamed replies.
func foretold(t *testing.T, codec protocol.Codec, run func(t *testing.T, base string, stream bool)) {
	inBothWays(t, func(t *testing.T, stream bool) {
		f, base := foreseen(t, codec)
		run(t, base, stream)
		if f.matched != 12 {
			t.Errorf("%d requests were as foreseen, want 12", f.matched)
		}
	})
}

func TestAnthropicHistoryIsForeseen(t *testing.T) {
	foretold(t, wireanthropic.Codec, func(t *testing.T, base string, stream bool) {
		client := anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey("test"), anthropicoption.WithMaxRetries(0))
		workMessages(t, client, messagesTask(), stream, someWords, nil)
	})
}

func TestChatHistoryIsForeseen(t *testing.T) {
	foretold(t, wireopenai.Chat, func(t *testing.T, base string, stream bool) {
		client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey("test"), option.WithMaxRetries(0))
		workChat(t, client, stream, someWords, nil)
	})
}

func TestResponsesHistoryIsForeseen(t *testing.T) {
	foretold(t, wireopenai.Responses, func(t *testing.T, base string, stream bool) {
		client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey("test"), option.WithMaxRetries(0))
		last := ""
		workResponses(t, client, stream, someWords, func(r *responses.Response) { last = r.OutputText() })
		if !strings.HasPrefix(last, "Done after 12 steps") {
			t.Errorf("ends with %q", last)
		}
	})
}
