package clienttest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/tools/txtar"
)

// capture puts a proxy in front of the gateway, if FURL_CLIENTTEST_CAPTURE names a folder, and writes
// there what the client sends, for make net: a file for each test, as the files in
// gateway/testdata/clients.
func (st *fixture) capture(t *testing.T) {
	dir := os.Getenv("FURL_CLIENTTEST_CAPTURE")
	if dir == "" {
		return
	}
	gateway, err := url.Parse(st.url)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	archive := new(txtar.Archive)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(gateway) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if plain, header := readable(body, r.Header); r.Method == http.MethodPost && !strings.HasPrefix(r.URL.Path, "/furl/") && !bytes.Contains(plain, []byte("\n-- ")) {
			var text bytes.Buffer
			_ = header.Write(&text) // to memory
			fmt.Fprintf(&text, "\n%s\n", plain)
			mu.Lock()
			archive.Files = append(archive.Files, txtar.File{Name: fmt.Sprintf("request %d: - %s %s", len(archive.Files)+1, r.Method, r.URL.RequestURI()), Data: text.Bytes()})
			mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	st.url = server.URL
	t.Cleanup(func() {
		server.Close()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		name := strings.NewReplacer("/", "-", "=", "-").Replace(t.Name()) + ".txtar"
		if err := os.WriteFile(filepath.Join(dir, name), txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

// readable returns a body without compression, and the header for that.
func readable(body []byte, header http.Header) ([]byte, http.Header) {
	header = header.Clone()
	header.Del("Content-Length")
	if header.Get("Content-Encoding") == "zstd" {
		if r, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(64<<20)); err == nil {
			defer r.Close()
			if plain, err := r.DecodeAll(body, nil); err == nil {
				header.Del("Content-Encoding")
				return plain, header
			}
		}
	}
	return body, header
}
