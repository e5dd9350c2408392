package cmdline

import (
	"github.com/furlhq/furl/internal/visible"
)

// Printable makes text safe for a terminal. Newlines and tabs stay.
func Printable(s string) string { return visible.Text(s) }

// Label is printable on one line.
func Label(s string) string { return visible.Line(s) }
