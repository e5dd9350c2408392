package policy_test

import (
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/policy/agents"
)

func init() {
	policy.SetAgents(func(s *policy.Set) *policy.Set { return agents.Add(s) })
}
