package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/upstream"
)

// ask calls furl's API.
func (st *fixture) ask(t testing.TB, method, path, body string, headers ...string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequest(method, st.front.URL+"/furl/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer planted-secret-key")
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := st.front.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil && !bytes.Contains(data, []byte("\n")) {
		t.Fatalf("%s %s: %v: %s", method, path, err, data)
	}
	return resp.StatusCode, out
}

// looped is a gateway at the end of a long loop.
func looped(t testing.TB, o *gateway.Options) (*fixture, string) {
	t.Helper()
	st := newFixture(t, &sim.Options{Window: 16_000, Player: sim.NewAgent(&sim.AgentOptions{Steps: 20}), NoAuth: true}, &session.Options{Window: 16_000}, o)
	a := &agent{format: furl.FormatAnthropic, model: "claude-sonnet-4-5"}
	a.say("Look at everything there is.")
	short := func(call furl.Block) string { // less than auto clips before it is first sent
		return strings.Join(strings.SplitAfter(output(call), "\n")[:30], "")
	}
	for a.step(t, st, short) {
	}
	_, out := st.ask(t, "GET", "/sessions", "")
	list := out["sessions"].([]any)
	if len(list) != 1 {
		t.Fatalf("%d sessions", len(list))
	}
	return st, list[0].(map[string]any)["session"].(string)
}

// What was hidden is found, read and restored over HTTP.
func TestAPI(t *testing.T) {
	st, id := looped(t, nil)
	path := "/sessions/" + id
	status, out := st.ask(t, "GET", path+"/search?q=file_17.go", "")
	hits := out["hits"].([]any)
	if status != 200 || len(hits) == 0 {
		t.Fatalf("search: %d %v", status, out)
	}
	hit := hits[0].(map[string]any)
	if hit["hidden"] != true {
		t.Errorf("the hit is not hidden: %v", hit)
	}
	handle := hit["handle"].(string)
	_, out = st.ask(t, "GET", path+"/blocks/"+handle, "")
	if text, _ := out["text"].(string); !strings.Contains(text, "line 17 of some output") {
		t.Errorf("the original: %.200v", out)
	}
	_, out = st.ask(t, "POST", path+"/restore", `{"handles":["`+handle+`"],"dry_run":true}`)
	if n, _ := out["tokens"].(float64); n <= 0 {
		t.Errorf("a restoration of nothing: %v", out)
	}
	_, out = st.ask(t, "POST", path+"/restore", `{"handles":["`+handle+`"]}`)
	_, view := st.ask(t, "GET", path+"/view", "")
	data, _ := json.Marshal(view)
	if !bytes.Contains(data, []byte(`"handle":"`+handle+`"`)) || !bytes.Contains(data, []byte("line 17 of some output")) {
		t.Errorf("what was restored is not in the view: %v", out)
	}
	// The model saw it at earlier requests, until it was hidden; the restoration is newer.
	var seen strings.Builder
	for n, last := 1, 1.0; n <= int(last); n++ {
		_, view := st.ask(t, "GET", fmt.Sprintf("%s/view?request=%d", path, n), "")
		last = view["requests"].(float64)
		for _, m := range view["messages"].([]any) {
			for _, b := range m.(map[string]any)["blocks"].([]any) {
				if b := b.(map[string]any); b["handle"] == handle && b["hidden_by"] == nil {
					seen.WriteString("shown ")
				} else if b["handle"] == handle {
					seen.WriteString("hidden ")
				}
			}
		}
	}
	if !regexp.MustCompile(`^(shown )+(hidden )*$`).MatchString(seen.String()) || strings.Count(seen.String(), "shown") > 14 {
		t.Errorf("at the requests, the block was %s", seen.String())
	}
	for query, want := range map[string]int{"request=99": 404, "request=0": 400, "request=x": 400, "request=1&model=m": 400} {
		if status, out := st.ask(t, "GET", path+"/view?"+query, ""); status != want {
			t.Errorf("%s: %d %v", query, status, out)
		}
	}
	_, out = st.ask(t, "GET", path+"/reductions", "")
	if len(out["reductions"].([]any)) == 0 {
		t.Error("no reductions")
	}
	_, out = st.ask(t, "GET", path+"/context", "")
	if n, _ := out["current_size"].(float64); n <= 0 {
		t.Errorf("context: %v", out)
	}
	_, out = st.ask(t, "POST", path+"/pin", `{"handles":["`+handle+`"]}`)
	if out["session"] != id {
		t.Errorf("pin: %v", out)
	}
	_, out = st.ask(t, "POST", path+"/fork", `{"at":3,"title":"another"}`)
	if out["session"] != id || out["fork"] == nil || out["fork_at"] != 3.0 {
		t.Errorf("fork: %v", out)
	}
	_, out = st.ask(t, "GET", path+"/records?after=2", "")
	if first, _ := out["records"].([]any); len(first) == 0 || first[0].(map[string]any)["seq"] != 3.0 {
		t.Errorf("records after 2 begin with %.300v", out)
	}
}

