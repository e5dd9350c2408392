package models

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/agent"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/usage"
)

// The models of furl chat without a configuration, by the key that exists.
var defaultChatModels = []config.ChatModel{
	{ID: "claude-sonnet-4-5", Name: "claude-sonnet-4-5", Format: string(furl.FormatAnthropic), KeyEnv: "ANTHROPIC_API_KEY"},
	{ID: "gpt-5.1", Name: "gpt-5.1", Format: string(furl.FormatResponses), KeyEnv: "OPENAI_API_KEY"},
}

// KeyedNames lists the models that --model and /model accept, apart from IDs.
func KeyedNames(c *config.Config) (names []string) {
	for _, m := range c.Chat.Models {
		names = append(names, m.Name)
	}
	if len(names) > 0 {
		return names
	}
	for _, m := range defaultChatModels {
		if m.Key() != "" {
			names = append(names, m.Name)
		}
	}
	return names
}

// Keyed returns the model with a name or, if it is in none of the lists, with an ID.
// The name "" is that of the model to start with; found is false if there is none.
func Keyed(c *config.Config, name string) (m config.ChatModel, found bool, err error) {
	if m, ok := c.Chat.Find(name); ok {
		if m.URL == "" { // a server at another address may need no key
			return m, true, requireKey(m)
		}
		return m, true, nil
	}
	for _, m := range defaultChatModels {
		if name == m.Name || name == "" && len(c.Chat.Models) == 0 && m.Key() != "" {
			return m, true, requireKey(m)
		}
	}
	if name == "" {
		return m, false, nil
	}
	known, ok := catalog.Default().Lookup(name)
	if !ok {
		return m, false, usage.Errorf("unknown model %q: expected a name in chat.models or a model of the catalogue", name)
	}
	m = config.ChatModel{ID: name, Name: name, Format: string(furl.FormatChat), KeyEnv: "OPENAI_API_KEY"}
	if known.Format == furl.FormatAnthropic {
		m.Format, m.KeyEnv = string(furl.FormatAnthropic), "ANTHROPIC_API_KEY"
	}
	return m, true, requireKey(m)
}

func requireKey(m config.ChatModel) error {
	if m.Key() == "" {
		return fmt.Errorf("model %s: no key in $%s; set it, or use --sim for a simulated model", m.Name, m.KeyEnv)
	}
	return nil
}

// AgentModel returns a model for the agent. Without an address in the configuration it is
// that of the variable that other agents read too, which furl run and furl sim set.
func AgentModel(m config.ChatModel) agent.Model {
	base := "OPENAI_BASE_URL"
	if furl.Format(m.Format) == furl.FormatAnthropic {
		base = "ANTHROPIC_BASE_URL"
	}
	a := agent.Model{
		Format: furl.Format(m.Format), ID: m.ID, BaseURL: cmp.Or(m.URL, os.Getenv(base)), Key: m.Key(),
		Window: m.Window, MaxTokens: m.MaxTokens, Thinking: m.Thinking,
	}
	if m.Options != "" {
		a.Options = json.RawMessage(m.Options)
	}
	return a
}
