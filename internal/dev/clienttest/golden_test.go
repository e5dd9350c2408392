package clienttest

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/requests anew")

// golden holds what reached the provider to what reached it before: one line
// for each request, with a digest of its body in which times and ids that
// clients draw are normalised. It leaves out furl's own question about the model, which is
// sent at a time of its own.
func (st *fixture) golden(t *testing.T) {
	t.Helper()
	if t.Failed() || strings.HasPrefix(t.Name(), "TestCoders/") || strings.HasPrefix(t.Name(), "TestMoreCoders/") {
		return // agents tell the model about the machine and the date, and sizes follow from that
	}
	file := filepath.Join("testdata", "requests", strings.NewReplacer("/", "-", "=", "-").Replace(t.Name())+".golden")
	n := &normaliser{seen: make(map[string]string)}
	var got strings.Builder
	for _, r := range st.sim.Requests() {
		if r.Method == http.MethodGet {
			continue
		}
		body := n.normalise(st, string(r.Body))
		fmt.Fprintf(&got, "%s %s %x\n", r.Method, n.normalise(st, r.Path), sha256.Sum256([]byte(body)))
		if dir := os.Getenv("FURL_CLIENTTEST_DUMP"); dir != "" {
			name := filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-"), fmt.Sprintf("%03d.normalised", r.N))
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() == string(want) {
		return
	}
	a, b := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%d requests, want %d; request %d of %s differs first:\n got %s\nwant %s", len(a)-1, len(b)-1, i+1, file, a[i], b[i])
			return
		}
	}
	t.Errorf("%d requests, want %d as in %s", len(a)-1, len(b)-1, file)
}

// normaliser replaces what differs between two runs of the same client. Equal
// ids get equal names, in the order in which they appear.
type normaliser struct{ seen map[string]string }

var (
	aTime = regexp.MustCompile(`\b20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?|\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d+ 20\d\d|\b1[789]\d{8}(\d{3})?\b`)
	anID  = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b(ses|msg|prt|toolu|call|rs|fc|resp|req|chatcmpl)_[0-9A-Za-z-]{6,}|\b[0-9a-f]{32,64}\b|\bAFkSvub[0-9A-Za-z+/=]{40,}`) // the last are signatures of the sim's
)

func (n *normaliser) normalise(st *fixture, s string) string {
	s = strings.NewReplacer(st.address, "ADDRESS", st.provider.Listener.Addr().String(), "PROVIDER").Replace(s)
	s = aTime.ReplaceAllString(s, "TIME")
	return anID.ReplaceAllStringFunc(s, func(id string) string {
		name, ok := n.seen[id]
		if !ok {
			name = fmt.Sprintf("ID%d", len(n.seen)+1)
			n.seen[id] = name
		}
		return name
	})
}
