// Package unidiff writes the change of a file as a unified diff.
package unidiff

import (
	"bytes"

	"github.com/rogpeppe/go-internal/diff"
)

// none is the name of a file that does not exist.
const none = "/dev/null"

// Diff returns the change of a file in the unified format, "" if there is none. A
// content that is nil is that of a file that does not exist.
func Diff(name string, before, after []byte) string {
	from, to := name, name
	if before == nil {
		from = none
	}
	if after == nil {
		to = none
	}
	return Between(from, before, to, after)
}

// Between returns the difference of two texts with names of their own in the unified
// format, "" if there is none.
func Between(from string, before []byte, to string, after []byte) string {
	text := diff.Diff(from, before, to, after)
	_, text, _ = bytes.Cut(text, []byte("\n")) // "diff a b"
	return string(text)
}
