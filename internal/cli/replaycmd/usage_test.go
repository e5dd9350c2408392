package replaycmd

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/tally"
	"github.com/furlhq/furl/replay"
)

// runJSON runs a command and decodes what it prints. It reports false if the command failed.
func runJSON(t *testing.T, cmd *cobra.Command, to any, args ...string) bool {
	t.Helper()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(t.Context())
	if out.Len() == 0 {
		return false
	}
	if decode := json.Unmarshal(out.Bytes(), to); decode != nil {
		t.Fatalf("%v: %v: %.200s", args, decode, out.Bytes())
	}
	return err == nil
}

func abs(n int) int { return max(n, -n) }

// Of each file, furl usage has the sum that furl replay has as billed, and the causes have the same. Those of FURL_RECORDINGS are compared too; it may
// name several folders, as PATH does.
func TestUsageEqualsReplay(t *testing.T) {
	t.Setenv("FURL_DATA", t.TempDir())
	t.Setenv("FURL_CONFIG", "")
	t.Setenv("HOME", t.TempDir())
	folders := append([]string{"../../../transcript/testdata"}, filepath.SplitList(os.Getenv("FURL_RECORDINGS"))...)
	compared, priced := 0, 0
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".want") {
				return err
			}
			var rep replay.Report
			if !runJSON(t, ReplayCommand(cmdline.Program{}), &rep, path, "--json", "--policy", "none", "--no-index", "--quiet") {
				return nil // no recording
			}
			want, known := 0.0, false
			for i := range rep.Recordings {
				if b := rep.Recordings[i].Billed; b != nil {
					want, known = want+*b, true
				}
			}
			for range 2 { // the second one from the index, if the file is old enough
				var got tally.Report
				if !runJSON(t, UsageCommand(cmdline.Program{}), &got, path, "--json", "--quiet") {
					t.Errorf("%s: furl usage failed", path)
					return nil
				}
				if math.Abs(got.Total.Cost-want) > 1e-9 || got.Total.Priced() != known {
					t.Errorf("%s: furl usage has $%v, priced %v, and replay $%v, %v", path, got.Total.Cost, got.Total.Priced(), want, known)
				}
				sum := 0.0
				for _, g := range got.Groups {
					sum += g.Cost
				}
				if math.Abs(sum-got.Total.Cost) > 1e-9 {
					t.Errorf("%s: the groups are $%v, the total is $%v", path, sum, got.Total.Cost)
				}
			}
			var causes tally.CauseReport
			if !runJSON(t, UsageCommand(cmdline.Program{}), &causes, path, "--json", "--quiet", "--causes") {
				t.Errorf("%s: furl usage --causes failed", path)
				return nil
			}
			sum, prompts, output := 0.0, 0, 0
			for _, c := range causes.Groups {
				sum, prompts, output = sum+c.Cost, prompts+c.PromptTokens, output+c.OutputTokens
			}
			rounding := len(causes.Groups) + 1
			if total := &causes.Total; math.Abs(sum-want) > 1e-6 || math.Abs(total.Cost-want) > 1e-9 || abs(prompts-total.Tokens.Prompt()) > rounding || abs(output-total.Tokens.Output) > rounding {
				t.Errorf("%s: causes are $%v with %d tokens in and %d out, of a total of %+v; replay has $%v", path, sum, prompts, output, *total, want)
			}
			compared++
			if known {
				priced++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("compared %d files, %d with a price", compared, priced)
	if compared < 50 || priced < 20 {
		t.Errorf("compared only %d files, %d with a price", compared, priced)
	}
}
