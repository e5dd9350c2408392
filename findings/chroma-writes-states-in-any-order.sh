#!/bin/sh
# github.com/alecthomas/chroma/v2 2.27.0 (Go): Marshal writes the states of a lexer in another order each time.
#
# Marshal turns a lexer into the XML that chroma's own lexers are embedded as. It ranges over a map of states, so two calls for
# the same lexer in one process give different files. A build that generates such files is not reproducible, and a diff of two
# versions shows moves only. Sorting the state elements by name makes the outputs equal.
#
# Output seen on 2026-11-28 (the first number varies, and is at least 2):
#   20 calls: 7 different outputs; 1 after sorting the lines
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

func main() {
	lexer := lexers.Get("Bash").(*chroma.RegexLexer)
	outputs, sorted := make(map[string]bool), make(map[string]bool)
	for range 20 {
		out, err := chroma.Marshal(lexer)
		if err != nil {
			panic(err)
		}
		outputs[string(out)] = true
		lines := strings.Split(string(out), "\n")
		slices.Sort(lines)
		sorted[strings.Join(lines, "\n")] = true
	}
	fmt.Printf("20 calls: %d different outputs; %d after sorting the lines\n", len(outputs), len(sorted))
	if len(outputs) < 2 || len(sorted) != 1 {
		os.Exit(1)
	}
}
GO
cat >go.mod <<'MOD'
module finding

go 1.25

require github.com/alecthomas/chroma/v2 v2.27.0
MOD
go mod tidy >/dev/null 2>&1
go run .
