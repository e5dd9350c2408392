package cli_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/furlhq/furl/internal/cli"
)

// The scripts run the command as people do: its own process, its exit code,
// what it prints. Recordings in them are made up.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir+"/home")
			e.Setenv("XDG_DATA_HOME", "")
			e.Setenv("XDG_CONFIG_HOME", "")
			e.Setenv("FURL_CONFIG", "")
			e.Setenv("NO_COLOR", "1")
			return os.Mkdir(e.WorkDir+"/home", 0o755)
		},
	})
}

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ask-sim": askSim,
		"furl":    func() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"loop":    func() { os.Exit(runAgent()) },
	})
}
