package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/certstest"
)

// The gateway encrypts its connections. A renewed certificate is used after a reload, a
// broken one is refused, and a stream that was begun before continues.
func TestCertificateIsReloaded(t *testing.T) {
	provider, url := newHeld(t)
	home := t.TempDir()
	ca := certstest.NewAuthority(t, "ca")
	certFile, keyFile := filepath.Join(home, "cert.pem"), filepath.Join(home, "key.pem")
	issue := func(name string, until time.Duration) {
		cert, key := ca.Issue(t, name, until)
		certstest.Write(t, certFile, cert)
		certstest.Write(t, keyFile, key)
	}
	issue("first", 100*24*time.Hour)
	file := filepath.Join(home, "furl.yaml")
	settings(t, file, "gateway: {openai: none, anthropic: "+url+", tls: {cert_file: cert.pem, key_file: key.pem}}\n")
	p := serve(t, home, "--store", home+"/furl.db", "--config", file)
	if !strings.HasPrefix(p.url, "https://") {
		t.Fatalf("it listens on %s", p.url)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool()}, ForceAttemptHTTP2: true}}
	t.Cleanup(client.CloseIdleConnections)
	req, err := http.NewRequest(http.MethodPost, p.url+"/v1/messages", strings.NewReader(streamed))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("Content-Type", "application/json")
	stream, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.ProtoMajor != 2 {
		t.Errorf("the protocol is %s", stream.Proto)
	}
	<-provider.stop

	name := func() string {
		t.Helper()
		c, err := tls.Dial("tcp", strings.TrimPrefix(p.url, "https://"), &tls.Config{RootCAs: ca.Pool()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	hang := func(answer string) {
		t.Helper()
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		p.waitFor(t, answer)
	}
	issue("expired", -time.Hour)
	hang("cert.pem expired at")
	certstest.Write(t, keyFile, []byte("broken"))
	cert, _ := ca.Issue(t, "keyless", time.Hour)
	certstest.Write(t, certFile, cert)
	hang("failed to find any PEM data in key input")
	if got := name(); got != "first" {
		t.Errorf("after broken files the certificate is %s", got)
	}
	issue("second", 3*24*time.Hour)
	hang("changed=gateway.tls")
	if got := name(); got != "second" {
		t.Errorf("after a reload the certificate is %s", got)
	}
	resp, err := client.Get(p.url + "/furl/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var st gateway.Status
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil || time.Until(st.CertificateExpires) > 3*24*time.Hour || st.CertificateExpires.IsZero() {
		t.Errorf("the status says %v, %v", st.CertificateExpires, err)
	}
	metrics, err := client.Get(p.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Body.Close()
	if text, err := io.ReadAll(metrics.Body); err != nil || !bytes.Contains(text, []byte("furl_certificate_expires_seconds")) {
		t.Errorf("no expiry in the metrics: %v", err)
	}
	// The doctor trusts the certificate of the configuration.
	doctor := furlCommand(home, "doctor", "--gateway", strings.Replace(p.url, "127.0.0.1", "localhost", 1), "--config", file)
	out, _ := doctor.CombinedOutput() // this certificate is of no authority that the machine knows
	if !bytes.Contains(out, []byte("warning  certificate: expires at")) {
		t.Errorf("furl doctor says\n%s", out)
	}
	provider.release()
	if body, err := io.ReadAll(stream.Body); err != nil || !bytes.Contains(body, []byte("message_stop")) {
		t.Errorf("the stream ended early: %v\n%s", err, body)
	}
}
