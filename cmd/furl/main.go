// Command furl shows, on recordings of agent sessions, what each way of keeping
// the context small would have sent, cost, broken and lost.
package main

import (
	"os"

	"github.com/furlhq/furl/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
