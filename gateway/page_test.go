package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/browsertest"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// testPage is a page that says which of its methods has served a request, and for whom.
type testPage struct{}

func (testPage) ServePage(w http.ResponseWriter, r *http.Request, v gateway.Visit) {
	if r.URL.Path == "/furl/stream" {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		fmt.Fprint(w, "data: end\n\n")
		return
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, "page %s %s tenant=%q loggedIn=%v", r.Method, r.URL.Path, v.Sessions.Tenant(), v.LoggedIn)
}

func (testPage) ServeAsset(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, "asset ", r.URL.Path)
}

var testForm = template.Must(template.New("").Parse(`<!doctype html><title>login</title><form method="post" action="/furl/login">
{{.Message}}<input name="key"><input type="hidden" name="to" value="{{.To}}">{{if .Fields.Credential}}<input name="credential">{{end}}<button>login</button></form>
<p>login {{.Fields.Key}} {{.Fields.Credential}} {{.Form}}`))

func (testPage) ServeLogin(w http.ResponseWriter, r *http.Request, status int, to, message string) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_ = testForm.Execute(w, map[string]any{"To": to, "Message": message, "Fields": gateway.LoginFieldsOf(r), "Form": r.PostForm})
}

func (testPage) ServeError(w http.ResponseWriter, _ *http.Request, status int, message string) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	fmt.Fprint(w, "error page: ", template.HTMLEscapeString(message))
}

// pageEdge is an edge whose gateway has the test's page.
func pageEdge(t *testing.T, o gateway.Options) *edge {
	t.Helper()
	o.Page = testPage{}
	return newEdge(t, &o)
}

// visit sends a request to the page's path and returns the response without following
// redirects.
func (e *edge) visit(t *testing.T, method, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	return e.visitWith(t, method, path, nil, headers...)
}

