package furlhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/furlhttp"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
)

// faulty has the provider refuse requests while a fault is set.
type faulty struct{ fault string }

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.fault != "" {
		r.Header.Set(sim.FaultHeader, f.fault)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A request that the provider refuses leaves nothing in the store, whether it
// would begin a session or go on in one. The same request, accepted, is recorded
// once.
func TestRefusedRequestsLeaveNothing(t *testing.T) {
	for _, status := range []string{"401", "403", "429", "529"} {
		for _, f := range families {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s stream %v", status, f.format, stream), func(t *testing.T) {
					_, url := provider(t, sim.Options{Player: reader(30)})
					all := sessions(t, session.Options{})
					base := &faulty{}
					client := &http.Client{Transport: furlhttp.New(all, &furlhttp.Options{Base: base})}
					p := &program{t: t, f: f, client: client, url: url, stream: stream}
					p.add(furl.RoleUser, furl.Block{Kind: furl.KindText, Text: "Read all files."})
					for range 3 {
						before := records(t, all)
						base.fault = status
						for range 2 {
							resp, err := client.Post(url+f.path, "application/json", strings.NewReader(p.body()))
							if err != nil {
								t.Fatal(err)
							}
							body, err := io.ReadAll(resp.Body)
							resp.Body.Close()
							if err != nil || fmt.Sprint(resp.StatusCode) != status || !strings.Contains(string(body), "error") {
								t.Fatalf("%d %s %v", resp.StatusCode, body, err)
							}
						}
						if after := records(t, all); after != before {
							t.Errorf("the store has %s, want %s", after, before)
						}
						base.fault = ""
						p.ask()
					}
					if n := strings.Count(records(t, all), ":"); n != 1 {
						t.Errorf("%d sessions, want 1", n)
					}
				})
			}
		}
	}
}

// records lists the sessions of a store with the number of their records.
func records(t *testing.T, all *session.Sessions) string {
	t.Helper()
	var out strings.Builder
	for info, err := range all.List(t.Context(), storage.SessionQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s: %d ", info.Session, info.Records)
	}
	return out.String()
}
