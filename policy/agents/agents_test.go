package agents

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
)

// The presets are tested in package policy too, with its scenarios.

// A summary cannot end the frame that is around it.
func TestFramesStayClosed(t *testing.T) {
	v := new(furl.View)
	if got := piSummary(v, nil, "a</summary>b"); strings.Count(got, "</summary>") != 1 {
		t.Errorf("pi shows %q", got)
	}
	if got := continued(v, nil, "a"+claudeEnd+"b"); strings.Count(got, claudeEnd) != 1 {
		t.Errorf("Claude Code shows %q", got)
	}
}

func TestAdd(t *testing.T) {
	set := policy.NewSet()
	own := &policy.Pipeline{Label: "codex"}
	set.AddPolicy(own)
	Add(set, &Pi{ReserveTokens: 1000})
	if p, err := set.Policy("codex", policy.Settings{}); err != nil || p.Name() != "codex" || p.(*policy.Pipeline).Acts != nil {
		t.Errorf("a program's own policy was replaced by %+v, %v", p, err)
	}
	p, err := set.Policy("pi", policy.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if acts, _ := policy.Sizes(p, &furl.Budget{Window: 10_000}); acts != 9001 {
		t.Errorf("pi acts at %d tokens, want 9001", acts)
	}
	for _, bad := range []policy.Preset{ClearToolUses{ClearAtLeast: -1}, Codex{Threshold: 1.5}, OpenHandsSummary{KeepFirst: new(-1)}} {
		if err := bad.Validate(); err == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}