func (e *edge) visitWith(t *testing.T, method, path string, form url.Values, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, e.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		switch name, value := headers[i], strings.ReplaceAll(headers[i+1], "OWN", e.url); {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// logIn logs in by the form and returns the cookie.
func (e *edge) logIn(t *testing.T, fields ...string) *http.Cookie {
	t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	resp, body := e.visitWith(t, "POST", "/furl/login", form, "Origin", "OWN")
	if resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) != 1 {
		t.Fatalf("login with %v: %d %v %s", fields, resp.StatusCode, resp.Header, body)
	}
	return resp.Cookies()[0]
}

func cookie(c *http.Cookie) string { return c.Name + "=" + c.Value }

// Which requests reach the page without keys, and which other handler serves the rest.
// None that is refused or served by furl reaches the provider.
func TestPageRequests(t *testing.T) {
	e := pageEdge(t, gateway.Options{Origins: []string{configured}, Hosts: []string{"furl.internal"}})
	const page, failed, asset, provider = "page ", "error page: ", "asset ", "provider"
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for _, tt := range []struct {
		name, method, path string
		headers            []string
		status             int
		want               string // beginning of the body; provider: the provider's response
	}{
		{"the root in a browser", "GET", "/", nil, 200, page + "GET / "},
		{"the root, by a header", "HEAD", "/", nil, 200, ""},
		{"the root for a program", "GET", "/", []string{"Accept", "*/*"}, 200, provider},
		{"the root with a provider's credential", "GET", "/", []string{"X-Api-Key", "made-up"}, 200, provider},
		{"the root through a proxy with a password", "GET", "/", []string{"Authorization", "Basic bWFkZTp1cA=="}, 200, page},
		{"the root with furl's key", "GET", "/", []string{"X-Furl-Key", "made-up"}, 200, page},
		{"a POST to the root", "POST", "/", nil, 200, provider},
		{"the root under another name", "GET", "/", []string{"Host", "evil.example"}, 403, failed + "unknown host name"},
		{"the root under a configured name", "GET", "/", []string{"Host", "furl.internal:7410"}, 200, page},
		{"the folder", "GET", "/furl", nil, 303, ""},
		{"the folder with a slash", "GET", "/furl/", nil, 303, ""},
		{"a path", "GET", "/furl/sessions/one", nil, 200, page + "GET /furl/sessions/one "},
		{"a path with more slashes", "GET", "//furl///sessions", nil, 200, page + "GET /furl/sessions "},
		{"a path with escapes", "GET", "/%66url/a%2Fb", nil, 200, page + "GET /furl/a/b "},
		{"a path with an escaped slash", "GET", "/furl%2Fsessions", nil, 404, `{"error"`},
		{"a path of the API with an escaped slash", "GET", "/furl%2Fv1/sessions", nil, 404, `{"error"`},
		{"dots", "GET", "/furl/../v1/models", nil, 400, `{"error"`},
		{"another path that starts like furl's", "GET", "/furlong", nil, 200, provider},
		{"a path that starts like the API's", "GET", "/furl/v1beta", nil, 200, page + "GET /furl/v1beta "},
		{"the API", "GET", "/furl/v1/sessions", nil, 200, `{"sessions"`},
		{"an unknown path of the API", "GET", "/furl/v1/nothing", nil, 404, `{"error"`},
		{"another method", "PUT", "/furl/sessions", nil, 405, failed},
		{"a preflight", "OPTIONS", "/furl/sessions", []string{"Origin", configured, "Access-Control-Request-Method", "POST"}, 403, failed},
		{"under another name", "GET", "/furl/sessions", []string{"Host", "evil.example"}, 403, failed + "unknown host name"},
		{"under another name, for a program", "GET", "/furl/sessions", []string{"Host", "evil.example", "Accept", "*/*"}, 403, `{"error"`},
		{"a link of another site", "GET", "/furl/sessions", link, 200, page},
		{"a link of another site to the root", "GET", "/", link, 200, page},
		{"a link of another port", "GET", "/furl/sessions", append([]string{"Sec-Fetch-Site", "same-site"}, link[2:]...), 200, page},
		{"a link of another site under another name", "GET", "/furl/sessions", append([]string{"Host", "evil.example"}, link...), 403, failed + "unknown host name"},
		{"a form of another site", "POST", "/furl/sessions", append([]string{"Origin", "https://evil.example"}, link...), 403, failed},
		{"a form of another site without its origin", "POST", "/furl/sessions", link, 403, failed},
		{"a form of another port", "POST", "/furl/sessions", []string{"Origin", "http://127.0.0.1:3000", "Sec-Fetch-Site", "same-site"}, 403, failed},
		{"a form without an origin", "POST", "/furl/sessions", []string{"Origin", "null"}, 403, failed},
		{"a frame of another site", "GET", "/furl/sessions", append([]string{"Sec-Fetch-Dest", "iframe"}, link[:4]...), 403, failed},
		{"a script of another site", "GET", "/furl/sessions", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, 403, failed},
		{"fetch by a configured origin", "GET", "/furl/sessions", []string{"Origin", configured, "Sec-Fetch-Site", "cross-site"}, 403, failed},
		{"a POST of a configured origin", "POST", "/furl/sessions", []string{"Origin", configured, "Sec-Fetch-Site", "cross-site"}, 403, failed},
		{"a POST of a configured origin with a key", "POST", "/furl/sessions", []string{"Origin", configured, "X-Furl-Key", "made-up"}, 403, failed},
		{"a POST of the page", "POST", "/furl/sessions", []string{"Origin", "OWN", "Sec-Fetch-Site", "same-origin"}, 200, page},
		{"a POST of the page, by one header", "POST", "/furl/sessions", []string{"Origin", "OWN"}, 200, page},
		{"a POST of the page, by the other", "POST", "/furl/sessions", []string{"Sec-Fetch-Site", "same-origin"}, 200, page},
		{"a POST of the page under another name", "POST", "/furl/sessions", []string{"Host", "evil.example", "Origin", "http://evil.example"}, 403, failed},
		{"a POST of a program", "POST", "/furl/sessions", []string{"Accept", "*/*"}, 200, page},
		{"login without keys", "GET", "/furl/login?to=/furl/x", nil, 303, ""},
		{"login by a POST without keys", "POST", "/furl/login", nil, 303, ""},
		{"logout without keys", "POST", "/furl/logout", nil, 303, ""},
		{"the icon that browsers request", "GET", "/favicon.ico", []string{"Accept", "image/*"}, 404, "404"},
		{"a file", "GET", "/furl/assets/page.css", nil, 200, asset},
		{"a file under another name", "GET", "/furl/assets/page.css", []string{"Host", "evil.example", "Sec-Fetch-Site", "same-origin"}, 200, asset},
		{"a file for another site", "GET", "/furl/assets/page.js", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403, failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := e.visit(t, tt.method, tt.path, tt.headers...)
			reached := e.provider.taken()
			if tt.want == provider {
				if resp.StatusCode != tt.status || len(reached) != 1 {
					t.Errorf("%d, %d requests reached the provider, want one: %s", resp.StatusCode, len(reached), body)
				}
				return
			}
			if resp.StatusCode != tt.status || !strings.HasPrefix(body, tt.want) || len(reached) != 0 {
				t.Errorf("%d, %d requests reached the provider, want %d and %q: %s", resp.StatusCode, len(reached), tt.status, tt.want, body)
			}
			if resp.Header.Get("Access-Control-Allow-Origin") != "" && !strings.HasPrefix(body, "{") {
				t.Errorf("the page is open to %s", resp.Header.Get("Access-Control-Allow-Origin"))
			}
			if strings.HasPrefix(body, page) || strings.HasPrefix(body, failed) {
				for name, want := range map[string]string{
					"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin",
					"Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "same-origin",
				} {
					if got := resp.Header.Get(name); got != want {
						t.Errorf("%s is %q, want %q", name, got, want)
					}
				}
				if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") {
					t.Errorf("Content-Security-Policy is %q", csp)
				}
			}
		})
	}
}

