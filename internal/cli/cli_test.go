package cli_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/furlhq/furl/internal/cli"
	"github.com/furlhq/furl/internal/dev/pgtest"
	"github.com/furlhq/furl/postgres"
)

// The scripts run the command in a separate process and check its exit code and output.
// Recordings in them are synthetic.
func TestScripts(t *testing.T) {
	runScripts(t, "testdata/script", "")
}

// The commands with a store in PostgreSQL.
func TestScriptsPostgres(t *testing.T) {
	runScripts(t, "testdata/postgres", pgtest.URL(t))
}

// Commands with a store on a Citus cluster, and moving sessions between it and other
// stores.
func TestScriptsCitus(t *testing.T) {
	runScripts(t, "testdata/citus", onCluster(t), "PLAIN="+pgtest.URL(t))
}

// onCluster returns the address of an empty store on a cluster. It has few shards, which
// makes commands faster.
func onCluster(t *testing.T) string {
	t.Helper()
	url := pgtest.Citus(t).URL(pgtest.Coordinator)
	s, err := postgres.Open(t.Context(), url, &postgres.Options{Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return url
}

// runScripts runs the scripts of a folder in an empty environment, with a store if one is
// named. In a script the condition [race] holds under the race detector.
func runScripts(t *testing.T, dir, store string, env ...string) {
	testscript.Run(t, testscript.Params{
		Dir:           dir,
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Condition: func(name string) (bool, error) {
			if name != "race" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return raceDetector, nil
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir+"/home")
			e.Setenv("XDG_DATA_HOME", "")
			e.Setenv("XDG_CONFIG_HOME", "")
			e.Setenv("FURL_CONFIG", "")
			e.Setenv("FURL_STORE", store)
			e.Setenv("NO_COLOR", "1")
			e.Vars = append(e.Vars, env...)
			// With the race detector each command sleeps for a second before it exits.
			e.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
			return os.Mkdir(e.WorkDir+"/home", 0o755)
		},
	})
}

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"ask-sim":     askSim,
		"browse":      browse,
		"claude-code": func() { os.Exit(runClaudeCode()) },
		"claude":      func() { os.Exit(runClaude()) },
		"codex":       func() { fmt.Println("codex:", strings.Join(os.Args[1:], " ")); os.Exit(runAgent()) },
		"pi":          func() {},
		"furl":        func() { os.Exit(cli.Main(os.Args[1:], nil, os.Stdin, os.Stdout, os.Stderr)) },
		"loop":        func() { os.Exit(runAgent()) },
	})
}
