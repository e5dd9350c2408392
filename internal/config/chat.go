package config

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/strictyaml"
)

// Chat has the models of furl's own agent.
type Chat struct {
	// Model is the model to start with, by its Name. If empty, the first one.
	Model  string      `yaml:"model"`
	Models []ChatModel `yaml:"models"`
}

// ChatModel is a model and how to reach it.
type ChatModel struct {
	// ID is its name in requests. Name is what people choose it by; if empty, ID.
	ID   string `yaml:"id"`
	Name string `yaml:"name"`
	// Format is the wire format: anthropic, openai-chat or openai-responses. If
	// empty, anthropic for names with claude, else openai-chat.
	Format string `yaml:"format"`
	// URL is the base address of the API. If empty, that of Anthropic or OpenAI.
	URL string `yaml:"url"`
	// KeyEnv names the environment variable with the key. If empty,
	// ANTHROPIC_API_KEY or OPENAI_API_KEY, by the format.
	KeyEnv string `yaml:"key_env"`
	// Window is the context window, and MaxTokens the limit of a reply, in tokens.
	// If zero, the model's.
	Window    int `yaml:"context_limit"`
	MaxTokens int `yaml:"max_tokens"`
	// Thinking is off, low, medium, high or, for anthropic, a number of tokens. If
	// empty, the provider's default.
	Thinking string `yaml:"thinking"`
	// Options are more fields of each request, as a JSON object.
	Options string `yaml:"options"`
}

// Key returns the API key, "" if its variable is not set.
func (m *ChatModel) Key() string { return os.Getenv(m.KeyEnv) }

// Find returns a model by its Name, with the defaults filled in. The name "" is that of
// the model to start with.
func (c *Chat) Find(name string) (ChatModel, bool) {
	if name == "" {
		name = c.Model
	}
	for _, m := range c.Models {
		if name == "" || m.Name == name {
			return m, true
		}
	}
	return ChatModel{}, false
}

var thinkingValue = lazyregexp.New(`^(off|low|medium|high|[0-9]{1,7})$`)

// readChat reads the models of furl's own agent.
func (c *Config) readChat(v strictyaml.Value) {
	var start *strictyaml.Value
	object(map[string]reader{"model": later(&start), "models": c.readChatModels})(v)
	if start == nil {
		return
	}
	c.Chat.Model, _ = start.Text("the name of a model")
	if _, ok := c.Chat.Find(c.Chat.Model); !ok {
		start.Report(fmt.Sprintf("unknown model %q", c.Chat.Model), "expected the name of one of chat.models")
	}
}

func (c *Config) readChatModels(v strictyaml.Value) {
	for item := range v.List(`a list of models, each starting with "- id: MODEL"`) {
		var m ChatModel
		object(map[string]reader{
			"id":            text(&m.ID),
			"name":          text(&m.Name),
			"format":        oneOf(&m.Format, "anthropic", "openai-chat", "openai-responses"),
			"url":           address(&m.URL),
			"key_env":       keyVariable(&m.KeyEnv),
			"context_limit": tokens(&m.Window),
			"max_tokens":    tokens(&m.MaxTokens),
			"thinking":      thinking(&m.Thinking),
			"options":       fields(&m.Options),
		})(item)
		item.Require("id", "expected the name of the model in requests")
		if m.Name == "" {
			m.Name = m.ID
		}
		if _, known := c.Chat.Find(m.Name); known && m.Name != "" {
			item.Report(fmt.Sprintf("two models %q", m.Name), "give one of them another name")
		}
		c.Chat.Models = append(c.Chat.Models, m.withDefaults())
	}
}

func (m ChatModel) withDefaults() ChatModel {
	if m.Format == "" {
		m.Format = "openai-chat"
		if strings.Contains(strings.ToLower(m.ID), "claude") {
			m.Format = "anthropic"
		}
	}
	if m.KeyEnv == "" {
		m.KeyEnv = "OPENAI_API_KEY"
		if m.Format == "anthropic" {
			m.KeyEnv = "ANTHROPIC_API_KEY"
		}
	}
	return m
}

func thinking(to *string) reader {
	return func(v strictyaml.Value) {
		const expected = "off, low, medium, high or a number of tokens"
		s, ok := v.Text(expected)
		if ok && !thinkingValue.MatchString(s) {
			v.Expected(expected)
		}
		*to = s
	}
}

// fields reads an object as JSON.
func fields(to *string) reader {
	return func(v strictyaml.Value) {
		var value any
		if !v.Decode(&value) {
			return
		}
		if _, ok := value.(map[string]any); !ok {
			v.Expected("fields of a request, such as {temperature: 0.2}")
			return
		}
		data, err := json.Marshal(value)
		if err != nil { // such as NaN, which JSON does not have
			v.Expected("fields that JSON can have")
			return
		}
		*to = string(data)
	}
}