// Two values of a header by which a browser describes a page are refused.
func TestPageHeadersOfVisitsOnce(t *testing.T) {
	e := pageEdge(t, gateway.Options{})
	for _, header := range []string{"Origin", "Sec-Fetch-Site"} {
		req, err := http.NewRequest(http.MethodPost, e.url+"/furl/sessions", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header["Origin"] = []string{e.url}
		req.Header[header] = []string{e.url, "https://evil.example"}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("two of %s: %d", header, resp.StatusCode)
		}
	}
}

// Without a page, its paths reach no provider either.
func TestWithoutPage(t *testing.T) {
	e := newEdge(t, nil)
	for _, path := range []string{"/furl/sessions", "/furl/login", "/furl/assets/a.css", "/furl%2Fx"} {
		if resp, body := e.visit(t, "GET", path); resp.StatusCode != http.StatusNotFound || len(e.provider.taken()) != 0 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	if _, body := e.visit(t, "GET", "/"); !strings.HasPrefix(body, "This is the gateway of furl.") {
		t.Errorf("the root is %s", body)
	}
}

// With client keys, a visitor logs in once; the cookie opens the page and nothing else.
func TestPageLogin(t *testing.T) {
	e := pageEdge(t, gateway.Options{ClientKeys: []string{keyAnn, keyBob}, OperatorKeys: []string{operatorKey}})
	resp, _ := e.visit(t, "GET", "/furl/sessions/one?at=9")
	if want := "/furl/login?to=%2Ffurl%2Fsessions%2Fone%3Fat%3D9"; resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != want {
		t.Errorf("without a login: %d %q, want %q", resp.StatusCode, resp.Header.Get("Location"), want)
	}
	if resp, body := e.visit(t, "GET", "/furl/login?to=/furl/sessions"); resp.StatusCode != http.StatusOK || !strings.Contains(body, `value="/furl/sessions"`) || !strings.Contains(body, "login true false") {
		t.Errorf("the form: %d %s", resp.StatusCode, body)
	}
	for _, tt := range []struct {
		key, message string
		status       int
	}{
		{"", "no client key", 401},
		{"planted-wrong-key", "unknown client key", 401},
		{keyAnn + "x", "unknown client key", 401},
		{operatorKey, "the operator key is for metrics", 403},
	} {
		resp, body := e.visitWith(t, "POST", "/furl/login", url.Values{"key": {tt.key}, "to": {"/furl/x"}}, "Origin", "OWN")
		if resp.StatusCode != tt.status || len(resp.Cookies()) != 0 || !strings.Contains(body, tt.message) || !strings.Contains(body, `value="/furl/x"`) || tt.key != "" && strings.Contains(body, tt.key) {
			t.Errorf("login with %q: %d %v %s", tt.key, resp.StatusCode, resp.Cookies(), body)
		}
	}
	for name, headers := range map[string][]string{
		"another site":  {"Origin", "https://evil.example"},
		"no headers":    {},
		"another port":  {"Origin", "http://127.0.0.1:3000", "Sec-Fetch-Site", "same-site"},
		"user's action": {"Sec-Fetch-Site", "none"},
	} {
		if resp, body := e.visitWith(t, "POST", "/furl/login", url.Values{"key": {keyAnn}}, headers...); resp.StatusCode != http.StatusForbidden || len(resp.Cookies()) != 0 {
			t.Errorf("login by %s: %d %s", name, resp.StatusCode, body)
		}
	}
	if resp, _ := e.visit(t, "POST", "/furl/login?key="+keyAnn, "Origin", "OWN"); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a key in the address is accepted: %d", resp.StatusCode)
	}
	resp, _ = e.visitWith(t, "POST", "/furl/login", url.Values{"key": {" " + keyAnn + "\n"}, "to": {"/furl/sessions/one"}}, "Origin", "OWN")
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/furl/sessions/one" || len(resp.Cookies()) != 1 {
		t.Fatalf("login: %d %v", resp.StatusCode, resp.Header)
	}
	c := resp.Cookies()[0]
	if c.Name != "furl-page" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge != 12*60*60 || c.Secure || c.Domain != "" {
		t.Errorf("the cookie is %v", c)
	}
	if strings.Contains(c.Value, "planted") {
		t.Errorf("the cookie contains the key: %s", c.Value)
	}
	for name, tt := range map[string]struct {
		method, path string
		headers      []string
		status       int
	}{
		"the root":                   {"GET", "/", nil, 200},
		"a path":                     {"GET", "/furl/sessions", nil, 200},
		"a POST of the page":         {"POST", "/furl/sessions", []string{"Origin", "OWN"}, 200},
		"the form":                   {"GET", "/furl/login?to=/furl/x", nil, 303},
		"a POST without an origin":   {"POST", "/furl/sessions", nil, 403},
		"a POST of another port":     {"POST", "/furl/sessions", []string{"Origin", "http://127.0.0.1:3000"}, 403},
		"a POST with a wrong key":    {"POST", "/furl/sessions", []string{"X-Furl-Key", "planted-wrong-key"}, 401},
		"under another name":         {"GET", "/furl/sessions", []string{"Host", "evil.example"}, 403},
		"furl's API":                 {"GET", "/furl/v1/sessions", nil, 401},
		"a change by furl's API":     {"POST", "/furl/v1/sessions/latest/reduce", []string{"Origin", "OWN"}, 401},
		"metrics":                    {"GET", "/metrics", nil, 401},
		"the provider":               {"GET", "/v1/models", nil, 401},
		"a request to a model":       {"POST", "/v1/messages", []string{"Origin", "OWN"}, 401},
		"the page's path, elsewhere": {"GET", "/anthropic/furl/sessions", nil, 401},
	} {
		resp, body := e.visit(t, tt.method, tt.path, append([]string{"Cookie", "theme=dark; " + cookie(c)}, tt.headers...)...)
		if resp.StatusCode != tt.status || len(e.provider.taken()) != 0 {
			t.Errorf("%s with the cookie: %d, want %d: %s", name, resp.StatusCode, tt.status, body)
		}
		if tt.status == 200 && !strings.Contains(body, "loggedIn=true") {
			t.Errorf("%s with the cookie: %s", name, body)
		}
	}
	// A key in the header does without a login, and proves that no other site sends it.
	for _, method := range []string{"GET", "POST"} {
		if resp, body := e.visit(t, method, "/furl/sessions", "X-Furl-Key", keyBob); resp.StatusCode != 200 || !strings.Contains(body, "loggedIn=false") {
			t.Errorf("%s with a key in the header: %d %s", method, resp.StatusCode, body)
		}
	}
	if resp, _ := e.visit(t, "GET", "/furl/sessions?key="+keyAnn); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("a key in the address: %d", resp.StatusCode)
	}
	resp, _ = e.visit(t, "POST", "/furl/logout", "Origin", "OWN", "Cookie", cookie(c))
	if gone := resp.Cookies(); resp.Header.Get("Location") != "/furl/login" || len(gone) != 1 || gone[0].Name != c.Name || gone[0].MaxAge >= 0 || gone[0].Path != "/" {
		t.Errorf("logout: %v", resp.Header)
	}
	if resp, _ := e.visit(t, "POST", "/furl/logout", "Origin", "https://evil.example", "Cookie", cookie(c)); resp.StatusCode != 403 {
		t.Errorf("logout by another site: %d", resp.StatusCode)
	}
	if resp, _ := e.visit(t, "GET", "/furl/logout", "Cookie", cookie(c)); len(resp.Cookies()) != 0 {
		t.Errorf("a GET logs out")
	}
}

