package catalog_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/furlhq/furl/catalog"
)

// The entry shown in docs/use/configuration.md is valid.
func TestDocumentedEntry(t *testing.T) {
	doc, err := os.ReadFile("../docs/use/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile("(?s)```yaml\n(models:.*?)```").FindStringSubmatch(string(doc))
	if text == nil {
		t.Fatal("docs/use/configuration.md shows no entry of the catalogue")
	}
	c, err := catalog.Default().Merge(parse(t, "docs/use/configuration.md", text[1]))
	if err != nil {
		t.Fatal(err)
	}
	m, ok := c.Lookup("my-old-name")
	if !ok || m.LongPrices.Input != 6 || m.Caching.MaxMarks != 4 || !m.Thinking.Removable {
		t.Errorf("got %+v", m)
	}
	for _, key := range catalog.Keys() {
		if !strings.Contains(text[1], key+":") {
			t.Errorf("docs/use/configuration.md does not show the key %q", key)
		}
	}
}
