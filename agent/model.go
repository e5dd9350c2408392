package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/upstream"
	"github.com/furlhq/furl/wire"
)

// Model is a model and how to reach it.
type Model struct {
	// Format is the wire format of the provider's API.
	Format furl.Format
	// ID is the model's name in requests.
	ID string
	// BaseURL is the address of the API, with or without its version. If empty, that
	// of Anthropic or OpenAI, by the format.
	BaseURL string
	// Key is the API key. It is sent to BaseURL, and neither stored nor logged.
	Key string
	// Header has more headers of each request.
	Header http.Header
	// Window is the context window in tokens. If zero, the session's for this model;
	// see session.Session.Model. The smaller one applies.
	Window int
	// MaxTokens limits the output of a reply. If zero, the provider's limit; for
	// Anthropic the model's by the catalog, at most 32,000.
	MaxTokens int
	// Thinking is off, low, medium, high or, for Anthropic, a number of tokens. If
	// empty, the provider's default.
	Thinking string
	// Options are more fields of each request, a JSON object. They replace furl's own
	// fields of the same name, except the list of messages.
	Options json.RawMessage
}

// baseURLs are the addresses of the providers.
var baseURLs = map[furl.Format]string{
	furl.FormatAnthropic: "https://api.anthropic.com",
	furl.FormatChat:      "https://api.openai.com",
	furl.FormatResponses: "https://api.openai.com",
}

// provider sends requests to a model.
type provider struct {
	Model
	api    wire.API
	client *upstream.Client
}

func newProvider(m Model, transport http.RoundTripper) (*provider, error) {
	p := &provider{Model: m, api: wire.For(m.Format)}
	if p.api == nil {
		return nil, fmt.Errorf("unknown wire format %q: expected %s, %s or %s", m.Format, furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses)
	}
	if m.ID == "" {
		return nil, errors.New("the model has no ID")
	}
	if p.BaseURL == "" {
		p.BaseURL = baseURLs[m.Format]
	}
	if _, err := p.api.NewRequest(p.params("", nil, 1)); err != nil {
		return nil, fmt.Errorf("model %s: %w", m.ID, err)
	}
	var err error
	if p.client, err = upstream.New(p.BaseURL, &upstream.Options{Transport: transport}); err != nil {
		return nil, fmt.Errorf("model %s: %w", m.ID, err)
	}
	return p, nil
}