// A proxy in front that terminates TLS makes the cookie one for TLS only.
func TestPageLoginByTLS(t *testing.T) {
	e := pageEdge(t, gateway.Options{ClientKeys: []string{keyAnn}})
	resp, _ := e.visitWith(t, "POST", "/furl/login", url.Values{"key": {keyAnn}}, "Origin", strings.Replace(e.url, "http:", "https:", 1), "X-Forwarded-Proto", "https")
	if c := resp.Cookies(); len(c) != 1 || !c[0].Secure {
		t.Errorf("%d %v", resp.StatusCode, c)
	}
}

// The cookie is valid on every gateway with the same keys until it expires, and on no
// other. Changing anything in it makes it invalid.
func TestPageCookie(t *testing.T) {
	c := newClock()
	with := func(o gateway.Options) *edge {
		o.Now = c.now
		return pageEdge(t, o)
	}
	secret := []byte("0123456789abcdef")
	e := with(gateway.Options{ClientKeys: []string{keyAnn, keyBob}})
	ann := e.logIn(t, "key", keyAnn)
	c.pass(time.Second)
	bob := e.logIn(t, "key", keyBob)
	opens := func(e *edge, value string) bool {
		resp, body := e.visit(t, "GET", "/furl/x", "Cookie", "furl-page="+value)
		if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", value, resp.StatusCode, body)
		}
		return resp.StatusCode == http.StatusOK
	}
	if !opens(e, ann.Value) || !opens(e, bob.Value) || !opens(e, "invalid; furl-page="+ann.Value) {
		t.Fatal("a valid cookie is refused")
	}
	for name, other := range map[string]struct {
		gateway  *edge
		ann, bob bool
	}{
		"another replica":           {with(gateway.Options{ClientKeys: []string{keyBob, "planted-key-3", keyAnn}}), true, true},
		"Ann's key removed":         {with(gateway.Options{ClientKeys: []string{keyBob}}), false, true},
		"all keys changed":          {with(gateway.Options{ClientKeys: []string{"planted-key-3"}}), false, false},
		"tenants turned on":         {with(gateway.Options{ClientKeys: []string{keyAnn, keyBob}, TenantSecret: secret}), false, false},
		"tenants by the credential": {with(gateway.Options{TenantSecret: secret}), false, false},
	} {
		if a, b := opens(other.gateway, ann.Value), opens(other.gateway, bob.Value); a != other.ann || b != other.bob {
			t.Errorf("%s: the cookies of Ann and Bob are valid: %v, %v; want %v, %v", name, a, b, other.ann, other.bob)
		}
	}
	parts := strings.Split(ann.Value, ".")
	if len(parts) != 3 {
		t.Fatalf("the cookie is %s", ann.Value)
	}
	for name, value := range map[string]string{
		"empty": "", "dots": "..", "no hash": parts[0] + "." + parts[1] + ".", "hash only": parts[2],
		"later":           "9" + parts[0] + "." + parts[1] + "." + parts[2],
		"another tenant":  parts[0] + ".x." + parts[2],
		"another part":    parts[0] + "..x." + parts[2],
		"a shorter hash":  ann.Value[:len(ann.Value)-1],
		"another hash":    parts[0] + "." + parts[1] + "." + strings.Split(bob.Value, ".")[2],
		"a longer hash":   ann.Value + "A",
		"no expiry":       "." + parts[1] + "." + parts[2],
		"a negative time": "-" + ann.Value,
		"behind many":     strings.Repeat("x; furl-page=", 50) + ann.Value,
	} {
		if opens(e, value) {
			t.Errorf("%s: %q is valid", name, value)
		}
	}
	c.pass(12*time.Hour - 2*time.Second)
	if !opens(e, ann.Value) {
		t.Error("it expires too early")
	}
	c.pass(time.Second)
	if opens(e, ann.Value) {
		t.Error("it does not expire")
	}
}

