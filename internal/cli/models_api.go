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

// modelsFile is the path of the file with what models APIs returned, "" if there is no data
// folder.
func modelsFile() string {
	dir, err := config.DataDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, modelsapi.FileName)
}

// told is session.Options.Told of a gateway.
func (s *settings) told(model string, format furl.Format) (session.Told, bool) {
	up := s.askedProviders.Load()
	return toldAbout(s.models, addressOf(up.Anthropic), addressOf(up.OpenAI), model, format)
}

// useProviders sets the providers that are asked about models.
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

// told is session.Options.Told of commands: what the providers of a configuration have said to
// gateways on this machine.
func told(c *config.Config) func(model string, format furl.Format) (session.Told, bool) {
	if !asksModels(c) {
		return nil
	}
	book := sync.OnceValue(func() *modelsapi.Book { return modelsapi.Open(modelsFile(), nil, nil) })
	return func(model string, format furl.Format) (session.Told, bool) {
		return toldAbout(book(), cmp.Or(c.Gateway.Anthropic, anthropicAddress), cmp.Or(c.Gateway.OpenAI, openaiAddress), model, format)
	}
}

// asksModels reports whether a gateway asks providers about models.
func asksModels(c *config.Config) bool { return c.Gateway.ModelsAPI == nil || *c.Gateway.ModelsAPI }

func toldAbout(book *modelsapi.Book, anthropic, openai, model string, format furl.Format) (session.Told, bool) {
	provider := openai
	if format == furl.FormatAnthropic {
		provider = anthropic
	}
	f, ok := book.Fact(provider, model)
	if !ok && format == "" { // a command that was only given a name
		f, ok = book.Fact(anthropic, model)
	}
	return session.Told{Window: f.Window, MaxOutput: f.MaxOutput, From: f.From, At: f.At}, ok
}
