#!/bin/sh
# charm.land/glamour/v2 2.0.1 (Go): the paragraphs of one list item are joined without a space or a line break.
#
# An item may have several paragraphs, indented as far as its text (CommonMark 0.31.2, 5.2). Models write such lists all the
# time. Glamour prints the last word of one paragraph and the first word of the next as one word, in its styles dark, light and
# notty, whatever the width. Paragraphs outside of lists are apart. So a terminal program that shows replies changes words.
#
# Output seen on 2026-11-28:
#   in a list:  "• Stop the server.Then delete the file."
#   outside:    "Stop the server." "Then delete the file."
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"strings"

	"charm.land/glamour/v2"
)

// lines returns the rendered lines that are not blank, without spaces around them.
func lines(markdown string) (list []string) {
	r, err := glamour.NewTermRenderer(glamour.WithStandardStyle("notty"), glamour.WithWordWrap(80))
	if err != nil {
		panic(err)
	}
	text, err := r.Render(markdown)
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

func main() {
	item, plain := lines("- Stop the server.\n\n  Then delete the file.\n"), lines("Stop the server.\n\nThen delete the file.\n")
	fmt.Printf("in a list:  %q\n", item)
	fmt.Printf("outside:    %q\n", plain)
	if len(item) != 1 || !strings.Contains(item[0], "server.Then") || len(plain) != 2 {
		os.Exit(1)
	}
}
GO
cat >go.mod <<'MOD'
module finding

go 1.25

require charm.land/glamour/v2 v2.0.1
MOD
go mod tidy >/dev/null 2>&1
go run .