// After a login the browser goes to the page and to no other site.
func TestPageLoginTarget(t *testing.T) {
	e := pageEdge(t, gateway.Options{ClientKeys: []string{keyAnn}})
	c := e.logIn(t, "key", keyAnn)
	for to, want := range map[string]string{
		"":                                   "/",
		"/":                                  "/",
		"/?q=a%26b":                          "/?q=a%26b",
		"/furl/sessions/s1?at=9&q=%2F%2F":    "/furl/sessions/s1?at=9&q=%2F%2F",
		"/furl/sessions/a%20b":               "/furl/sessions/a%20b",
		"//evil.example":                     "/",
		"///evil.example/furl/x":             "/",
		`/\evil.example`:                     "/",
		`\\evil.example`:                     "/",
		`/furl/\..\\evil.example`:            "/",
		"/\t/evil.example":                   "/",
		"/\n/evil.example":                   "/",
		"/furl/x\r\nSet-Cookie: a=b":         "/",
		" //evil.example":                    "/",
		"https://evil.example/furl/x":        "/",
		"https:/furl/x":                      "/",
		"javascript:alert(1)":                "/",
		"furl/x":                             "/",
		"@evil.example":                      "/",
		"/@evil.example":                     "/",
		"//user@evil.example/furl/x":         "/",
		"/v1/models":                         "/",
		"/furl/v1/sessions":                  "/",
		"/%2F/evil.example":                  "/",
		"/furl%2F..%2F..%2Fevil":             "/furl%2F..%2F..%2Fevil",
		"/furl/../..//evil.example":          "/evil.example",
		"/furl/" + strings.Repeat("x", 3000): "/",
	} {
		resp, _ := e.visitWith(t, "POST", "/furl/login", url.Values{"key": {keyAnn}, "to": {to}}, "Origin", "OWN")
		if got := resp.Header.Get("Location"); got != want {
			t.Errorf("login with to=%q goes to %q, want %q", to, got, want)
		}
		resp, _ = e.visit(t, "GET", "/furl/login?"+url.Values{"to": {to}}.Encode(), "Cookie", cookie(c))
		if got := resp.Header.Get("Location"); got != want {
			t.Errorf("the form with to=%q goes to %q, want %q", to, got, want)
		}
	}
}

