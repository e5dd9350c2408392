package config

import (
	"path/filepath"

	"github.com/furlhq/furl/internal/strictyaml"
)

// TLS is how furl serve encrypts its connections. Without a certificate it does not.
type TLS struct {
	// CertFile and KeyFile are the certificate and its private key, ClientCAFile the
	// authorities of clients' certificates, all in PEM. Relative paths are relative
	// to the configuration file. Without ClientCAFile, clients need no certificate.
	CertFile     string `yaml:"cert_file"`
	KeyFile      string `yaml:"key_file"`
	ClientCAFile string `yaml:"client_ca_file"`
	// ClientCert is required or optional. If empty, required.
	ClientCert string `yaml:"client_cert"`
	// ClientIdentity is the part of a client's certificate that names the client:
	// subject, dns, email or uri. If empty, certificates identify nobody.
	ClientIdentity string `yaml:"client_identity"`
}

func (c *Config) readTLS(v strictyaml.Value) {
	t := &c.Gateway.TLS
	object(map[string]reader{
		"cert_file":       text(&t.CertFile),
		"key_file":        text(&t.KeyFile),
		"client_ca_file":  text(&t.ClientCAFile),
		"client_cert":     oneOf(&t.ClientCert, "required", "optional"),
		"client_identity": oneOf(&t.ClientIdentity, "subject", "dns", "email", "uri"),
	})(v)
	switch {
	case (t.CertFile == "") != (t.KeyFile == ""):
		v.ReportKey("invalid tls", "set both cert_file and key_file")
	case t.CertFile == "" && *t != (TLS{}):
		v.ReportKey("invalid tls", "client certificates need cert_file and key_file")
	case t.ClientCAFile == "" && (t.ClientCert != "" || t.ClientIdentity != ""):
		v.ReportKey("invalid tls", "client_cert and client_identity need client_ca_file")
	}
}

// Beside returns a path of a configuration file, which is relative to the file's
// folder.
func Beside(file, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(file), name)
}
