package agents

import (
	"fmt"
	"os"
	"strings"
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
}

// ClaudeClouds lists the clouds.
var ClaudeClouds = []ClaudeCloud{
	{"Amazon Bedrock (Mantle)", "CLAUDE_CODE_USE_MANTLE", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "", "https://bedrock-mantle.$AWS_REGION.api.aws/anthropic"},
	{"Claude Platform on AWS", "CLAUDE_CODE_USE_ANTHROPIC_AWS", "ANTHROPIC_AWS_BASE_URL", "", "https://aws-external-anthropic.$AWS_REGION.api.aws"},
	{"Claude Platform on Google Cloud", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "ANTHROPIC_GOOGLE_CLOUD_BASE_URL", "", "https://claude.googleapis.com"},
	{"Microsoft Foundry", "CLAUDE_CODE_USE_FOUNDRY", "ANTHROPIC_FOUNDRY_BASE_URL", "/anthropic", "https://$ANTHROPIC_FOUNDRY_RESOURCE.services.ai.azure.com/anthropic"},
}

// Upstream returns the base URL to which the gateway forwards requests for the cloud, ""
// if a variable that it depends on is missing.
func (c *ClaudeCloud) Upstream(getenv func(string) string) string {
	if own := getenv(c.Base); own != "" {
		return own
	}
	complete := true
	address := os.Expand(c.Address, func(name string) string {
		value := getenv(name)
		complete = complete && value != ""
		return value
	})
	if !complete {
		return ""
	}
	return address
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
		own := c.Address
		if base := c.Upstream(func(name string) string { value, _ := env[name].(string); return value }); base != "" {
			own = base
		}
		s := set(PartURL, `"{url}`+c.Path+`"`, "env", c.Base)
		s.Note = "start the gateway with the address of " + c.Title + ", such as furl serve --anthropic " + own
		settings = append(settings, s)
	}
	return settings
}
