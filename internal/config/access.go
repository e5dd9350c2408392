package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
	// ClientCRLFile has the lists of revoked certificates of these authorities, in PEM.
	ClientCRLFile string `yaml:"client_crl_file"`
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
		"client_crl_file": text(&t.ClientCRLFile),
		"client_cert":     oneOf(&t.ClientCert, "required", "optional"),
		"client_identity": oneOf(&t.ClientIdentity, "subject", "dns", "email", "uri"),
	})(v)
	switch {
	case (t.CertFile == "") != (t.KeyFile == ""):
		v.ReportKey("invalid tls", "set both cert_file and key_file")
	case t.CertFile == "" && *t != (TLS{}):
		v.ReportKey("invalid tls", "client certificates need cert_file and key_file")
	case t.ClientCAFile == "" && (t.ClientCert != "" || t.ClientIdentity != "" || t.ClientCRLFile != ""):
		v.ReportKey("invalid tls", "client_cert, client_crl_file and client_identity need client_ca_file")
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

// TrustedProxy is a proxy in front of the gateway that says who its users are.
type TrustedProxy struct {
	// Header is the header with the name of the user and tenant.
	Header string `yaml:"header"`
	// Networks are the addresses of the proxy, such as 10.0.0.0/8.
	Networks []string `yaml:"networks"`
}

// Prefixes returns Networks, which Parse has checked.
func (p *TrustedProxy) Prefixes() (list []netip.Prefix) {
	for _, s := range p.Networks {
		if one, err := parseNetwork(s); err == nil {
			list = append(list, one)
		}
	}
	return list
}

// parseNetwork parses a network, or a single address.
func parseNetwork(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}

func (c *Config) readTrustedProxy(v strictyaml.Value) {
	p := &c.Gateway.TrustedProxy
	object(map[string]reader{
		"header": func(v strictyaml.Value) {
			const expected = "the name of a header that only the proxy sets, such as X-Auth-User"
			name, ok := v.Text(expected)
			if lower := strings.ToLower(name); ok && (!headerName.MatchString(name) || isReserved(lower)) {
				v.Expected(expected)
			}
			p.Header = name
		},
		"networks": func(v strictyaml.Value) {
			for item := range v.List("a list of networks, such as [10.0.0.0/8, 127.0.0.1]") {
				const expected = "a network such as 10.0.0.0/8, or an address"
				s, ok := item.Text(expected)
				switch p, err := parseNetwork(s); {
				case ok && err != nil:
					item.Expected(expected)
				case ok && (p.Addr().Is4() && p.Bits() < widest4 || !p.Addr().Is4() && p.Bits() < widest6):
					item.Expected(fmt.Sprintf("a network of the proxy's addresses, at least /%d or for IPv6 /%d: from each of its addresses anybody can name any user", widest4, widest6))
				}
				p.Networks = append(p.Networks, s)
			}
		},
	})(v)
	if (p.Header == "") != (len(p.Networks) == 0) {
		v.ReportKey("invalid trusted_proxy", "set both header and networks")
	}
}

// The widest networks of private addresses, 10.0.0.0/8 and fc00::/7.
const (
	widest4 = 8
	widest6 = 7
)

// reservedHeaders are headers that have another meaning for the gateway, or that clients,
// browsers and proxies send by themselves, so that their values are not users.
var (
	reservedHeaders = []string{
		"authorization", "x-api-key", "api-key", "x-goog-api-key", "host", "cookie", "origin", "user-agent", "referer", "date", "expect", "from", "via", "forwarded",
		"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-real-ip", "x-request-id", "x-requested-with", "connection", "keep-alive", "upgrade",
		"upgrade-insecure-requests", "te", "trailer", "transfer-encoding", "cache-control", "pragma", "range", "dnt", "priority", "save-data", "traceparent", "tracestate", "baggage",
		"session-id", "session_id", "x-session-id", "thread-id", "x-session-affinity", "x-app", "hx-request", "set-cookie", "server", "vary", "location", "etag",
	}
	reservedPrefixes = []string{"x-furl-", "accept", "content-", "if-", "sec-", "proxy-", "access-control-", "anthropic-", "openai-", "x-stainless-", "x-claude-code-", "x-openai-", "x-codex-", "hx-"}
)

func isReserved(lower string) bool {
	return slices.Contains(reservedHeaders, lower) || slices.ContainsFunc(reservedPrefixes, func(p string) bool { return strings.HasPrefix(lower, p) })
}

// Limits are what each tenant of a gateway may use. Zero fields are no limit.
type Limits struct {
	RequestsPerMinute int   `yaml:"requests_per_minute"`
	Concurrent        int   `yaml:"concurrent"`
	BytesPerDay       int64 `yaml:"bytes_per_day"`
	Sessions          int   `yaml:"sessions"`
	// These limit what is spent, in US dollars of list prices and in tokens.
	DollarsPerDay        float64 `yaml:"dollars_per_day"`
	DollarsPerProjectDay float64 `yaml:"dollars_per_project_day"`
	DollarsPerSession    float64 `yaml:"dollars_per_session"`
	TokensPerSession     int     `yaml:"tokens_per_session"`
	// Tenants has other limits for some tenants, by their names.
	Tenants map[string]Limits `yaml:"tenants"`
}

func (l *Limits) keys() map[string]reader {
	return map[string]reader{
		"requests_per_minute":     count(&l.RequestsPerMinute),
		"concurrent":              count(&l.Concurrent),
		"bytes_per_day":           size(&l.BytesPerDay),
		"sessions":                count(&l.Sessions),
		"dollars_per_day":         dollars(&l.DollarsPerDay),
		"dollars_per_project_day": dollars(&l.DollarsPerProjectDay),
		"dollars_per_session":     dollars(&l.DollarsPerSession),
		"tokens_per_session":      someTokens(&l.TokensPerSession),
	}
}

func (c *Config) readLimits(v strictyaml.Value) {
	l := &c.Gateway.Limits
	keys := l.keys()
	keys["tenants"] = func(v strictyaml.Value) {
		l.Tenants = make(map[string]Limits)
		for v := range v.Entries("names of tenants, such as tenants: {acme: {sessions: 1000}}") {
			var own Limits
			object(own.keys())(v)
			l.Tenants[v.Name()] = own
		}
	}
	object(keys)(v)
}

// Audit is the log of who has read or changed what.
type Audit struct {
	// File is the log. If empty, there is none. A relative path is relative to the
	// configuration file.
	File string `yaml:"file"`
	// Required refuses what cannot be written down.
	Required bool `yaml:"required"`
	// MaxSize is the size in bytes at which another file is started. If zero, 100 MB.
	MaxSize int64 `yaml:"max_size"`
}

func (c *Config) readAudit(v strictyaml.Value) {
	a := &c.Audit
	object(map[string]reader{"file": text(&a.File), "required": boolean(&a.Required), "max_size": size(&a.MaxSize)})(v)
	if a.File == "" && *a != (Audit{}) {
		v.ReportKey("invalid audit", "set file")
	}
}

// OIDC is an issuer of OpenID Connect whose tokens identify clients.
type OIDC struct {
	// Issuer is its address, Audience what its tokens for the gateway are for.
	Issuer   string `yaml:"issuer"`
	Audience string `yaml:"audience"`
	// TenantClaim is the claim with the tenant. If empty, sub.
	TenantClaim string `yaml:"tenant_claim"`
	// ScopesClaim is the claim with the scopes. If empty, all tokens may proxy, read and
	// change.
	ScopesClaim string `yaml:"scopes_claim"`
	// Scopes maps values of the claim to names of scopes. If empty, the values are the
	// names.
	Scopes map[string][]string `yaml:"scopes"`
}

// scopeWords are the names of scopes, as in package access.
var scopeWords = []string{"proxy", "read", "change", "operate"}

func (c *Config) readOIDC(v strictyaml.Value) {
	o := &c.Gateway.OIDC
	object(map[string]reader{
		"issuer":       address(&o.Issuer),
		"audience":     text(&o.Audience),
		"tenant_claim": text(&o.TenantClaim),
		"scopes_claim": text(&o.ScopesClaim),
		"scopes": func(v strictyaml.Value) {
			o.Scopes = make(map[string][]string)
			for v := range v.Entries("values of the claim with scopes, such as scopes: {agents: [proxy, read]}") {
				o.Scopes[v.Name()] = []string{}
				for item := range v.List("a list of scopes, such as [proxy, read, change]") {
					if name, ok := item.OneOf(scopeWords...); ok {
						o.Scopes[v.Name()] = append(o.Scopes[v.Name()], name)
					}
				}
			}
		},
	})(v)
	if o.Issuer == "" || o.Audience == "" {
		v.ReportKey("invalid oidc", "set both issuer and audience")
	}
	if len(o.Scopes) > 0 && o.ScopesClaim == "" {
		v.ReportKey("invalid oidc", "scopes needs scopes_claim")
	}
}

// readTenantAges reads the ages at which sessions of some tenants are deleted.
func (c *Config) readTenantAges(v strictyaml.Value) {
	c.Retention.Tenants = make(map[string]time.Duration)
	for v := range v.Entries("names of tenants with ages, such as tenants: {acme: 30d}") {
		var age time.Duration
		if word, _ := v.Text("a duration such as 30d, or never"); word != "never" {
			duration(&age)(v)
			if age == 0 {
				v.Expected("a duration such as 30d, or never")
			}
		}
		c.Retention.Tenants[v.Name()] = age
	}
}
