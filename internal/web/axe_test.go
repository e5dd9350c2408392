package web_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/session"
)

// axe is the source of axe-core, which checks the accessibility of pages.
func axe(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash("../dev/clienttest/testdata/node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Skip("axe-core is not installed: make clients (npm)")
	}
	return string(b)
}

// accessible fails if axe-core finds something serious on the page.
func accessible(t *testing.T, b *browsertest.Page, what string) {
	t.Helper()
	found := browsertest.Eval[string](b, `axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify(r.violations
		.filter((v) => ['serious', 'critical'].includes(v.impact))
		.map((v) => ({id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + ' — ' + n.any.concat(n.all, n.none).map((c) => c.message).join('; ').slice(0, 300))}))))`)
	var list []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(found), &list); err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		t.Errorf("%s: %s (%s):\n%s", what, v.Help, v.ID, strings.Join(v.Nodes, "\n"))
	}
}

func TestBrowserAccessible(t *testing.T) {
	source := axe(t)
	all, _ := sessiontest.Open(t, session.Options{Policy: "rolling-mask-10"})
	s := importFiles(t, all, "entire-cli/bc-*.jsonl.gz")[0]
	if _, err := s.Reduce(t.Context(), session.ReduceOptions{}); err != nil {
		t.Fatal(err)
	}
	url := serve(t, all, nil)
	page := url + "/furl/sessions/" + string(s.ID())
	for _, at := range []struct{ name, url, ready string }{
		{"sessions", url + "/", `!!document.querySelector('main')`},
		{"sessions without groups", url + "/?group=off", `!!document.querySelector('.spark svg')`},
		{"sessions with a text", url + "/?q=test", `!!document.querySelector('.found .hit')`},
		{"cost", page + "/money", `!!document.querySelector('.chart')`},
		{"savings", url + "/furl/money", `!!document.querySelector('h1')`},
		{"usage", url + "/furl/usage?by=session&since=all", `!!document.querySelector('h1')`},
		{"recall", page + "/recall?q=test", `!!document.querySelector('h1')`},
		{"session", page, `!!document.querySelector('.row')`},
		{"marker", page + "?at=" + lastReduction(s), `!!document.querySelector('#inspector .figures')`},
		{"as the model sees it", page + "?see=model&request=20", `!!document.querySelector('.row')`},
		{"request", page + "/requests/20", `!!document.querySelector('.figures')`},
		{"settings", page + "/act/settings", `!!document.querySelector('.ask')`},
		{"preview of a policy", page + "/act/reduce?policy=rolling-mask-5", `!!document.querySelector('.price')`},
		{"delete", page + "/act/delete", `!!document.querySelector('.ask')`},
		{"error", url + "/furl/sessions/nothing", `!!document.querySelector('h1')`},
	} {
		t.Run(at.name, func(t *testing.T) { // whose end closes the tab
			b := browsertest.OpenURL(t, at.url)
			b.Wait(at.ready)
			browsertest.Eval[any](b, source+";0")
			for _, as := range []struct {
				scheme string
				width  int64
			}{{"light", 1440}, {"dark", 390}} {
				b.Media("", as.scheme)
				b.Size(as.width, 900)
				b.Drawn()
				accessible(t, b, at.name+", "+as.scheme)
				b.Screenshot(at.name + "-" + as.scheme)
			}
		})
	}
}

// lastReduction is the record of the newest reduction.
func lastReduction(s *session.Session) string {
	list := s.Reductions()
	return fmt.Sprint(list[len(list)-1].Seq)
}