// A second reduction in a row does nothing.
func TestAPIReduceTwice(t *testing.T) {
	st, id := looped(t, nil)
	path := "/sessions/" + id
	if status, out := st.ask(t, "POST", path+"/reduce", `{"policy":"sliding-window"}`); status != 200 || len(out["planned"].([]any)) != 1 {
		t.Fatalf("reduce: %d %v", status, out)
	}
	_, before := st.ask(t, "GET", path+"/records", "")
	status, out := st.ask(t, "POST", path+"/reduce", `{"policy":"sliding-window"}`)
	if reason, _ := out["reason"].(string); status != 200 || len(out["planned"].([]any)) != 0 || !strings.Contains(reason, "nothing more to hide") {
		t.Errorf("the second reduction: %d %v", status, out)
	}
	if _, after := st.ask(t, "GET", path+"/records", ""); len(after["records"].([]any)) != len(before["records"].([]any)) {
		t.Error("the second reduction has added records")
	}
}

func TestAPIErrors(t *testing.T) {
	st, id := looped(t, nil)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/sessions/nobody", "", 404},
		{"GET", "/sessions/" + id + "/blocks/furl:999.0", "", 404},
		{"GET", "/sessions/" + id + "/blocks/nothing", "", 400},
		{"GET", "/sessions/" + id + "/search", "", 400},
		{"GET", "/sessions/" + id + "/search?q=x&in=space", "", 400},
		{"GET", "/sessions/" + id + "/records?after=-1", "", 400},
		{"POST", "/sessions/" + id + "/restore", `{}`, 400},
		{"POST", "/sessions/" + id + "/restore", `{"handles":["x"]}`, 400},
		{"POST", "/sessions/" + id + "/restore", `{"what":1}`, 400},
		{"POST", "/sessions/" + id + "/restore", `{"reduction_id":-1}`, 400},
		{"POST", "/sessions/" + id + "/reduce", `{"policy":"nothing"}`, 400},
		{"POST", "/sessions/" + id + "/reduce", `[]`, 400},
		{"POST", "/sessions/" + id + "/reduce", `{"dry_run":true}{}`, 400},
		{"POST", "/sessions/" + id + "/pin", `{}`, 400},
		{"GET", "/elsewhere", "", 404},
	} {
		status, out := st.ask(t, c.method, c.path, c.body)
		if status != c.status || out["error"] == nil {
			t.Errorf("%s %s %s: %d %v, want %d", c.method, c.path, c.body, status, out, c.status)
		}
		if text := fmt.Sprint(out); strings.Contains(text, "struct") || strings.Contains(text, "furl.Seq") {
			t.Errorf("%s %s %s: the answer speaks Go: %s", c.method, c.path, c.body, text)
		}
	}
}

// stuck is a store that does not answer, or only with an error.
type stuck struct {
	*inmem.Store
	err error
}

func (s stuck) Sessions(ctx context.Context, _ furl.Tenant, _ storage.SessionQuery) iter.Seq2[storage.SessionInfo, error] {
	return func(yield func(storage.SessionInfo, error) bool) {
		err := s.err
		if err == nil {
			<-ctx.Done()
			err = ctx.Err()
		}
		yield(storage.SessionInfo{}, err)
	}
}

// Who asks whether the gateway is ready is told in time that its store does not
// answer.
func TestReadyInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newApart(t, stuck{Store: inmem.New()})
		begun := time.Now()
		w := httptest.NewRecorder()
		st.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		if w.Code != 503 || !strings.Contains(w.Body.String(), "store") || time.Since(begun) > 3*time.Second {
			t.Errorf("%d %s after %v, want 503 within 3s", w.Code, w.Body, time.Since(begun))
		}
	})
}

// pinged is a store that counts pings and may fail them.
type pinged struct {
	storage.Store
	pings atomic.Int32
	err   error
	takes time.Duration
}

func (s *pinged) Ping(context.Context) error {
	s.pings.Add(1)
	time.Sleep(s.takes)
	return s.err
}

// Balancers and probes that check at the same moment, or within a second, cost one ping.
// A store that is lost or back shows with the next one.
func TestReadyAsksTheStoreOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &pinged{Store: inmem.New(), takes: 10 * time.Millisecond}
		g := newApart(t, store)
		check := func(ctx context.Context, want int) {
			w := httptest.NewRecorder()
			g.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil).WithContext(ctx))
			if w.Code != want {
				t.Errorf("%d %s, want %d", w.Code, w.Body, want)
			}
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { check(t.Context(), 204) })
		}
		all.Wait()
		if n := store.pings.Load(); n != 1 {
			t.Errorf("20 checks at once cost %d pings", n)
		}
		store.err = errors.New("lost")
		check(t.Context(), 204) // the result of before
		time.Sleep(time.Second)
		gone, leave := context.WithCancel(t.Context())
		leave()
		check(gone, 503)
		store.err = nil
		check(t.Context(), 503)
		time.Sleep(time.Second)
		check(t.Context(), 204)
		if n := store.pings.Load(); n != 3 {
			t.Errorf("the checks cost %d pings, want 3", n)
		}
	})
}

