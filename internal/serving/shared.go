package serving

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/workspace"
)

// shared returns the settings that all gateways of a store should have, with the flags
// of this one. Some settings only change with a restart: s has their values in use.
func (f *Gateway) shared(s *Running, c *config.Config, file string, o *gateway.Options) (map[string]string, error) {
	if f.Running || f.Only {
		return nil, nil // it serves one person
	}
	now := *c.Started(s.Config)
	now.Policy = cmp.Or(f.Policy, now.Default())
	now.Gateway.Anthropic = cmp.Or(f.Anthropic, now.Gateway.Anthropic, workspace.AnthropicAddress)
	now.Gateway.OpenAI, now.Gateway.Gemini, now.Gateway.ChatGPT = f.openAIOf(&now), f.geminiOf(&now), f.chatGPTOf(&now)
	now.Gateway.DryRun, now.Gateway.Recall = o.DryRun, o.Recall
	page := o.Page != nil
	now.Gateway.Page = &page
	all := now.Shared()
	all["--window"] = f.Window
	all["tenants.key"] = string(bytes.TrimSpace(s.Tenants))
	all["encryption"] = strings.Join(keysIn(s.master, "\n"), "\n") // the first one wraps
	all["gateway.client_keys"] = lines(o.ClientKeys)
	all["gateway.operator_key"] = lines(o.OperatorKeys)
	all["gateway.keys_file"] = ""
	if o.Keys != nil {
		all["gateway.keys_file"] = string(access.FormatKeys(o.Keys.All()))
	}
	all["summaries.key_env"] = now.Summaries.Key()
	if name := now.Embeddings.KeyEnv; name != "" {
		all["embeddings.key_env"] = os.Getenv(name)
	}
	if t := &now.Gateway.TLS; t.ClientCAFile != "" {
		all["gateway.tls.client_cert"], all["gateway.tls.client_identity"] = t.ClientCert, t.ClientIdentity
	}
	for name, path := range map[string]string{"catalog": c.Catalog, "gateway.tls.client_ca_file": now.Gateway.TLS.ClientCAFile, "gateway.tls.client_crl_file": now.Gateway.TLS.ClientCRLFile} {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(config.Beside(file, path))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = string(text)
	}
	return all, nil
}

// lines are keys in an order that does not depend on their file.
func lines(keys []string) string {
	return strings.Join(slices.Sorted(slices.Values(keys)), "\n")
}
