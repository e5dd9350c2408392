package catalog

import (
	"iter"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lazyregexp"
)

// Lookup finds a model by any of its names. It tries the following, in order,
// until it finds an id or alias of the catalogue:
//
//   - the name itself, ignoring case, and with "." and "-" between digits
//     treated as equal: claude-sonnet-4.5 is claude-sonnet-4-5;
//   - without a route before it: anthropic/…, openrouter/openai/…, models/…,
//     and Bedrock's us.anthropic.…;
//   - without a suffix for a snapshot or a route: a date (-20251101,
//     -2025-11-01, @20251101, -0613, -05-20), -latest, -preview, -exp,
//     Bedrock's -v1:0, OpenRouter's :free and similar, and Claude Code's [1m],
//     which also sets the window to a million tokens.
//
// No other suffixes are removed: gpt-5-codex and gpt-5-mini are not gpt-5. A
// model that is not found is unknown and has no window.
func (c *Catalog) Lookup(name string) (furl.Model, bool) {
	e, ok := c.Entry(name)
	return e.Model, ok
}

// maxName bounds the work on names, which come from requests.
const maxName = 256

// longWindow is the window that Claude Code's [1m] requests.
const longWindow = 1_000_000

func longContext(name string) bool {
	return strings.HasSuffix(strings.ToLower(strings.TrimSpace(name)), "[1m]")
}

// cloudVendor matches the part before the first dot in names of Amazon
// Bedrock and similar services, after a region or an inference profile.
var cloudVendor = lazyregexp.New(`^(?:[a-z]{2,6}(?:-gov)?\.)?(?:anthropic|openai|meta|deepseek|qwen|moonshot|moonshotai|zai|google|xai)\.`)

// suffixes may be removed from the end of a name, one after the other.
var suffixes = []*lazyregexp.Regexp{
	lazyregexp.New(`\[1m\]$`),
	lazyregexp.New(`:(?:free|beta|nitro|floor|exacto|extended|online|thinking|latest|[0-9])$`),
	lazyregexp.New(`-v[1-9]$`),
	lazyregexp.New(`@(?:[0-9]{8}|default|latest)$`),
	lazyregexp.New(`-(?:latest|preview|exp)$`),
	lazyregexp.New(`-20[0-9]{2}-?[01][0-9]-?[0-3][0-9]$`),
	lazyregexp.New(`-[01][0-9]-20[0-9]{2}$`),
	lazyregexp.New(`-[01][0-9]-?[0-3][0-9]$`),
}

// find returns the index of the entry for a name.
func (c *Catalog) find(name string) (int, bool) {
	for n := range candidates(name) {
		if i, ok := c.strip(n); ok {
			return i, true
		}
	}
	return 0, false
}

// candidates ranges over a name as it is, and then without the routes before it, one by
// one.
func candidates(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		name := strings.ToLower(strings.TrimSpace(name))
		if name == "" || len(name) > maxName || !yield(name) {
			return
		}
		for {
			_, rest, found := strings.Cut(name, "/")
			if !found {
				break
			}
			if name = rest; !yield(name) {
				return
			}
		}
		if m := cloudVendor.FindString(name); m != "" {
			yield(name[len(m):])
		}
	}
}

// strip looks up the name, and then the name without its suffixes, one by
// one.
func (c *Catalog) strip(name string) (int, bool) {
	for {
		if i, ok := c.index[key(name)]; ok {
			return i, true
		}
		rest := cutSuffix(name)
		if rest == name {
			return 0, false
		}
		name = rest
	}
}

func cutSuffix(name string) string {
	for _, s := range suffixes {
		if m := s.FindStringIndex(name); m != nil && m[0] > 0 {
			return name[:m[0]]
		}
	}
	return name
}

// key returns the form in which names are compared.
func key(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if !strings.Contains(name, ".") {
		return name
	}
	b := []byte(name)
	for i := 1; i < len(b)-1; i++ {
		if b[i] == '.' && digit(b[i-1]) && digit(b[i+1]) {
			b[i] = '-'
		}
	}
	return string(b)
}

func digit(b byte) bool { return '0' <= b && b <= '9' }
