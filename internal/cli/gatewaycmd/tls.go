package gatewaycmd

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/furlhq/furl/internal/certs"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/private"
)

// certFiles returns the files of the gateway's certificate.
func certFiles(c *config.Config, file string) certs.Files {
	t := &c.Gateway.TLS
	return certs.Files{
		Cert: config.Beside(file, t.CertFile), Key: config.Beside(file, t.KeyFile), ClientCA: config.Beside(file, t.ClientCAFile),
		ClientCRL: config.Beside(file, t.ClientCRLFile), Optional: t.ClientCert == "optional", ReadKey: private.Read,
	}
}

// useTLS loads the certificate of the configuration. furl run and furl ui have none:
// they serve one person on the loopback interface. So certificates of clients identify
// nobody there, see accessOptions.
func (f *ServeFlags) useTLS(s *Settings, c *config.Config, file string) error {
	if c.Gateway.TLS.CertFile == "" || f.Running || f.only {
		return nil
	}
	pair, err := certs.Load(certFiles(c, file), time.Now())
	if err != nil {
		return fmt.Errorf("gateway.tls: %w", err)
	}
	s.tls = certs.NewServer(pair)
	return nil
}

// certificate returns a function for the gateway's current certificate, nil if its
// connections are not encrypted.
func (s *Settings) certificate() func() *x509.Certificate {
	if s.tls == nil {
		return nil
	}
	return func() *x509.Certificate { return s.tls.Pair().Leaf }
}

// expirySoon is the remaining time of a certificate below which furl doctor warns.
const expirySoon = 14 * 24 * time.Hour

// trust lets the doctor connect with the files of the environment, and to the gateway of
// its own configuration, whose certificate this machine's authorities may not know. It
// checks the files too.
func (d *gatewayDoctor) trust(c *config.Config, file string) {
	trusted, asked, err := clientTLS(d.getenv)
	if err != nil {
		d.found("environment", findingProblem, "correct the variable", "%s", cmdline.Printable(err.Error()))
		return
	}
	defer func() {
		d.asked = asked
		d.own = &http.Client{CheckRedirect: d.http.CheckRedirect, Transport: &http.Transport{TLSClientConfig: trusted}}
	}()
	if c.Gateway.TLS.CertFile == "" {
		return
	}
	pair, err := certs.Load(certFiles(c, file), d.now())
	if err != nil {
		d.found("certificate", findingProblem, "correct the files of gateway.tls; a running gateway keeps its certificate until it stops", "%s", cmdline.Printable(err.Error()))
		return
	}
	if trusted.RootCAs == nil {
		if trusted.RootCAs, err = x509.SystemCertPool(); err != nil {
			trusted.RootCAs = x509.NewCertPool()
		}
	}
	trusted.RootCAs.AddCert(pair.Leaf)
	// Other gateways may have certificates with other names.
	if host := d.url.Hostname(); len(pair.Leaf.DNSNames) > 0 && (host == "localhost" || net.ParseIP(host) != nil) {
		trusted.ServerName = pair.Leaf.DNSNames[0]
	}
}

// certificate adds the finding of a running gateway's certificate.
func (d *gatewayDoctor) certificate(expires time.Time) {
	if expires.IsZero() {
		return
	}
	left := expires.Sub(d.now()).Round(time.Hour)
	if left < expirySoon {
		d.found("certificate", findingWarning, "renew the files of gateway.tls; the gateway loads them within a minute", "expires at %s, in %s", expires.UTC().Format(time.RFC3339), left)
		return
	}
	d.found("certificate", findingFine, "", "expires at %s", expires.UTC().Format(time.DateOnly))
}