// Requests without a login that are not for a document get an error and not the form.
func TestPageTurnsAway(t *testing.T) {
	e := pageEdge(t, gateway.Options{ClientKeys: []string{keyAnn}})
	form := func(to string) string { return "/furl/login?" + url.Values{"to": {to}}.Encode() }
	for name, tt := range map[string]struct {
		method             string
		headers            []string
		status             int
		location, redirect string
	}{
		"a document":                     {"GET", []string{"Sec-Fetch-Mode", "navigate"}, 303, form("/furl/x?q=1"), ""},
		"a form":                         {"POST", []string{"Origin", "OWN", "Referer", "OWN/furl/sessions/s?at=3"}, 303, form("/furl/sessions/s?at=3"), ""},
		"a form of nowhere":              {"POST", []string{"Origin", "OWN"}, 303, form("/"), ""},
		"a form with a wrong referrer":   {"POST", []string{"Origin", "OWN", "Referer", "https://evil.example/furl/x"}, 303, form("/"), ""},
		"fetch":                          {"GET", []string{"Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-origin"}, 401, "", ""},
		"a program":                      {"GET", []string{"Accept", "*/*"}, 401, "", ""},
		"a stream":                       {"GET", []string{"Accept", "text/event-stream"}, 401, "", ""},
		"a wrong key":                    {"GET", []string{"X-Furl-Key", "planted-wrong-key"}, 401, "", ""},
		"htmx":                           {"GET", []string{"HX-Request", "true", "HX-Current-URL", "OWN/furl/sessions/s?at=3#m5"}, 401, "", form("/furl/sessions/s?at=3")},
		"htmx at another site":           {"POST", []string{"Origin", "OWN", "HX-Request", "true", "HX-Current-URL", "https://evil.example/furl/x"}, 401, "", form("/")},
		"a credential that is not a key": {"GET", []string{"Authorization", "Bearer planted-wrong-key"}, 303, form("/furl/x?q=1"), ""},
	} {
		resp, body := e.visit(t, tt.method, "/furl/x?q=1", tt.headers...)
		if resp.StatusCode != tt.status || resp.Header.Get("Location") != tt.location || resp.Header.Get("HX-Redirect") != tt.redirect {
			t.Errorf("%s: %d %v\n%s", name, resp.StatusCode, resp.Header, body)
		}
	}
}

// Each tenant sees its own sessions in the page, whatever identifies it, by the login
// and by headers.
func TestPageTenants(t *testing.T) {
	secret := []byte("0123456789abcdef")
	keys := []string{keyAnn, keyBob}
	for _, tt := range []struct {
		name           string
		o              gateway.Options
		fields         string
		login, headers []string
		tenant         furl.Tenant
		refused        map[string]int // of other values of the last field
	}{
		{"key", gateway.Options{ClientKeys: keys}, "login true false", []string{"key", keyAnn}, []string{"X-Furl-Key", keyAnn},
			gateway.TenantOf(secret, keyAnn), map[string]int{"": 401, companyKey: 401}},
		{"credential", gateway.Options{OperatorKeys: []string{operatorKey}}, "login false false", []string{"key", companyKey}, []string{"X-Api-Key", companyKey},
			gateway.TenantOf(secret, "", companyKey), map[string]int{"": 401, oauthToken: 403, operatorKey: 403}},
		{"credential and keys", gateway.Options{ClientKeys: keys, TenantBy: gateway.TenantByCredential}, "login true true",
			[]string{"key", keyAnn, "credential", companyKey}, []string{"X-Furl-Key", keyAnn, "Authorization", "Bearer " + companyKey},
			gateway.TenantOf(secret, "", companyKey), map[string]int{"": 401, oauthToken: 403}},
		{"both", gateway.Options{ClientKeys: keys, TenantBy: gateway.TenantByBoth}, "login true true",
			[]string{"key", keyAnn, "credential", companyKey}, []string{"X-Furl-Key", keyAnn, "X-Api-Key", companyKey},
			gateway.TenantOf(secret, keyAnn, companyKey), map[string]int{"": 401, googleToken: 403}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.TenantSecret = secret
			e := pageEdge(t, tt.o)
			if _, body := e.visit(t, "GET", "/furl/login"); !strings.Contains(body, tt.fields) {
				t.Errorf("the form is %s, want %q", body, tt.fields)
			}
			c := e.logIn(t, tt.login...)
			if strings.Contains(c.Value, "planted") {
				t.Errorf("the cookie has a key: %s", c.Value)
			}
			want := fmt.Sprintf("tenant=%q", tt.tenant)
			if _, body := e.visit(t, "GET", "/furl/x", "Cookie", cookie(c)); !strings.Contains(body, want+" loggedIn=true") {
				t.Errorf("with the cookie: %s, want %s", body, want)
			}
			if _, body := e.visit(t, "GET", "/furl/x", tt.headers...); !strings.Contains(body, want+" loggedIn=false") {
				t.Errorf("with headers: %s, want %s", body, want)
			}
			if resp, _ := e.visit(t, "GET", "/furl/v1/sessions", "Cookie", cookie(c)); resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("furl's API with the cookie: %d", resp.StatusCode)
			}
			for value, status := range tt.refused {
				form := url.Values{}
				for i := 0; i+1 < len(tt.login); i += 2 {
					form.Set(tt.login[i], tt.login[i+1])
				}
				form.Set(tt.login[len(tt.login)-2], value)
				if resp, body := e.visitWith(t, "POST", "/furl/login", form, "Origin", "OWN"); resp.StatusCode != status || len(resp.Cookies()) != 0 {
					t.Errorf("login with %v: %d, want %d: %s", form, resp.StatusCode, status, body)
				}
			}
			if resp, _ := e.visit(t, "GET", "/furl/x", "Authorization", "Basic bWFkZTp1cA=="); resp.StatusCode != http.StatusSeeOther {
				t.Errorf("the password of a proxy: %d, want the form", resp.StatusCode)
			}
		})
	}
}

