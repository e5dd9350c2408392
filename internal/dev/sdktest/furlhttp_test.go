package sdktest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// The providers' own clients over furlhttp, against a provider that refuses
// whatever breaks its rules: nothing is refused, old results are hidden, one
// session holds the whole conversation, and each reply is recorded once.

// kept is a provider with an http.Client that keeps sessions.
type kept struct {
	*settled
	url    string
	client *http.Client
	all    *session.Sessions
}

func keep(t *testing.T) *kept {
	t.Helper()
	s := &settled{Sim: sim.New(&sim.Options{Player: player()})}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	all, err := session.New(inmem.New(), &session.Options{Policy: "rolling-mask-5"})
	if err != nil {
		t.Fatal(err)
	}
	return &kept{s, srv.URL, &http.Client{Transport: furlhttp.New(all, nil)}, all}
}

var longResult = strings.Repeat("some words in a file\n", 60)

// check looks at what is left of a conversation.
func (k *kept) check(t *testing.T) {
	t.Helper()
	if b := k.Bill(); b.Refused != 0 || b.Requests < 13 {
		for _, r := range k.Requests() {
			if r.Verdict != sim.VerdictOK {
				t.Log(r.Error)
			}
		}
		t.Errorf("%d of %d requests were refused", b.Refused, b.Requests)
	}
	s, err := k.all.Find(t.Context(), session.Latest)
	if err != nil {
		t.Fatal(err)
	}
	sessions := 0
	for _, err := range k.all.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		sessions++
	}
	exchanges, heads := 0, 0
	for _, r := range s.Records(0) {
		switch r.Body.(type) {
		case *furl.Exchange:
			exchanges++
		case *furl.Head:
			heads++
		}
	}
	if sessions != 1 || exchanges != 13 || heads != 0 {
		t.Errorf("%d sessions with %d exchanges and %d divergences, want 1 with 13 and none", sessions, exchanges, heads)
	}
	if len(s.Reductions()) == 0 {
		t.Error("nothing was hidden")
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the check found %v, %v", problems, err)
	}
}

func TestFurlhttpAnthropic(t *testing.T) {
	inBothWays(t, func(t *testing.T, stream bool) {
		k := keep(t)
		client := anthropic.NewClient(anthropicoption.WithBaseURL(k.url), anthropicoption.WithAPIKey("test"), anthropicoption.WithMaxRetries(0),
			anthropicoption.WithHTTPClient(k.client))
		workMessages(t, client, messagesTask(), stream, longResult, nil)
		k.check(t)
	})
}

// openai gives the client of both of its APIs.
func (k *kept) openai() openai.Client {
	return openai.NewClient(option.WithBaseURL(k.url+"/v1"), option.WithAPIKey("test"), option.WithMaxRetries(0), option.WithHTTPClient(k.client))
}

func TestFurlhttpChat(t *testing.T) {
	inBothWays(t, func(t *testing.T, stream bool) {
		k := keep(t)
		workChat(t, k.openai(), stream, longResult, nil)
		k.check(t)
	})
}

func TestFurlhttpResponses(t *testing.T) {
	inBothWays(t, func(t *testing.T, stream bool) {
		k := keep(t)
		workResponses(t, k.openai(), stream, longResult, nil)
		k.check(t)
	})
}
