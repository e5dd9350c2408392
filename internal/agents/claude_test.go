package agents

import "testing"

// The base URL of a cloud is the user's own, or follows from its variables.
func TestClaudeClouds(t *testing.T) {
	for _, tt := range []struct {
		cloud int
		env   map[string]string
		want  string
	}{
		{0, map[string]string{"AWS_REGION": "eu-west-1"}, "https://bedrock-mantle.eu-west-1.api.aws/anthropic"},
		{0, map[string]string{"AWS_REGION": "eu-west-1", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL": "https://own.example"}, "https://own.example"},
		{0, nil, ""},
		{1, map[string]string{"AWS_REGION": "us-east-1"}, "https://aws-external-anthropic.us-east-1.api.aws"},
		{2, nil, "https://claude.googleapis.com"},
		{3, map[string]string{"ANTHROPIC_FOUNDRY_RESOURCE": "r"}, "https://r.services.ai.azure.com/anthropic"},
		{3, nil, ""},
		{3, map[string]string{"ANTHROPIC_FOUNDRY_RESOURCE": "evil.example/"}, ""},
		{0, map[string]string{"AWS_REGION": "evil.example#"}, ""},
	} {
		if got := ClaudeClouds[tt.cloud].Upstream(func(name string) string { return tt.env[name] }); got != tt.want {
			t.Errorf("%s with %v: %q, want %q", ClaudeClouds[tt.cloud].Title, tt.env, got, tt.want)
		}
	}
	env := map[string]any{"CLAUDE_CODE_USE_FOUNDRY": 1, "CLAUDE_CODE_USE_MANTLE": "0", "ANTHROPIC_FOUNDRY_RESOURCE": "r"}
	got := claudeClouds(map[string]any{"env": env})
	if len(got) != 2 || got[0].Path[1] != "ANTHROPIC_FOUNDRY_RESOURCE" || got[0].Value != `""` ||
		got[1].Path[1] != "ANTHROPIC_FOUNDRY_BASE_URL" || got[1].Value != `"{url}/anthropic"` || got[1].Now != "https://r.services.ai.azure.com/anthropic" || got[1].Also != nil {
		t.Errorf("the settings are %+v", got)
	}
}

// An address belongs to a cloud by its whole host name.
func TestClaudeCloudHas(t *testing.T) {
	for address, want := range map[string]int{
		"https://bedrock-mantle.us-east-1.api.aws/anthropic": 0, "https://aws-external-anthropic.us-east-1.api.aws": 1, "https://claude.eu.rep.googleapis.com": 2,
		"https://R.services.ai.azure.com:443/anthropic": 3, "https://api.anthropic.com": -1, "https://bedrock-mantle.us-east-1.api.aws.evil.example": -1,
		"https://evil.example/.services.ai.azure.com": -1, "https://r.services.ai.azure.com@evil.example": -1, "none": -1, "": -1,
	} {
		for i := range ClaudeClouds {
			if got := ClaudeClouds[i].Has(address); got != (i == want) {
				t.Errorf("%s has %s: %v", ClaudeClouds[i].Title, address, got)
			}
		}
	}
}
