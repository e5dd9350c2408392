// Package origin reads and compares the origins of web pages, as browsers send
// them in the Origin header (RFC 6454).
package origin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/furlhq/furl/internal/lazyregexp"
)

var (
	web = lazyregexp.New(`(?i)^https?://([a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)
	app = lazyregexp.New(`(?i)^[a-z][a-z0-9+.-]*://(\*|[a-z0-9_.:-]*)$`)
)

// Check returns an error unless pattern is an origin, such as
// https://app.example or app://obsidian.md, or all origins of an
// application's scheme, such as vscode-webview://*. The origin "null" cannot
// be allowed, because any page can have it.
func Check(pattern string) error {
	switch {
	case strings.EqualFold(pattern, "null"):
		return errors.New("null cannot be allowed: any page can send it from a sandboxed frame")
	case isWeb(pattern):
		if !web.MatchString(pattern) {
			return fmt.Errorf("%q: expected scheme, host and port without path or *, such as https://app.example or http://localhost:3000", pattern)
		}
		if hasDefaultPort(pattern) {
			return fmt.Errorf("%q: remove the port: browsers omit the default port of the scheme", pattern)
		}
	case !app.MatchString(pattern):
		return fmt.Errorf("%q: expected an origin such as https://app.example, app://obsidian.md or vscode-webview://*", pattern)
	}
	return nil
}

// Match reports whether a pattern that passed Check allows the value of an
// Origin header.
func Match(pattern, value string) bool {
	if scheme, ok := strings.CutSuffix(pattern, "*"); ok {
		return len(value) >= len(scheme) && strings.EqualFold(value[:len(scheme)], scheme)
	}
	return strings.EqualFold(pattern, value)
}

func isWeb(pattern string) bool {
	scheme, _, ok := strings.Cut(pattern, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

func hasDefaultPort(pattern string) bool {
	lower := strings.ToLower(pattern)
	return strings.HasPrefix(lower, "http:") && strings.HasSuffix(lower, ":80") ||
		strings.HasPrefix(lower, "https:") && strings.HasSuffix(lower, ":443")
}
