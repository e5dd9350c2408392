package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/policy"
)

// forget masks old results of one tool, as an example of a custom stage.
type forget struct {
	Tool string `json:"tool"`
}

func (forget) Name() string { return "forget" }

func (f forget) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	mask := policy.Mask{Label: "forget", Keep: func(r *policy.Result) bool { return r.Tool() != f.Tool }}
	return mask.Reduce(ctx, v, b)
}

// A configuration can use a custom stage in a policy, and flags can name that policy.
func TestStageOfYourOwn(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FURL_DATA", dir)
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	var messages []map[string]any
	messages = append(messages, map[string]any{"role": "user", "content": "look around"})
	for i := range 8 {
		id, tool := fmt.Sprint("call_", i), []string{"Bash", "Read"}[i%2]
		messages = append(messages,
			map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]any{"name": tool, "arguments": "{}"}}}},
			map[string]any{"role": "tool", "tool_call_id": id, "content": strings.Repeat(fmt.Sprint("line ", i, "\n"), 100)})
	}
	messages = append(messages, map[string]any{"role": "assistant", "content": "done"})
	data, err := json.Marshal(map[string]any{"model": "gpt-5", "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	session := write("session.json", string(data))
	file := write("furl.yaml", "policies:\n  forgetful:\n    stages: [forget: {tool: Bash}]\n")

	policies := policy.NewSet()
	policies.AddStage(forget{})
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"replay", session, "--config", file, "--policy", "forgetful", "--json", "-q"}, cmdline.ExitOK, `"policy":"forgetful"`},
		{[]string{"replay", session, "--config", file, "-q"}, cmdline.ExitOK, "forgetful"}, // among all policies
		{[]string{"reduce", session, "--dry-run", "--config", file, "--policy", "forgetful"}, cmdline.ExitOK, "forget"},
		{[]string{"show", session, "--view", "--config", file, "--policy", "forgetful"}, cmdline.ExitOK, "observation masked"},
		{[]string{"config", "check", "--config", file}, cmdline.ExitOK, "valid"},
		{[]string{"replay", session, "--config", file, "--policy", "forgotten", "-q"}, cmdline.ExitUsage, `unknown policy "forgotten": choose one of none, `},
	} {
		var out, errs bytes.Buffer
		if code := Main(tt.args, policies, strings.NewReader(""), &out, &errs); code != tt.code || !strings.Contains(out.String()+errs.String(), tt.want) {
			t.Errorf("furl %s: exit code %d, want %d and %q:\n%s%s", strings.Join(tt.args, " "), code, tt.code, tt.want, &out, &errs)
		}
	}
	var out, errs bytes.Buffer
	if code := Main([]string{"config", "check", "--config", file}, nil, strings.NewReader(""), &out, &errs); code != cmdline.ExitFailed || !strings.Contains(errs.String(), `furl.yaml: unknown stage "forget" (line 3): choose one of mask, `) {
		t.Errorf("without the stage: exit code %d, %s", code, &errs)
	}
}
