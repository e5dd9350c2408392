package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// page is a server whose page says the cookies it was requested with, and sets one.
func page(t *testing.T, body string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			http.SetCookie(w, &http.Cookie{Name: "set", Value: "1"})
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `<!doctype html><title>t</title><link rel="icon" href="/icon.svg"><p id="cookies">cookies: %s</p>%s`, r.Header.Get("Cookie"), body)
		case "/icon.svg":
			w.Header().Set("Content-Type", "image/svg+xml")
			fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg"/>`)
		default:
			fmt.Fprint(w, "a file")
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestDrive(t *testing.T) {
	server := page(t, `<button>press</button><input autofocus><p id="late"></p><script>
		document.querySelector("button").onclick = () => { fetch("/file").then((r) => r.text()).then((s) => { document.querySelector("#late").textContent = s }) }
	</script>`)
	dir := t.TempDir()
	t.Setenv("FURL_SCREENSHOTS", dir)
	for range 2 { // two tests share the browser and nothing else
		p := OpenURL(t, server.URL)
		if got := p.Text("#cookies"); got != "cookies:" {
			t.Errorf("the page was requested with %q", got)
		}
		p.Throttle(2)
		p.Click("button")
		p.Wait(`document.querySelector("#late").textContent == "a file"`)
		p.Click("input")
		p.Key("abc")
		p.Wait(`document.querySelector("input").value == "abc"`)
		p.Screenshot("folder/drive")
		p.Silent()
		p.Click("button")
		p.Leave(`location.reload()`)
		p.Wait(`document.querySelector("#cookies").textContent == "cookies: set=1"`)
	}
	png, err := os.ReadFile(filepath.Join(dir, "folder", "drive.png"))
	if err != nil || !strings.HasPrefix(string(png), "\x89PNG") {
		t.Errorf("the screenshot: %.10q, %v", png, err)
	}
}

// What a page of a server says and what it requests elsewhere is noticed.
func TestNoises(t *testing.T) {
	other := page(t, "")
	server := page(t, `<img src="`+other.URL+`/icon.svg"><script>console.log("hello"); setTimeout(() => { throw new Error("thrown") })</script>`)
	p := OpenURL(t, server.URL)
	p.Wait(`document.images[0].complete`)
	p.Drawn()
	got := p.noises()
	for _, want := range []string{"console log", "thrown", "not of the page's origin " + server.URL} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%q does not contain %q", got, want)
		}
	}
}
