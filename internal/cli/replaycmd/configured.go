package replaycmd

import (
	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
)

// configured is a policy with the name configuredName.
type configured struct{ furl.Policy }

// configuredName is the name of the configuration's policy in tables.
const configuredName = "configured"

// Name is configuredName.
func (configured) Name() string { return configuredName }

// configuredCandidate is the policy that the configuration chooses for each model.
func configuredCandidate(c *config.Config) replay.Candidate {
	return replay.Candidate{Name: configuredName, New: func(s policy.Summarizer) (furl.Policy, error) {
		settings := c.Settings()
		settings.Summarizer = s
		p, err := c.SetByModel().Policy(c.Default(), settings)
		return configured{p}, err
	}}
}
