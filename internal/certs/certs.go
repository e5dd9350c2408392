// Package certs loads the certificate of a server, and the authorities of its
// clients' certificates, and replaces both while the server runs.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// Files names the files of a server, all in PEM.
type Files struct {
	// Cert has the certificate of the server and its intermediate certificates,
	// Key its private key.
	Cert, Key string
	// ClientCA has the authorities of clients' certificates. If empty, clients are
	// not asked for a certificate.
	ClientCA string
	// ClientCRL has lists of revoked certificates of these authorities. If empty, there
	// are none.
	ClientCRL string
	// Optional accepts clients without a certificate. A certificate that a client
	// sends must be valid in any case.
	Optional bool
	// ReadKey reads the private key. If nil, os.ReadFile.
	ReadKey func(name string) ([]byte, error)
}

// Pair is a loaded certificate.
type Pair struct {
	// Leaf is the certificate of the server.
	Leaf    *x509.Certificate
	config  *tls.Config
	clients *clients // nil: clients are not asked for a certificate
	files   Files
	stamps  [4]stamp
}

// stamp is what tells one version of a file from the next.
type stamp struct {
	size    int64
	changed time.Time
}

// maxFile is the largest file, in bytes.
const maxFile = 1 << 20

// Load reads the files. It returns an error for files that cannot be read, for a key
// that does not belong to the certificate, and for a certificate that is not valid at
// now. The error names the file.
func Load(f Files, now time.Time) (*Pair, error) {
	p := &Pair{files: f, stamps: f.stamps()} // before reading, so that a later change is seen
	cert, err := read(f.Cert)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	readKey := f.ReadKey
	if readKey == nil {
		readKey = read
	}
	key, err := readKey(f.Key)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with private key %s: %w", f.Cert, f.Key, err)
	}
	if p.Leaf = pair.Leaf; p.Leaf == nil {
		if p.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, fmt.Errorf("certificate %s: %w", f.Cert, err)
		}
	}
	switch {
	case now.After(p.Leaf.NotAfter):
		return nil, fmt.Errorf("certificate %s expired at %s: renew it", f.Cert, p.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(p.Leaf.NotBefore):
		return nil, fmt.Errorf("certificate %s is valid from %s on: check the clock", f.Cert, p.Leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	p.config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if f.ClientCA == "" {
		return p, nil
	}
	if p.clients, err = loadClients(f, now); err != nil {
		return nil, err
	}
	p.config.ClientCAs = p.clients.authorities
	p.config.VerifyConnection = p.clients.verifyConnection
	p.config.ClientAuth = tls.RequireAndVerifyClientCert
	if f.Optional {
		p.config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	// A resumed connection would not be checked against authorities that have
	// been replaced since.
	p.config.SessionTicketsDisabled = true
	return p, nil
}

func read(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, explained(err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s is too large: at most %d bytes", name, maxFile)
	}
	data, err := os.ReadFile(name)
	return data, explained(err)
}

// explained adds what to do to an error of a file.
func explained(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: let the user that runs furl read it", err)
	}
	return err
}

func (f Files) stamps() (s [4]stamp) {
	for i, name := range []string{f.Cert, f.Key, f.ClientCA, f.ClientCRL} {
		if info, err := os.Stat(name); name != "" && err == nil {
			s[i] = stamp{info.Size(), info.ModTime()}
		}
	}
	return s
}

// Server is a tls.Config whose certificate can be replaced. Connections keep the
// certificate that they began with.
type Server struct {
	pair atomic.Pointer[Pair]
}

// NewServer returns a Server with a certificate.
func NewServer(p *Pair) *Server {
	s := new(Server)
	s.pair.Store(p)
	return s
}

// Config returns the configuration for a listener.
func (s *Server) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.pair.Load().config, nil },
	}
}

// Pair returns the current certificate.
func (s *Server) Pair() *Pair { return s.pair.Load() }

// Set replaces the certificate for new connections.
func (s *Server) Set(p *Pair) { s.pair.Store(p) }

// Refresh loads the files again if one of them has changed since the current
// certificate was loaded. After an error, the current one stays.
func (s *Server) Refresh(now time.Time) (changed bool, err error) {
	was := s.pair.Load()
	if was.files.stamps() == was.stamps {
		return false, nil
	}
	p, err := Load(was.files, now)
	if err != nil {
		return false, err
	}
	return s.pair.CompareAndSwap(was, p), nil
}

// refreshEvery is the time between two looks at the files.
const refreshEvery = 30 * time.Second

// Run calls Refresh twice a minute until ctx ends, and logs what it does. So a
// renewed certificate is used without a signal.
func (s *Server) Run(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		changed, err := s.Refresh(time.Now())
		switch {
		case err != nil && err.Error() != said:
			said = err.Error()
			log.Error("certificate not reloaded: the previous one stays in use", "error", err)
		case changed:
			said = ""
			log.Info("certificate reloaded", "expires", s.Pair().Leaf.NotAfter)
		}
	}
}
