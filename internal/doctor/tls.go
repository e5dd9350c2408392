package doctor

import (
	"crypto/x509"
	"net"
	"net/http"
	"time"

	"github.com/furlhq/furl/internal/certs"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/remote"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/internal/visible"
)

// expirySoon is the remaining time of a certificate below which furl doctor warns.
const expirySoon = 14 * 24 * time.Hour

// trust lets the doctor connect with the files of the environment, and to the gateway of
// its own configuration, whose certificate this machine's authorities may not know. It
// checks the files too.
func (d *gatewayDoctor) trust(c *config.Config, file string) {
	trusted, asked, err := remote.ClientTLS(d.getenv)
	if err != nil {
		d.found("environment", findingProblem, "correct the variable", "%s", visible.Text(err.Error()))
		return
	}
	defer func() {
		d.asked = asked
		d.own = &http.Client{CheckRedirect: d.http.CheckRedirect, Transport: &http.Transport{TLSClientConfig: trusted}}
	}()
	if c.Gateway.TLS.CertFile == "" {
		return
	}
	pair, err := certs.Load(serving.CertFiles(c, file), d.now())
	if err != nil {
		d.found("certificate", findingProblem, "correct the files of gateway.tls; a running gateway keeps its certificate until it stops", "%s", visible.Text(err.Error()))
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
