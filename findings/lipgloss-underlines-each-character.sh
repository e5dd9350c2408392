#!/bin/sh
# charm.land/lipgloss/v2 2.0.6 (Go): an underlined or struck-out text has an escape sequence for each character.
#
# Bold text is one sequence, the text, and one reset. With Underline or Strikethrough, Render styles spaces apart from words, and
# does so by rendering one character at a time, also when the text has no space. A link of 80 characters is eight times as long on
# the wire as it needs to be, and a screen reader or a log that reads the stream sees single letters.
#
# Output seen on 2026-11-28:
#   bold:          2 sequences, 34 bytes for 27 characters
#   underline:     54 sequences
#   strikethrough: 54 sequences
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

	"charm.land/lipgloss/v2"
)

func main() {
	const text = "https://furl.example/docs/1"
	bold := lipgloss.NewStyle().Bold(true).Render(text)
	under := lipgloss.NewStyle().Underline(true).Render(text)
	struck := lipgloss.NewStyle().Strikethrough(true).Render(text)
	count := func(s string) int { return strings.Count(s, "\x1b[") }
	fmt.Printf("bold:          %d sequences, %d bytes for %d characters\n", count(bold), len(bold), len(text))
	fmt.Printf("underline:     %d sequences\n", count(under))
	fmt.Printf("strikethrough: %d sequences\n", count(struck))
	if count(bold) != 2 || count(under) != 2*len(text) || count(struck) != 2*len(text) {
		os.Exit(1)
	}
}
GO
cat >go.mod <<'MOD'
module finding

go 1.25

require charm.land/lipgloss/v2 v2.0.6
MOD
go mod tidy >/dev/null 2>&1
go run .
