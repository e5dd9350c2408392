// Command furl keeps long-running LLM agents inside their context window. It replays
// recorded sessions, runs the gateway and manages recorded sessions.
package main

import (
	"os"

	"github.com/furlhq/furl/command"
)

func main() { os.Exit(command.Main(os.Args[1:], nil)) }
