package serving

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/workspace"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// reported is session.Options.Reported of a gateway.
func (s *Running) reported(model string, format furl.Format) (session.Reported, bool) {
	up := s.askedProviders.Load()
	return workspace.ReportedBy(s.models, workspace.Addresses{Anthropic: addressOf(up.Anthropic), OpenAI: addressOf(up.OpenAI), Gemini: addressOf(up.Gemini)}, model, format)
}

// useProviders sets the providers whose reports are used.
func (s *Running) useProviders(l *live) {
	up := &gateway.Upstreams{}
	if l.options.Models != nil {
		*up = l.up
	}
	s.askedProviders.Store(up)
}

func addressOf(up *upstream.Client) string {
	if up == nil {
		return ""
	}
	return up.Address()
}
