// Command furl shows, on recordings of agent sessions, what each way of keeping
// the context small would have sent, cost, broken and lost.
package main

import (
	"os"

	"github.com/furlhq/furl/command"
)

func main() { os.Exit(command.Main(os.Args[1:], nil)) }
