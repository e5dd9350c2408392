package protocol

import (
	"fmt"
	"strings"

	"github.com/furlhq/furl"
)

// MediaNames describes media whose bytes are unknown, one a line.
func MediaNames(media []furl.Media) string {
	var lines []string
	for _, m := range media {
		s := "[" + m.Kind.String()
		if m.Type != "" {
			s += " " + m.Type
		}
		if m.Width > 0 && m.Height > 0 {
			s += fmt.Sprintf(" %dx%d", m.Width, m.Height)
		}
		lines = append(lines, s+"]")
	}
	return strings.Join(lines, "\n")
}
