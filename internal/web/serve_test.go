package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/dev/sessiontest"
	"github.com/furlhq/furl/internal/web"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Main(m)) }

// serve serves the page over sessions by a gateway without providers and keys, and returns
// its address.
func serve(t testing.TB, all *session.Sessions, opts *web.Options) string {
	t.Helper()
	g, err := gateway.New(all, gateway.Upstreams{}, &gateway.Options{Page: web.New(opts)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g)
	t.Cleanup(func() { g.Drain(); server.Close() })
	return server.URL
}

// get returns the status and the body of a page.
func get(t testing.TB, url string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "text/html")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// importFiles imports recordings by their patterns and returns the sessions.
func importFiles(t testing.TB, all *session.Sessions, patterns ...string) (list []*session.Session) {
	t.Helper()
	for _, file := range recordings.Files(t, patterns...) {
		rec, err := transcript.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rec.Sessions {
			meta := storage.Meta{Title: s.Title, Model: s.Model, Project: s.Project, Client: rec.Format, Format: s.Wire, Imported: furl.Seq(s.Log.Len()), Recorded: s.End()}
			in, err := all.Import(t.Context(), "", s.Log, meta)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, in)
		}
	}
	return list
}

func stateOf(t testing.TB, s *session.Session) *furl.State {
	t.Helper()
	return sessiontest.Log(t, s).State()
}
