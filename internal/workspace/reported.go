package workspace

import (
	"cmp"
	"path/filepath"
	"sync"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/modelsapi"
	"github.com/furlhq/furl/session"
)

// ModelsFile returns the path of the file with the sizes that models APIs report, "" if there
// is no data folder.
func ModelsFile() string {
	dir, err := config.DataDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, modelsapi.FileName)
}

// reported returns session.Options.Reported of commands: the sizes that the providers of a
// configuration have reported to gateways on this machine.
func reported(c *config.Config) func(model string, format furl.Format) (session.Reported, bool) {
	if !AsksModels(c) {
		return nil
	}
	book := sync.OnceValue(func() *modelsapi.Book { return modelsapi.Open(ModelsFile(), nil, nil) })
	return func(model string, format furl.Format) (session.Reported, bool) {
		return ReportedBy(book(), Addresses{
			Anthropic: cmp.Or(c.Gateway.Anthropic, AnthropicAddress), OpenAI: cmp.Or(c.Gateway.OpenAI, OpenaiAddress), Gemini: cmp.Or(c.Gateway.Gemini, GeminiAddress),
		}, model, format)
	}
}

// AsksModels reports whether a gateway asks providers about models.
func AsksModels(c *config.Config) bool { return c.Gateway.ModelsAPI == nil || *c.Gateway.ModelsAPI }

// ReportedBy returns what the provider of a format reports of a model.
func ReportedBy(book *modelsapi.Book, at Addresses, model string, format furl.Format) (session.Reported, bool) {
	provider := at.OpenAI
	switch format {
	case furl.FormatAnthropic:
		provider = at.Anthropic
	case furl.FormatGemini:
		provider = at.Gemini
	}
	f, ok := book.Fact(provider, model)
	if !ok && format == "" { // a command that was only given a name
		if f, ok = book.Fact(at.Anthropic, model); !ok {
			f, ok = book.Fact(at.Gemini, model)
		}
	}
	return session.Reported{Window: f.Window, MaxOutput: f.MaxOutput, From: f.From, At: f.At}, ok
}

// Addresses are those of the providers, by the API that they serve.
type Addresses struct{ Anthropic, OpenAI, Gemini string }

// Default addresses of the providers.
const (
	AnthropicAddress = "https://api.anthropic.com"
	OpenaiAddress    = "https://api.openai.com"
	GeminiAddress    = "https://generativelanguage.googleapis.com"
	ChatGPTAddress   = "https://chatgpt.com/backend-api/codex"
)
