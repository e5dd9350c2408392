package cli

import (
	"cmp"
	"path/filepath"
	"sync"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/modelsapi"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/upstream"
)

// modelsFile returns the path of the file with the sizes that models APIs report, "" if there
// is no data folder.
func modelsFile() string {
	dir, err := config.DataDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, modelsapi.FileName)
}

// reported is session.Options.Reported of a gateway.
func (s *settings) reported(model string, format furl.Format) (session.Reported, bool) {
	up := s.askedProviders.Load()
	return reportedBy(s.models, addressOf(up.Anthropic), addressOf(up.OpenAI), model, format)
}

// useProviders sets the providers whose reports are used.
func (s *settings) useProviders(l *live) {
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

// reported returns session.Options.Reported of commands: the sizes that the providers of a
// configuration have reported to gateways on this machine.
func reported(c *config.Config) func(model string, format furl.Format) (session.Reported, bool) {
	if !asksModels(c) {
		return nil
	}
	book := sync.OnceValue(func() *modelsapi.Book { return modelsapi.Open(modelsFile(), nil, nil) })
	return func(model string, format furl.Format) (session.Reported, bool) {
		return reportedBy(book(), cmp.Or(c.Gateway.Anthropic, anthropicAddress), cmp.Or(c.Gateway.OpenAI, openaiAddress), model, format)
	}
}

// asksModels reports whether a gateway asks providers about models.
func asksModels(c *config.Config) bool { return c.Gateway.ModelsAPI == nil || *c.Gateway.ModelsAPI }

// reportedBy returns what the provider of a format reports of a model.
func reportedBy(book *modelsapi.Book, anthropic, openai, model string, format furl.Format) (session.Reported, bool) {
	provider := openai
	if format == furl.FormatAnthropic {
		provider = anthropic
	}
	f, ok := book.Fact(provider, model)
	if !ok && format == "" { // a command that was only given a name
		f, ok = book.Fact(anthropic, model)
	}
	return session.Reported{Window: f.Window, MaxOutput: f.MaxOutput, From: f.From, At: f.At}, ok
}
