//go:build clients_all

package clienttest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/sim"
)

// make drift: what the newest releases of the clients send that docs/internals/shapes.md
// does not list, as rows to add, and the models that the catalogue lacks.
func TestDrift(t *testing.T) {
	found := newShapes()
	var mu sync.Mutex
	for _, c := range drifters() {
		t.Run(strings.NewReplacer(" ", "-", ",", "").Replace(c.name), func(t *testing.T) {
			program := c.program(t)
			st := newFixture(t, options{window: 900_000, steps: 3})
			gateway, err := url.Parse(st.url)
			if err != nil {
				t.Fatal(err)
			}
			proxy := httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(gateway) }}
			seen := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return // the client has gone
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				mu.Lock()
				err = found.request(c.name, r.Method, r.URL, r.Header, body)
				mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				proxy.ServeHTTP(w, r)
			}))
			t.Cleanup(seen.Close)
			st.url = seen.URL
			if c.setup != nil {
				c.setup(t, st)
			}
			for i, args := range [][]string{c.first("Work through the first pieces."), c.again("Go on with the rest.")} {
				if out, err := st.try(c.env(st), program[0], append(program[1:len(program):len(program)], args...)...); err != nil {
					t.Errorf("run %d: %v\n%.3000s\n%s", i+1, err, out, st.requests())
				}
			}
			st.dump(t)
			if len(st.sim.Requests()) < 4 { // steps of two tasks
				t.Errorf("%d requests\n%s", len(st.sim.Requests()), st.requests())
			}
			for _, r := range st.sim.Requests() {
				if r.Verdict == sim.VerdictRefused {
					t.Errorf("request %d, %s %s: %s", r.N, r.Method, r.Path, r.Error)
				}
			}
		})
	}
	for _, sh := range found.unlisted(rows(t)) {
		t.Errorf("not in shapes.md: | `%s` | `%s` | `%s` | %s | %s | | |", sh.API, sh.Place, sh.Type, quoted(sh.Fields), strings.Join(found.clients[sh.key()], ", "))
	}
	for model, client := range found.models {
		if _, ok := catalog.Default().Lookup(model); !ok {
			t.Errorf("not in the catalogue: %s, which %s asks for", model, client)
		}
	}
}

func quoted(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "` `") + "`"
}

// try is run without failing the test.
func (st *fixture) try(env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = st.env(env...), st.dir, 5*time.Second
	killGroup(cmd)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// drifters are all clients, each on its default model where it has one.
func drifters() []coder {
	list := slices.Clone(coders)
	for i := range list {
		if list[i].name == "claude" {
			const bypass = "--dangerously-skip-permissions"
			list[i].first = func(task string) []string { return []string{"-p", task, bypass} }
			list[i].again = func(task string) []string { return []string{"-c", "-p", task, bypass} }
		}
	}
	for _, c := range sdks {
		list = append(list, script(c.name+" sdk", c.script, c.model, c.api, ""), script(c.name+" sdk, streamed", c.script, c.model, c.api, "1"))
	}
	for _, c := range histories {
		list = append(list, script(c.name, c.script, c.model, "", ""))
	}
	return append(list, more...)
}

// script is a script with an SDK. It does one task, and another when it is run again.
func script(name, file, model, api, stream string) coder {
	none := func(string) []string { return nil }
	return coder{
		name: name,
		program: func(t testing.TB) []string {
			file, err := filepath.Abs(filepath.Join(clients(), file))
			if err != nil {
				t.Fatal(err)
			}
			return []string{node(t), file}
		},
		env: func(st *fixture) []string {
			return []string{
				"OPENAI_BASE_URL=" + st.url + "/v1", "OPENAI_API_KEY=dummy", "ANTHROPIC_BASE_URL=" + st.url, "ANTHROPIC_API_KEY=dummy",
				"MODEL=" + model, "API=" + api, "TASK=Work through the pieces.", "HISTORY=" + filepath.Join(st.home, "history.json"), "STREAM=" + stream,
			}
		},
		first: none, again: none,
	}
}
