package clienttest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl/internal/cli"
)

// asFurl makes the test's own binary the furl command.
const asFurl = "FURL_CLIENTTEST_AS_FURL"

func TestMain(m *testing.M) {
	if os.Getenv(asFurl) != "" || filepath.Base(os.Args[0]) == "furl" { // a link to the binary
		os.Exit(cli.Main(os.Args[1:], nil, os.Stdin, os.Stdout, os.Stderr))
	}
	if race {
		// What the detector sees in furl it sees in the tests of its packages;
		// here it makes minutes of what is mostly waiting for clients.
		fmt.Println("the clients are run without the race detector: make test-clients")
		return
	}
	os.Exit(m.Run())
}
