package certs_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/furlhq/furl/internal/certs"
	"github.com/furlhq/furl/internal/dev/certstest"
)

// Files that a server cannot use are errors that name the file and the reason.
func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	ca := certstest.NewAuthority(t, "ca")
	cert, key := ca.Issue(t, "furl", time.Hour)
	old, oldKey := ca.Issue(t, "furl", -time.Minute)
	file := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		certstest.Write(t, name, data)
		return name
	}
	good, goodKey := file("cert.pem", cert), file("key.pem", key)
	for name, tt := range map[string]struct {
		files certs.Files
		want  string
	}{
		"no certificate":    {certs.Files{Cert: filepath.Join(dir, "none.pem"), Key: goodKey}, "none.pem: no such file"},
		"no key":            {certs.Files{Cert: good, Key: filepath.Join(dir, "none.pem")}, "private key: stat"},
		"not PEM":           {certs.Files{Cert: file("text.pem", []byte("text")), Key: goodKey}, "text.pem"},
		"key of another":    {certs.Files{Cert: good, Key: file("other.pem", oldKey)}, "private key does not match public key"},
		"expired":           {certs.Files{Cert: file("old.pem", old), Key: file("oldkey.pem", oldKey)}, "expired at"},
		"authority not PEM": {certs.Files{Cert: good, Key: goodKey, ClientCA: file("ca.pem", []byte("x"))}, "ca.pem has no certificate in PEM"},
		"too large":         {certs.Files{Cert: file("big.pem", make([]byte, 1<<20+1)), Key: goodKey}, "too large"},
	} {
		if _, err := certs.Load(tt.files, time.Now()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := certs.Load(certs.Files{Cert: good, Key: goodKey}, time.Now().Add(-48*time.Hour)); err == nil || !strings.Contains(err.Error(), "check the clock") {
		t.Errorf("a certificate of the future: %v", err)
	}
	if os.Geteuid() != 0 { // root reads every file
		if err := os.Chmod(good, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := certs.Load(certs.Files{Cert: good, Key: goodKey}, time.Now()); err == nil || !strings.Contains(err.Error(), "let the user that runs furl read it") {
			t.Errorf("an unreadable certificate: %v", err)
		}
	}
}

// New connections get a replaced certificate. Open ones continue, and a certificate
// that cannot be loaded changes nothing.
func TestRefresh(t *testing.T) {
	dir := t.TempDir()
	ca := certstest.NewAuthority(t, "ca")
	files := certs.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	write := func(name string) {
		cert, key := ca.Issue(t, name, time.Hour)
		certstest.Write(t, files.Cert, cert)
		certstest.Write(t, files.Key, key)
	}
	write("first")
	pair, err := certs.Load(files, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	server := certs.NewServer(pair)
	addr := listen(t, server)
	dial := func() *tls.Conn {
		t.Helper()
		c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	first := dial()
	if changed, err := server.Refresh(time.Now()); changed || err != nil {
		t.Fatalf("nothing has changed: %v, %v", changed, err)
	}
	certstest.Write(t, files.Key, []byte("half written"))
	if changed, err := server.Refresh(time.Now()); changed || err == nil {
		t.Errorf("a broken key: %v, %v", changed, err)
	}
	if got := name(dial()); got != "first" {
		t.Errorf("after a broken key the certificate is %s", got)
	}
	write("second")
	if changed, err := server.Refresh(time.Now()); !changed || err != nil {
		t.Fatalf("a new certificate: %v, %v", changed, err)
	}
	if got := name(dial()); got != "second" {
		t.Errorf("a new connection gets %s", got)
	}
	if _, err := io.WriteString(first, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if n, err := first.Read(make([]byte, 100)); n == 0 || err != nil {
		t.Errorf("the open connection gives %d bytes, %v", n, err)
	}
}

// A client certificate must be of the authority, also after that was replaced.
func TestClientCertificates(t *testing.T) {
	dir := t.TempDir()
	ca, clients, others := certstest.NewAuthority(t, "ca"), certstest.NewAuthority(t, "clients"), certstest.NewAuthority(t, "others")
	files := certs.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), ClientCA: filepath.Join(dir, "clients.pem")}
	cert, key := ca.Issue(t, "furl", time.Hour)
	certstest.Write(t, files.Cert, cert)
	certstest.Write(t, files.Key, key)
	certstest.Write(t, files.ClientCA, clients.PEM)
	pair, err := certs.Load(files, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	server := certs.NewServer(pair)
	addr := listen(t, server)
	cache := tls.NewLRUClientSessionCache(8)
	get := func(certs ...tls.Certificate) error {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), Certificates: certs, ClientSessionCache: cache}}}
		resp, err := client.Get("https://" + addr + "/")
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	ann, eve := clients.Client(t, "ann"), others.Client(t, "eve")
	if err := get(ann); err != nil {
		t.Errorf("a client of the authority: %v", err)
	}
	if get(eve) == nil || get() == nil {
		t.Error("a client of another authority, or without a certificate, is accepted")
	}
	certstest.Write(t, files.ClientCA, others.PEM)
	if changed, err := server.Refresh(time.Now()); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if get(ann) == nil {
		t.Error("a client of the replaced authority is accepted")
	}
	if err := get(eve); err != nil {
		t.Errorf("a client of the new authority: %v", err)
	}
}

// A revoked certificate is refused: in new connections, and with the next request of an open
// one. Lists that cannot be used are errors, and the previous one stays.
func TestRevokedClients(t *testing.T) {
	dir := t.TempDir()
	ca, clients, others := certstest.NewAuthority(t, "ca"), certstest.NewAuthority(t, "clients"), certstest.NewAuthority(t, "others")
	files := certs.Files{
		Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), ClientCA: filepath.Join(dir, "clients.pem"), ClientCRL: filepath.Join(dir, "crl.pem"),
	}
	cert, key := ca.Issue(t, "furl", time.Hour)
	certstest.Write(t, files.Cert, cert)
	certstest.Write(t, files.Key, key)
	certstest.Write(t, files.ClientCA, clients.PEM)
	certstest.Write(t, files.ClientCRL, clients.Revoke(t, time.Hour))
	pair, err := certs.Load(files, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	server := certs.NewServer(pair)
	addr := listen(t, server)
	client := func(c tls.Certificate) func() (int, error) {
		one := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{c}}}}
		return func() (int, error) {
			resp, err := one.Get("https://" + addr + "/")
			if err != nil {
				return 0, err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return resp.StatusCode, err
		}
	}
	ann, bob := clients.Client(t, "ann"), clients.Client(t, "bob")
	annGets, bobGets := client(ann), client(bob)
	if code, err := annGets(); code != 404 {
		t.Fatal(code, err)
	}
	if code, err := bobGets(); code != 404 {
		t.Fatal(code, err)
	}
	for want, list := range map[string][]byte{
		"expired at": clients.Revoke(t, -time.Hour, ann), "no authority": others.Revoke(t, time.Hour, ann), "no list in PEM": []byte("text"),
	} {
		certstest.Write(t, files.ClientCRL, list)
		if changed, err := server.Refresh(time.Now()); changed || err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "crl.pem") {
			t.Errorf("%s: %v, %v", want, changed, err)
		}
	}
	certstest.Write(t, files.ClientCRL, clients.Revoke(t, time.Hour, ann))
	if changed, err := server.Refresh(time.Now()); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if code, err := annGets(); code != 403 {
		t.Errorf("on an open connection: %d, %v", code, err)
	}
	if code, err := annGets(); err == nil {
		t.Errorf("on a new connection: %d", code)
	}
	if code, err := bobGets(); code != 404 {
		t.Errorf("another client: %d, %v", code, err)
	}
	certstest.Write(t, files.ClientCA, others.PEM)
	certstest.Write(t, files.ClientCRL, others.Revoke(t, time.Hour))
	if changed, err := server.Refresh(time.Now()); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if code, err := bobGets(); code != 403 {
		t.Errorf("an open connection of a removed authority: %d, %v", code, err)
	}
}

