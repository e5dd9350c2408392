package readable

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/furlhq/furl/internal/dev/browsertest"
)

// In a real browser the page is styled, fits a narrow screen, runs no scripts
// and loads nothing.
func TestHTMLInABrowser(t *testing.T) {
	var page bytes.Buffer
	if err := session(t, rand.New(rand.NewPCG(1, 2)), append(hostile, "word "+fmt.Sprintf("%0900d", 7))).HTML(&page, nil); err != nil {
		t.Fatal(err)
	}
	p := browsertest.Open(t, page.Bytes())
	p.Size(360, 800)
	for what, expression := range map[string]string{
		"the style is not applied":      `getComputedStyle(document.body).maxWidth === "980px"`,
		"the page is too wide":          `document.documentElement.scrollWidth <= 360`,
		"there are no messages":         `document.querySelectorAll("article").length > 5`,
		"nothing is dimmed":             `document.querySelectorAll(".dimmed").length > 0`,
		"a marker is open":              `document.querySelectorAll(".marker details:not([open])").length > 0`,
		"a link leads nowhere":          `[...document.querySelectorAll("a")].every(a => document.getElementById(a.getAttribute("href").slice(1)))`,
		"there are scripts or handlers": `document.scripts.length === 0 && ![...document.querySelectorAll("*")].some(e => [...e.attributes].some(a => a.name.startsWith("on")))`,
	} {
		if !browsertest.Eval[bool](p, expression) {
			t.Error(what)
		}
	}
	p.Silent()
}
