package agents

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/furlhq/furl/internal/lazyregexp"
)

// ClaudeCloud is a cloud over which Claude Code sends requests in the format of
// Anthropic's own API.
type ClaudeCloud struct {
	Title string
	// Use is the variable that chooses it, Base the one with its base URL.
	Use, Base string
	// Path is the end of its base URL at the gateway.
	Path string
	// Address is its usual base URL with the variables that it depends on.
	Address string
	// Instead is a variable that Claude Code does not accept together with Base, "" if
	// there is none.
	Instead string
	// hosts matches the names of its hosts.
	hosts *lazyregexp.Regexp
}

// ClaudeClouds lists the clouds.
var ClaudeClouds = []ClaudeCloud{
	{
		Title: "Amazon Bedrock (Mantle)", Use: "CLAUDE_CODE_USE_MANTLE", Base: "ANTHROPIC_BEDROCK_MANTLE_BASE_URL",
		Address: "https://bedrock-mantle.$AWS_REGION.api.aws/anthropic", hosts: lazyregexp.New(`^bedrock-mantle\.[a-z0-9-]+\.api\.aws$`),
	},
	{
		Title: "Claude Platform on AWS", Use: "CLAUDE_CODE_USE_ANTHROPIC_AWS", Base: "ANTHROPIC_AWS_BASE_URL",
		Address: "https://aws-external-anthropic.$AWS_REGION.api.aws", hosts: lazyregexp.New(`^aws-external-anthropic\.[a-z0-9-]+\.api\.aws$`),
	},
	{
		Title: "Claude Platform on Google Cloud", Use: "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", Base: "ANTHROPIC_GOOGLE_CLOUD_BASE_URL",
		Address: "https://claude.googleapis.com", hosts: lazyregexp.New(`^claude(\.[a-z0-9-]+\.rep)?\.googleapis\.com$`),
	},
	{
		Title: "Microsoft Foundry", Use: "CLAUDE_CODE_USE_FOUNDRY", Base: "ANTHROPIC_FOUNDRY_BASE_URL", Path: "/anthropic", Instead: "ANTHROPIC_FOUNDRY_RESOURCE",
		Address: "https://$ANTHROPIC_FOUNDRY_RESOURCE.services.ai.azure.com/anthropic", hosts: lazyregexp.New(`^[a-z0-9-]+\.(services\.ai|cognitiveservices|openai)\.azure\.(com|us|cn)$`),
	},
}

// Upstream returns the base URL to which the gateway forwards requests for the cloud, ""
// if a variable that it depends on is missing or cannot be a part of a host name.
func (c *ClaudeCloud) Upstream(getenv func(string) string) string {
	if own := getenv(c.Base); own != "" {
		return own
	}
	complete := true
	address := os.Expand(c.Address, func(name string) string {
		value := getenv(name)
		complete = complete && label.MatchString(value)
		return value
	})
	if !complete {
		return ""
	}
	return address
}

// label matches a part of a host name.
var label = lazyregexp.New(`^[A-Za-z0-9-]+$`)

// Variables returns the variables that its address depends on.
func (c *ClaudeCloud) Variables() (names []string) {
	os.Expand(c.Address, func(name string) string {
		names = append(names, name)
		return ""
	})
	return names
}

// Has reports whether an address is one of the cloud's own.
func (c *ClaudeCloud) Has(address string) bool {
	u, err := url.Parse(address)
	return err == nil && c.hosts.MatchString(strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")))
}

// On reports whether a variable of Claude Code is on.
func On(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "0", "false", "no", "off":
		return false
	}
	return true
}

// claudeClouds sets the base URL of the clouds that the settings of Claude Code choose.
func claudeClouds(doc any) (settings []Setting) {
	root, _ := doc.(map[string]any)
	env, _ := root["env"].(map[string]any)
	for _, c := range ClaudeClouds {
		if value, ok := env[c.Use]; !ok || !On(fmt.Sprint(value)) {
			continue
		}
		getenv := func(name string) string { value, _ := env[name].(string); return value }
		s := set(PartURL, `"{url}`+c.Path+`"`, "env", c.Base)
		if s.Now = c.Upstream(getenv); s.Now == "" {
			s.Now, s.Also = c.Address, c.Has
		}
		if c.Instead != "" && getenv(c.Instead) != "" {
			settings = append(settings, set(PartURL, `""`, "env", c.Instead))
		}
		settings = append(settings, s)
	}
	return settings
}
