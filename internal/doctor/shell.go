package doctor

import (
	"net/url"
	"strings"

	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/visible"
)

// baseVariables are the environment variables in which agents and SDKs expect the
// base URL of a provider, common ones first.
var baseVariables = []string{
	"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL",
	"ANTHROPIC_API_BASE", "OPENAI_API_BASE", "ANTHROPIC_API_ENDPOINT", "OPENAI_API_ENDPOINT",
}

// environment checks whether programs started from this shell use the gateway.
func (d *gatewayDoctor) environment() {
	set := 0
	for _, name := range baseVariables {
		value := d.getenv(name)
		if value == "" {
			continue
		}
		set++
		u, err := url.Parse(value)
		switch {
		case err != nil || u.Host == "":
			d.found("environment", findingProblem, "export "+name+"="+d.url.String(), "%s is not a URL", name)
		case !launch.SameHost(u, d.url):
			d.found("environment", findingWarning, "export "+name+"="+d.url.String(), "%s points to %s, not to this gateway", name, visible.Text(u.Host))
		case u.Scheme != d.url.Scheme:
			d.found("environment", findingProblem, "export "+name+"="+d.url.String(), "%s has scheme %s, but the gateway serves %s", name, visible.Text(u.Scheme), d.url.Scheme)
		default:
			d.found("environment", findingFine, "", "%s points to this gateway", name)
		}
	}
	if set == 0 {
		d.found("environment", findingWarning, `run eval "$(furl serve --print-env claude)", or start agents with furl run -- AGENT`, "no base URL is set in this shell: agents started from it bypass the gateway")
	}
	d.proxies()
}

// proxies warns if clients would connect to the gateway through a proxy.
func (d *gatewayDoctor) proxies() {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if d.getenv(name) == "" || unproxied(d.url.Hostname(), d.getenv("NO_PROXY")+","+d.getenv("no_proxy")) {
			continue
		}
		d.found("environment", findingWarning, "export NO_PROXY="+d.url.Hostname()+" no_proxy="+d.url.Hostname(),
			"%s is set and NO_PROXY does not include %s: some clients connect to the gateway through that proxy, which may fail or buffer streams", name, d.url.Hostname())
		return
	}
}

func unproxied(host, list string) bool {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "*" || item != "" && (strings.EqualFold(item, host) || strings.HasSuffix("."+strings.ToLower(host), "."+strings.ToLower(strings.TrimPrefix(item, ".")))) {
			return true
		}
	}
	return false
}
