package web_test

import (
	"fmt"
	"testing"

	"github.com/furlhq/furl/internal/dev/browsertest"
)

// From the transcript at a request, one key shows what was sent, and how that differs from
// the request before it and from what the agent sent.
func TestBrowserRequest(t *testing.T) {
	a := newAgent(t)
	s := a.work(t, 30)
	page := a.url + "/furl/sessions/" + string(s.ID())
	b := browsertest.OpenURL(t, page+"?request=20")
	b.Wait(`!!document.querySelector('.row')`)
	b.Key("d")
	b.Wait(`document.readyState === 'complete' && location.pathname.endsWith('/requests/20') && !!document.querySelector('pre.diff .add')`)
	b.Key("]")
	b.Wait(`document.readyState === 'complete' && location.pathname.endsWith('/requests/21')`)
	b.Key("[")
	b.Wait(`document.readyState === 'complete' && location.pathname.endsWith('/requests/20')`)
	b.Key("d")
	b.Wait(`document.readyState === 'complete' && location.search === '?against=received'`)
	b.Screenshot("request")
	b.Key("\x1b")
	b.Wait(fmt.Sprintf(`location.href === '%s?request=20'`, page))
	b.Silent()
}
