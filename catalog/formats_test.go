package catalog_test

import (
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
)

// The defaults of a wire format apply to its models, known or unknown, unless
// an entry overrides them, whatever the order of its keys.
func TestFactsOfFormats(t *testing.T) {
	c, err := catalog.Parse("test.yaml", []byte(`models:
  - {id: claude, window: 1000, format: anthropic}
  - {id: claude-other, window: 1000, item_tokens: 7, system_first: true, format: anthropic}
  - {id: chat, window: 1000}
  - {id: chat-other, window: 1000, system_first: false, item_tokens: 7}
  - {id: responses, window: 1000, format: openai-responses}
`))
	if err != nil {
		t.Fatal(err)
	}
	type facts struct {
		item  float64
		first bool
	}
	of := func(m furl.Model) facts { return facts{m.ItemTokens, m.SystemFirst} }
	for name, want := range map[string]facts{
		"claude": {35, false}, "claude-other": {7, true}, "chat": {0, true}, "chat-other": {7, false}, "responses": {0, true},
	} {
		if m, ok := c.Lookup(name); !ok || of(m) != want {
			t.Errorf("%s: %+v, want %+v", name, of(m), want)
		}
	}
	for format, want := range map[furl.Format]facts{
		furl.FormatAnthropic: {35, false}, furl.FormatChat: {0, true}, furl.FormatResponses: {0, true}, "": {0, false},
	} {
		m := catalog.Unknown("m", format)
		if of(m) != want || m.ID != "m" || m.Format != format || !m.Prefill || !m.SystemInside || m.Window != 0 {
			t.Errorf("unknown model of %q: %+v", format, m)
		}
	}
	if claude, chat := catalog.CommonCaching(furl.FormatAnthropic), catalog.CommonCaching(furl.FormatChat); !claude.Explicit || chat.Explicit {
		t.Errorf("caching: %+v and %+v", claude, chat)
	}
}