// A visitor sees the sessions that the same key has recorded, and no others.
func TestPageSeesOnlyItsTenant(t *testing.T) {
	secret := []byte("0123456789abcdef")
	e := newEdge(t, &gateway.Options{ClientKeys: []string{keyAnn, keyBob}, TenantSecret: secret, Page: sessionsPage{}})
	for _, key := range []string{keyAnn, keyBob} {
		body := fmt.Sprintf(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"from %s"}]}`, key)
		if resp, _ := e.send(t, "POST", "/v1/messages", "", body, "X-Furl-Key", key, "X-Furl-Session", "of-"+key); resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status)
		}
	}
	for _, key := range []string{keyAnn, keyBob} {
		_, body := e.visit(t, "GET", "/furl/x", "Cookie", cookie(e.logIn(t, "key", key)))
		if want := "sessions: of-" + key; body != want {
			t.Errorf("%s sees %q, want %q", key, body, want)
		}
	}
}

// sessionsPage lists the sessions.
type sessionsPage struct{ testPage }

func (sessionsPage) ServePage(w http.ResponseWriter, r *http.Request, v gateway.Visit) {
	fmt.Fprint(w, "sessions:")
	for info, err := range v.Sessions.List(r.Context(), storage.SessionQuery{}) {
		if err != nil {
			fmt.Fprint(w, err)
		}
		fmt.Fprint(w, " ", info.Session)
	}
}

// The cookie of the page does not reach a provider, and other cookies do, unchanged.
func TestPageCookieStays(t *testing.T) {
	for _, page := range []gateway.Page{testPage{}, nil} {
		e := newEdge(t, &gateway.Options{Page: page})
		for name, tt := range map[string]struct{ cookies, want []string }{
			"alone":       {[]string{"furl-page=planted"}, nil},
			"with others": {[]string{`a=1; furl-page=planted;b="2 3"`}, []string{`a=1;b="2 3"`}},
			"twice":       {[]string{"furl-page=planted; a=1; furl-page=planted-2"}, []string{"a=1"}},
			"two lines":   {[]string{"a=1", " furl-page = planted ; b=2"}, []string{"a=1", "b=2"}},
			"none":        {[]string{"a=1;  b"}, []string{"a=1;  b"}},
			"alike":       {[]string{"xfurl-page=1; furl-pages=2"}, []string{"xfurl-page=1; furl-pages=2"}},
		} {
			for _, path := range []string{"/v1/messages", "/v1/files"} {
				req, err := http.NewRequest(http.MethodPost, e.url+path, strings.NewReader(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`))
				if err != nil {
					t.Fatal(err)
				}
				req.Header["Cookie"] = tt.cookies
				req.Header.Set("Anthropic-Version", "2023-06-01")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				reached := e.provider.taken()
				if len(reached) != 1 || !slices.Equal(reached[0].Header["Cookie"], tt.want) {
					t.Errorf("%s, %s: %d requests, cookies %q, want %q", name, path, len(reached), reached[0].Header["Cookie"], tt.want)
				}
			}
		}
	}
}

// A gateway with a page needs no provider: it serves its stored sessions, and refuses
// requests to models.
func TestPageWithoutProviders(t *testing.T) {
	store := inmem.New()
	defer store.Close()
	sessions, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.New(sessions, gateway.Upstreams{}, nil); !errors.Is(err, gateway.ErrNoUpstream) {
		t.Error("a gateway without a provider and a page starts")
	}
	g, err := gateway.New(sessions, gateway.Upstreams{}, &gateway.Options{Page: testPage{}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	front := httptest.NewServer(g)
	defer front.Close()
	e := &edge{url: front.URL}
	for _, tt := range []struct {
		method, path string
		headers      []string
		status       int
		want         string
	}{
		{"GET", "/", nil, 200, "page GET /"},
		{"GET", "/furl/v1/status", nil, 200, `"version"`},
		{"GET", "/", []string{"Accept", "*/*"}, 404, "no provider is configured"},
		{"POST", "/v1/messages", nil, 404, "no provider is configured"},
		{"POST", "/v1/chat/completions", nil, 404, "no provider is configured"},
		{"POST", "/openai/v1/responses", []string{"Authorization", "Bearer made-up"}, 404, "no provider is configured"},
		{"GET", "/v1/models", []string{"Api-Key", "made-up"}, 404, "no provider is configured"},
		{"GET", "/what", nil, 404, "no provider is configured"},
	} {
		if resp, body := e.visit(t, tt.method, tt.path, tt.headers...); resp.StatusCode != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, resp.StatusCode, body)
		}
	}
}

