// Package look is what furl's pages have in common: colors, type, header, tables, controls
// and tooltips. The page of furl serve, the report of furl replay and exported sessions
// use it, each with a style sheet of its own after it.
package look

import _ "embed"

// Style is the style sheet. It loads nothing.
//
//go:embed look.css
var Style string
