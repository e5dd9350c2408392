package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/internal/dev/oidctest"
)

// A client sends requests with a token of the configured issuer, and a person sees its
// sessions on the page after logging in with a token. furl doctor checks the issuer.
func TestTokensOfAnIssuer(t *testing.T) {
	provider, upstream := newHeld(t)
	provider.release()
	issuer, key := oidctest.New(t), oidctest.NewKey(t)
	issuer.Keys["1"] = key
	token := func(tenant, audience string) string {
		return oidctest.Sign(t, key, "1", "RS256", map[string]any{"iss": issuer.URL, "aud": audience, "sub": tenant, "exp": time.Now().Add(time.Hour).Unix()})
	}
	home := t.TempDir()
	file := filepath.Join(home, "furl.yaml")
	settings(t, file, "gateway: {openai: none, anthropic: "+upstream+", tenants: true, oidc: {issuer: '"+issuer.URL+"', audience: furl}}\n")
	p := serve(t, home, "--store", home+"/furl.db", "--config", file)
	req, err := http.NewRequest(http.MethodPost, p.url+"/v1/messages", strings.NewReader(streamed))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"X-Furl-Key": token("ann", "furl"), "X-Api-Key": "k", "Anthropic-Version": "2023-06-01", "Content-Type": "application/json"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	id := resp.Header.Get("X-Furl-Session")
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || id == "" {
		t.Fatal(resp.Status, id, err)
	}
	sees := func(token string) bool {
		t.Helper()
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Jar: jar}
		post, err := http.NewRequest(http.MethodPost, p.url+"/furl/login", strings.NewReader(url.Values{"key": {token}, "to": {"/"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		post.Header.Set("Origin", p.url)
		post.Header.Set("Accept", "text/html")
		resp, err := client.Do(post)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(body, []byte("/furl/sessions/"+id))
	}
	if !sees(token("ann", "furl")) || sees(token("bob", "furl")) || sees(token("ann", "other")) {
		t.Error("the page shows the session to others than its tenant")
	}
	doctor := func() string {
		out, _ := furlCommand(home, "doctor", "--gateway", p.url, "--config", file).CombinedOutput() // other checks may complain
		return string(out)
	}
	if out := doctor(); !strings.Contains(out, "ok       token issuer: "+issuer.URL+" responds, with 1 key") {
		t.Errorf("furl doctor says\n%s", out)
	}
	issuer.Set(func() { issuer.Ahead = time.Hour })
	if out := doctor(); !strings.Contains(out, "this machine's clock and the token issuer's differ by about 1h0m0s") {
		t.Errorf("with another clock, furl doctor says\n%s", out)
	}
	issuer.Set(func() { issuer.Name = "https://login.example" })
	if out := doctor(); !strings.Contains(out, "problem  token issuer: ") || !strings.Contains(out, "set gateway.oidc.issuer to the name in the tokens' claim iss") {
		t.Errorf("with another name, furl doctor says\n%s", out)
	}
	issuer.Close()
	if out := doctor(); !strings.Contains(out, "problem  token issuer: cannot connect to "+issuer.URL+", so tokens with new keys are refused: connection refused") {
		t.Errorf("without the issuer, furl doctor says\n%s", out)
	}
}
