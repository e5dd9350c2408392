package web_test

import (
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
)

func TestExport(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	s := importFiles(t, all, "entire-cli/bc-*.gz")[0]
	page := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	title := s.Meta().Title
	if status, text := get(t, page+"/export"); status != 200 || !strings.Contains(text, "export?content=structure") || !strings.Contains(text, "export?content=full") {
		t.Fatalf("the offer: status %d: %s", status, text)
	}
	if status, _ := get(t, page+"/export?content=most"); status != 400 {
		t.Errorf("an unknown content: status %d", status)
	}
	status, full := get(t, page+"/export?content=full")
	if status != 200 || !strings.Contains(full, string(s.ID())) || !strings.HasSuffix(strings.TrimSpace(full), "</html>") {
		t.Fatalf("with content: status %d, %d bytes", status, len(full))
	}
	status, structure := get(t, page+"/export?content=structure")
	if status != 200 || strings.Contains(structure, string(s.ID())) || title != "" && strings.Contains(structure, title) || !strings.Contains(structure, "call of ") {
		t.Fatalf("structure: status %d, %d bytes", status, len(structure))
	}
	for what, secret := range map[string]string{"project": s.Meta().Project, "model": s.Meta().Model} {
		if len(secret) > 3 && strings.Contains(structure, secret) {
			t.Errorf("the structure has the %s %q", what, secret)
		}
	}
}

// The exported page is styled by its own style and asks for nothing.
func TestBrowserExport(t *testing.T) {
	all, _ := sessiontest.Open(t, session.Options{})
	s := importFiles(t, all, "entire-cli/bc-*.gz")[0]
	page := serve(t, all, nil) + "/furl/sessions/" + string(s.ID())
	_, text := get(t, page+"/export?content=full")
	b := browsertest.Open(t, []byte(text))
	if !browsertest.Eval[bool](b, `document.querySelectorAll('svg.ribbon rect').length > 5 && getComputedStyle(document.querySelector('rect.result')).fill !== 'rgb(0, 0, 0)'`) {
		t.Error("the ribbon is not drawn")
	}
	if browsertest.Eval[bool](b, `document.documentElement.scrollWidth > innerWidth || document.scripts.length > 0`) {
		t.Error("the page is too wide, or has a script")
	}
	b.Screenshot("export")
	b.Silent()
}
