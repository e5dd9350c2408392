package serving

import (
	"crypto/x509"
	"fmt"
	"time"

	"github.com/furlhq/furl/internal/certs"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/private"
)

// CertFiles returns the files of the gateway's certificate.
func CertFiles(c *config.Config, file string) certs.Files {
	t := &c.Gateway.TLS
	return certs.Files{
		Cert: config.Beside(file, t.CertFile), Key: config.Beside(file, t.KeyFile), ClientCA: config.Beside(file, t.ClientCAFile),
		ClientCRL: config.Beside(file, t.ClientCRLFile), Optional: t.ClientCert == "optional", ReadKey: private.Read,
	}
}

// useTLS loads the certificate of the configuration. furl run and furl ui have none:
// they serve one person on the loopback interface. So certificates of clients identify
// nobody there, see accessOptions.
func (f *Gateway) useTLS(s *Running, c *config.Config, file string) error {
	if c.Gateway.TLS.CertFile == "" || f.Running || f.Only {
		return nil
	}
	pair, err := certs.Load(CertFiles(c, file), time.Now())
	if err != nil {
		return fmt.Errorf("gateway.tls: %w", err)
	}
	s.tls = certs.NewServer(pair)
	return nil
}

// certificate returns a function for the gateway's current certificate, nil if its
// connections are not encrypted.
func (s *Running) certificate() func() *x509.Certificate {
	if s.tls == nil {
		return nil
	}
	return func() *x509.Certificate { return s.tls.Pair().Leaf }
}
