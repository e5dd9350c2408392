package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// clients are what certificates of clients are checked against.
type clients struct {
	authorities *x509.CertPool
	revoked     map[revocation]bool

	// checked has, by certificate, until when its chains are valid: checking their
	// signatures takes a tenth of a millisecond.
	mu      sync.Mutex
	checked map[[sha256.Size]byte]time.Time
}

// maxChecked is the largest number of certificates that are remembered.
const maxChecked = 10_000

// revocation names a revoked certificate.
type revocation struct{ issuer, serial string }

// loadClients reads the authorities, and the revocation lists if there is a file of them.
func loadClients(f Files, now time.Time) (*clients, error) {
	text, err := read(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("authorities of clients: %w", err)
	}
	c := &clients{authorities: x509.NewCertPool(), revoked: map[revocation]bool{}}
	if !c.authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("authorities of clients: %s has no certificate in PEM", f.ClientCA)
	}
	if f.ClientCRL == "" {
		return c, nil
	}
	lists, err := read(f.ClientCRL)
	if err != nil {
		return nil, fmt.Errorf("revocation list: %w", err)
	}
	if err := c.addRevoked(lists, certificatesIn(text), now); err != nil {
		return nil, fmt.Errorf("revocation list %s: %w", f.ClientCRL, err)
	}
	return c, nil
}

// certificatesIn returns the certificates of a file in PEM that can be parsed.
func certificatesIn(text []byte) (list []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			list = append(list, cert)
		}
	}
	return list
}

// addRevoked adds the lists of a file in PEM, each of which one of the authorities must
// have signed.
func (c *clients) addRevoked(text []byte, authorities []*x509.Certificate, now time.Time) error {
	n := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return err
		}
		if err := signedByOne(list, authorities); err != nil {
			return err
		}
		if !list.NextUpdate.IsZero() && now.After(list.NextUpdate) {
			return fmt.Errorf("the list of %s expired at %s: replace it with a current one", list.Issuer, list.NextUpdate.UTC().Format(time.RFC3339))
		}
		for _, entry := range list.RevokedCertificateEntries {
			c.revoked[revocation{string(list.RawIssuer), entry.SerialNumber.String()}] = true
		}
		n++
	}
	if n == 0 {
		return errors.New("the file has no list in PEM")
	}
	return nil
}

func signedByOne(list *x509.RevocationList, authorities []*x509.Certificate) error {
	err := fmt.Errorf("no authority in the file of authorities has issued the list of %s", list.Issuer)
	for _, cert := range authorities {
		if bytes.Equal(cert.RawSubject, list.RawIssuer) {
			if err = list.CheckSignatureFrom(cert); err == nil {
				return nil
			}
		}
	}
	return err
}

// errRevoked is the error for a revoked certificate.
var errRevoked = errors.New("the client certificate was revoked")

// checkRevoked returns an error if a certificate of a chain was revoked.
func (c *clients) checkRevoked(chain []*x509.Certificate) error {
	for _, cert := range chain {
		if c.revoked[revocation{string(cert.RawIssuer), cert.SerialNumber.String()}] {
			return errRevoked
		}
	}
	return nil
}

// verifyConnection refuses revoked certificates in a handshake, which has checked the rest.
func (c *clients) verifyConnection(state tls.ConnectionState) error {
	for _, chain := range state.VerifiedChains {
		if err := c.checkRevoked(chain); err != nil {
			return err
		}
	}
	return nil
}

// check checks the certificate of an open connection again.
func (c *clients) check(certs []*x509.Certificate, now time.Time) error {
	key := sha256.Sum256(certs[0].Raw)
	c.mu.Lock()
	until := c.checked[key]
	c.mu.Unlock()
	if now.Before(until) {
		return nil
	}
	until, err := c.validUntil(certs, now)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.checked == nil || len(c.checked) >= maxChecked {
		c.checked = make(map[[sha256.Size]byte]time.Time)
	}
	c.checked[key] = until
	return nil
}

// validUntil returns when the first certificate of the chain of a client's certificate
// expires.
func (c *clients) validUntil(certs []*x509.Certificate, now time.Time) (until time.Time, err error) {
	between := x509.NewCertPool()
	for _, cert := range certs[1:] {
		between.AddCert(cert)
	}
	chains, err := certs[0].Verify(x509.VerifyOptions{Roots: c.authorities, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return until, fmt.Errorf("the client certificate is not valid any more: %w", err)
	}
	until = certs[0].NotAfter
	for _, chain := range chains {
		if err := c.checkRevoked(chain); err != nil {
			return until, err
		}
		for _, cert := range chain {
			if cert.NotAfter.Before(until) {
				until = cert.NotAfter
			}
		}
	}
	return until, nil
}

// Handler returns a handler that refuses requests on open connections whose certificate has
// expired or was revoked since, or whose authority was removed, and closes the connection.
func (s *Server) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := s.Pair().clients; c != nil && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			if err := c.check(r.TLS.PeerCertificates, time.Now()); err != nil {
				w.Header().Set("Connection", "close")
				http.Error(w, "furl: "+err.Error(), http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
