package serving

import (
	"cmp"
	"net/url"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/workspace"
)

// Forwarding says where the gateway that the flags start forwards requests.
func (f *Gateway) Forwarding(c *config.Config) launch.Forwarding {
	own, _ := url.Parse(launch.GatewayAt(cmp.Or(c.Gateway.Listen, config.DefaultListen), c)) // otherwise nil
	return launch.Forwarding{
		Anthropic: cmp.Or(f.Anthropic, c.Gateway.Anthropic, workspace.AnthropicAddress), Openai: f.openAIOf(c),
		Given: f.Anthropic != "", GivenOpenAI: f.Openai != "", Own: own, FreePort: f.Listen == launch.FreePort,
	}
}
