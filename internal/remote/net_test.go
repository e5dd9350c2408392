package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Connection errors have different texts and remedies: a proxy that is down is not the
// provider, and a certificate for another name is not an untrusted one.
func TestDoctorTellsConnectionsApart(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler()) // for example.com
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	asking := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	t.Cleanup(asking.Close)
	known := x509.NewCertPool()
	known.AddCert(secure.Certificate())
	via := func(address string) func(*http.Request) (*url.URL, error) {
		return func(*http.Request) (*url.URL, error) { return url.Parse(address) }
	}
	for _, tt := range []struct {
		name, host  string
		proxy       func(*http.Request) (*url.URL, error)
		trust       *tls.Config
		words, cure string
	}{
		{"proxy gone", "provider.example", via(strings.Replace(gone.URL, "http://", "http://mira:planted@", 1)), nil, "the proxy of the environment: connection refused", "HTTPS_PROXY"},
		{"proxy asks", "provider.example", via(asking.URL), nil, "requires authentication", "HTTPS_PROXY"},
		{"other name", "provider.example", nil, &tls.Config{RootCAs: known}, "the certificate is for another host name", "another server may respond"},
		{"not trusted", "example.com", nil, nil, "the certificate is not trusted", "SSL_CERT_FILE"},
		{"expired", "example.com", nil, &tls.Config{RootCAs: known, Time: func() time.Time { return secure.Certificate().NotAfter.Add(time.Hour) }}, "has expired", "clock"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := &http.Transport{Proxy: tt.proxy, TLSClientConfig: tt.trust}
			if tt.proxy == nil {
				tr.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, network, secure.Listener.Addr().String())
				}
			}
			t.Cleanup(tr.CloseIdleConnections)
			resp, err := (&http.Client{Transport: tr}).Get("https://" + tt.host + "/")
			if err == nil {
				resp.Body.Close()
				t.Fatal("it answers")
			}
			if got := NetWords(err); !strings.Contains(got, tt.words) || strings.Contains(got, "planted") {
				t.Errorf("it says %q, want %q", got, tt.words)
			}
			if got := NetCure(err); !strings.Contains(got, tt.cure) {
				t.Errorf("the cure is %q, want %q", got, tt.cure)
			}
		})
	}
}