// What a store says when it fails is for the log, not for who asks.
func TestAPIKeepsStoreErrors(t *testing.T) {
	g := newApart(t, stuck{inmem.New(), errors.New("dial postgres://mira@10.1.2.3/furl: refused")})
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/furl/v1/sessions", nil)
	r.Host = "localhost"
	g.ServeHTTP(w, r)
	if w.Code != 500 || strings.Contains(w.Body.String(), "10.1.2.3") || !strings.Contains(w.Body.String(), `"status":500`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// newApart is a gateway over a store, which no request to a provider comes to.
func newApart(t *testing.T, store storage.Store) *gateway.Gateway {
	t.Helper()
	sessions, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	up, err := upstream.New("http://provider.invalid", nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(sessions, gateway.Upstreams{Anthropic: up}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A reader that comes back with the id of the last event it saw misses nothing
// and sees nothing twice.
func TestEvents(t *testing.T) {
	st, id := looped(t, nil)
	read := func(last string, n int) (ids []string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", st.front.URL+"/furl/v1/sessions/"+id+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := st.front.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for len(ids) < n && lines.Scan() {
			if v, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				ids = append(ids, v)
			}
		}
		return ids
	}
	first := read("", 4)
	again := read(first[3], 3)
	if got := strings.Join(append(first, again...), " "); got != "1 2 3 4 5 6 7" {
		t.Errorf("the ids are %s", got)
	}
}

// Pages of other sites, and names that anybody could point here, are refused.
func TestLocalOnly(t *testing.T) {
	st, id := looped(t, &gateway.Options{Hosts: []string{"furl.internal"}})
	for _, c := range []struct {
		header, value string
		status        int
	}{
		{"Origin", "https://evil.example", 403},
		{"Origin", "null", 403},
		{"Sec-Fetch-Site", "cross-site", 403},
		{"Host", "evil.example:80", 403},
		{"Host", "furl.internal", 200},
		{"Host", "localhost:1", 200},
		{"Sec-Fetch-Site", "same-origin", 200},
	} {
		if status, _ := st.ask(t, "GET", "/sessions/"+id, "", c.header, c.value); status != c.status {
			t.Errorf("%s %s: %d, want %d", c.header, c.value, status, c.status)
		}
	}
}

// With keys, nobody gets in without one; tenants see nothing of each other.
func TestClientKeysAndTenants(t *testing.T) {
	st, id := looped(t, &gateway.Options{TenantSecret: []byte("secret"), ClientKeys: []string{"planted-secret-key", "other"}})
	if status, _ := st.ask(t, "GET", "/sessions/"+id, "", "Authorization", "Bearer other"); status != 404 {
		t.Errorf("another tenant's session: %d, want 404", status)
	}
	if status, out := st.ask(t, "GET", "/sessions/"+id, "", "Authorization", "Bearer wrong"); status != 401 || out["error"] == nil {
		t.Errorf("a wrong key: %d %v, want 401", status, out)
	}
	if status, _ := st.ask(t, "GET", "/sessions/"+id, "", "Authorization", "", "Api-Key", "planted-secret-key"); status != 200 {
		t.Errorf("the tenant's own session, with the key where Azure has it: %d, want 200", status)
	}
	if status, _ := st.ask(t, "GET", "/sessions/"+id, "", "Authorization", "", "Api-Key", "other"); status != 404 {
		t.Errorf("another tenant's session: %d, want 404", status)
	}
	// Where the provider asks for no credential, the gateway's key is what there is.
	st.post(t, "/v1/messages", []byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`), "Authorization", "", "X-Furl-Key", "other")
	for key, want := range map[string]int{"other": 1, "planted-secret-key": 1} {
		_, out := st.ask(t, "GET", "/sessions", "", "Authorization", "", "X-Furl-Key", key)
		if list, _ := out["sessions"].([]any); len(list) != want {
			t.Errorf("who shows %s alone sees %d sessions, want %d", key, len(list), want)
		}
	}
	resp, body := st.post(t, "/v1/messages", []byte(`{}`), "Authorization", "Bearer wrong")
	if resp.StatusCode != 401 || !bytes.Contains(body, []byte(`"type":"error"`)) {
		t.Errorf("a wrong key: %d %s", resp.StatusCode, body)
	}
}

func TestCheckListen(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1:80": true, "[::1]:80": true, "localhost:80": true, "0.0.0.0:80": false, ":80": false, "192.168.1.1:80": false, "nonsense": false,
	} {
		if err := gateway.CheckListen(addr, &gateway.Options{}); (err == nil) != ok {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if err := gateway.CheckListen(":80", &gateway.Options{ClientKeys: []string{"k"}}); err != nil {
		t.Error(err)
	}
}
