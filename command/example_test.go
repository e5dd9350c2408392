package command_test

import (
	"context"
	"fmt"
	"os"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/command"
	"github.com/furlhq/furl/policy"
)

// Forget is a stage that masks old results of one tool. Its fields are options in the
// configuration file.
type Forget struct {
	Tool string `json:"tool"`
	Keep int    `json:"keep"` // number of the newest steps that are not masked
}

func (Forget) Name() string { return "forget" }

func (f Forget) Reduce(ctx context.Context, v *furl.View, b furl.Budget) (*furl.Reduction, error) {
	mask := policy.Mask{
		Label:     "forget",
		KeepSteps: f.Keep,
		Keep:      func(r *policy.Result) bool { return r.Tool() != f.Tool },
	}
	return mask.Reduce(ctx, v, b)
}

const configuration = `
policy: forgetful
policies:
  forgetful:
    stages:
      - forget: {tool: Bash}
      - clip
`

// Run furl with a custom stage. A main function passes os.Args[1:] and calls os.Exit
// with the result. This example runs "furl config check"; the stage works in replay,
// serve and run too.
func Example() {
	policies := policy.NewSet()
	policies.AddStage(Forget{Keep: 2})

	file, err := writeConfiguration("furl.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(file)
	code := command.Main([]string{"config", "check", "--config", file}, policies)
	fmt.Println("exit code", code)
	// Output:
	// furl.yaml: valid
	// exit code 0
}

func writeConfiguration(file string) (string, error) {
	return file, os.WriteFile(file, []byte(configuration), 0o600)
}
