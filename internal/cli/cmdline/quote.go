package cmdline

import (
	"strings"

	"github.com/furlhq/furl/internal/visible"
)

// QuoteFlag is quoteArg for an argument that may be a flag.
func QuoteFlag(arg string) string {
	if strings.HasPrefix(arg, "-") {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return arg
		}
		return name + "=" + visible.QuoteArg(value)
	}
	return visible.QuoteArg(arg)
}