// listen serves HTTP with the certificate of a server.
func listen(t *testing.T, s *certs.Server) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: s.Handler(http.NotFoundHandler()), TLSConfig: s.Config(), ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.ServeTLS(ln, "", "") // ends with ErrServerClosed
	}()
	t.Cleanup(func() { srv.Close(); <-done })
	return ln.Addr().String()
}

func name(c *tls.Conn) string { return c.ConnectionState().PeerCertificates[0].Subject.CommonName }

// handlerOf returns a handler that requires client certificates, and a request with one.
func handlerOf(t testing.TB, next http.Handler) (http.Handler, *http.Request) {
	t.Helper()
	dir := t.TempDir()
	ca, clients := certstest.NewAuthority(t, "ca"), certstest.NewAuthority(t, "clients")
	files := certs.Files{
		Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), ClientCA: filepath.Join(dir, "clients.pem"), ClientCRL: filepath.Join(dir, "crl.pem"),
	}
	cert, key := ca.Issue(t, "furl", 2*time.Hour)
	for name, data := range map[string][]byte{files.Cert: cert, files.Key: key, files.ClientCA: clients.PEM, files.ClientCRL: clients.Revoke(t, time.Hour)} {
		certstest.Write(t, name, data)
	}
	pair, err := certs.Load(files, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(clients.Client(t, "ann").Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
	return certs.NewServer(pair).Handler(next), r
}

// A certificate that expires is refused with the next request of an open connection.
func TestExpiredClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, r := handlerOf(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		left := time.Until(r.TLS.PeerCertificates[0].NotAfter)
		for _, tt := range []struct {
			after time.Duration
			want  int
		}{{0, http.StatusOK}, {left - time.Second, http.StatusOK}, {2 * time.Second, http.StatusForbidden}} {
			time.Sleep(tt.after)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != tt.want {
				t.Errorf("%v later: status %d, want %d", tt.after, w.Code, tt.want)
			}
		}
	})
}

// A request on an open connection checks the client's certificate again.
func BenchmarkHandler(b *testing.B) {
	served := 0
	h, r := handlerOf(b, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if served == 0 {
		b.Fatal("the certificate was refused")
	}
}