// Streams of the page end when the gateway stops.
func TestPageStreamsEnd(t *testing.T) {
	store := inmem.New()
	defer store.Close()
	sessions, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(sessions, gateway.Upstreams{}, &gateway.Options{Page: testPage{}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	front := httptest.NewServer(g)
	defer front.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL+"/furl/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	g.Drain()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "data: end\n\n" {
		t.Errorf("the stream ends with %q, %v", body, err)
	}
}

// Refused logins are logged without keys, and not so often that they fill the log.
func TestPageDeniedIsLogged(t *testing.T) {
	var log strings.Builder
	c := newClock()
	store := inmem.New()
	defer store.Close()
	sessions, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(sessions, gateway.Upstreams{}, &gateway.Options{
		ClientKeys: []string{"planted-key"}, Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: c.now, Page: testPage{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	post := func() {
		r := httptest.NewRequest("POST", "http://127.0.0.1/furl/login", strings.NewReader("key=planted-wrong-key&to=/furl/planted"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://127.0.0.1")
		g.ServeHTTP(httptest.NewRecorder(), r)
	}
	for range 9 {
		post()
	}
	c.pass(time.Second)
	post()
	got := log.String()
	if strings.Count(got, "\n") != 2 || !strings.Contains(got, "path=/furl/login status=401 by=furl") || !strings.Contains(got, "others=8") || strings.Contains(got, "planted") {
		t.Errorf("the log says %q", got)
	}
}

// countingPage counts the requests for each path that reach the page or its form.
type countingPage struct {
	testPage

	mu    sync.Mutex
	count map[string]int
}

func (p *countingPage) add(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count == nil {
		p.count = make(map[string]int)
	}
	p.count[path]++
}

func (p *countingPage) of(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[path]
}

func (p *countingPage) ServePage(w http.ResponseWriter, r *http.Request, v gateway.Visit) {
	p.add(r.URL.Path)
	p.testPage.ServePage(w, r, v)
}

func (p *countingPage) ServeLogin(w http.ResponseWriter, r *http.Request, status int, to, message string) {
	p.add(to)
	p.testPage.ServeLogin(w, r, status, to, message)
}

// In a browser, a link of another site opens the page for somebody who has logged in,
// although the browser sends no cookie with it, and the page's form logs in. A frame of
// another site shows nothing.
func TestPageLoginInABrowser(t *testing.T) {
	counts := &countingPage{}
	e := newEdge(t, &gateway.Options{ClientKeys: []string{keyAnn}, Page: counts})
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>other</title><a href="%[1]s/furl/sessions/one?at=9">link</a><iframe src="%[1]s/furl/sessions/framed"></iframe>`, e.url)
	}))
	defer other.Close()
	// The browser knows this machine by another name than the gateway's, so the sites differ.
	address := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	b := browsertest.OpenURL(t, address)
	text := func() string {
		return browsertest.Eval[string](b, "document.body.innerText + location.pathname + location.search")
	}
	b.Click("a")
	b.Wait("document.forms.length == 1")
	if got := text(); !strings.Contains(got, "/furl/login?to=%2Ffurl%2Fsessions%2Fone%3Fat%3D9") {
		t.Fatalf("before the login, the link opens %s", got)
	}
	b.Click("input[name=key]")
	b.Key(keyAnn + kb.Enter)
	b.Wait("document.body.innerText.startsWith('page')")
	if got := text(); !strings.Contains(got, "loggedIn=true") || !strings.HasSuffix(got, "/furl/sessions/one?at=9") {
		t.Fatalf("after the login: %s", got)
	}
	b.Do(chromedp.Navigate(address))
	if n := counts.of("/furl/sessions/framed"); n != 0 {
		t.Errorf("%d requests of a frame reached the page", n)
	}
	b.Click("a")
	b.Wait("document.body.innerText.startsWith('page')")
	if got := text(); !strings.Contains(got, "loggedIn=true") || !strings.HasSuffix(got, "/furl/sessions/one?at=9") {
		t.Errorf("with the login, the link opens %s", got)
	}
}
