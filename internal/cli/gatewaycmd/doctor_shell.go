package gatewaycmd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/furlhq/furl/internal/cli/cmdline"
)

// baseVariables are the environment variables in which agents and SDKs expect the
// base URL of a provider, common ones first.
var baseVariables = []string{
	"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL",
	"ANTHROPIC_API_BASE", "OPENAI_API_BASE", "ANTHROPIC_API_ENDPOINT", "OPENAI_API_ENDPOINT",
}

// environment checks whether programs started from this shell use the gateway.
func (d *gatewayDoctor) environment() {
	set := 0
	for _, name := range baseVariables {
		value := d.getenv(name)
		if value == "" {
			continue
		}
		set++
		u, err := url.Parse(value)
		switch {
		case err != nil || u.Host == "":
			d.found("environment", findingProblem, "export "+name+"="+d.url.String(), "%s is not a URL", name)
		case !sameHost(u, d.url):
			d.found("environment", findingWarning, "export "+name+"="+d.url.String(), "%s points to %s, not to this gateway", name, cmdline.Printable(u.Host))
		case u.Scheme != d.url.Scheme:
			d.found("environment", findingProblem, "export "+name+"="+d.url.String(), "%s has scheme %s, but the gateway serves %s", name, cmdline.Printable(u.Scheme), d.url.Scheme)
		default:
			d.found("environment", findingFine, "", "%s points to this gateway", name)
		}
	}
	if set == 0 {
		d.found("environment", findingWarning, `run eval "$(furl serve --print-env claude)", or start agents with furl run -- AGENT`, "no base URL is set in this shell: agents started from it bypass the gateway")
	}
	d.proxies()
}

// proxies warns if clients would connect to the gateway through a proxy.
func (d *gatewayDoctor) proxies() {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if d.getenv(name) == "" || unproxied(d.url.Hostname(), d.getenv("NO_PROXY")+","+d.getenv("no_proxy")) {
			continue
		}
		d.found("environment", findingWarning, "export NO_PROXY="+d.url.Hostname()+" no_proxy="+d.url.Hostname(),
			"%s is set and NO_PROXY does not include %s: some clients connect to the gateway through that proxy, which may fail or buffer streams", name, d.url.Hostname())
		return
	}
}

func unproxied(host, list string) bool {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "*" || item != "" && (strings.EqualFold(item, host) || strings.HasSuffix("."+strings.ToLower(host), "."+strings.ToLower(strings.TrimPrefix(item, ".")))) {
			return true
		}
	}
	return false
}

// sameHost reports whether two URLs have the same host and port. All loopback names
// are the same host.
func sameHost(a, b *url.URL) bool {
	return portOf(a) == portOf(b) && (strings.EqualFold(a.Hostname(), b.Hostname()) || loopback(a.Hostname()) && loopback(b.Hostname()))
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// netWords returns a short text for a network error, without the URL that net/http
// adds.
func netWords(err error) string {
	var dns *net.DNSError
	if proxy := proxyError(err); proxy != nil {
		return "the proxy of the environment: " + netWords(proxy)
	}
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host: " + cmdline.Printable(dns.Name)
	case errors.As(err, &dns):
		return "the DNS server did not respond"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused, nothing listens there"
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return "timed out"
	case otherName(err):
		return "the certificate is for another host name"
	case expired(err):
		return "the certificate has expired or is not valid yet"
	case badCertificate(err):
		return "the certificate is not trusted"
	case proxyAsks(err):
		return "the proxy of the environment requires authentication"
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return cmdline.Printable(err.Error())
}

// netCure returns a remedy for a network error.
func netCure(err error) string {
	var dns *net.DNSError
	switch {
	case proxyError(err) != nil, proxyAsks(err):
		return "set the proxy in HTTPS_PROXY, with user and password if it requires them, here and for the gateway"
	case otherName(err):
		return "check the address in the configuration; another server may respond in its place"
	case expired(err):
		return "check this machine's clock; otherwise the server's certificate must be renewed"
	case errors.As(err, &dns):
		return "check the name in the configuration and this machine's DNS servers"
	case badCertificate(err):
		return "if a proxy intercepts TLS, set SSL_CERT_FILE to the file with its certificate, here and for the gateway"
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return "a firewall may drop connections: set a proxy in HTTPS_PROXY, here and for the gateway"
	}
	return "check the address in the configuration and this machine's network"
}

func badCertificate(err error) bool {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var verify *tls.CertificateVerificationError
	return errors.As(err, &unknown) || errors.As(err, &invalid) || errors.As(err, &host) || errors.As(err, &verify)
}

func otherName(err error) bool {
	_, ok := errors.AsType[x509.HostnameError](err)
	return ok
}

func expired(err error) bool {
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	return ok && invalid.Reason == x509.Expired
}

// proxyError returns the error of the connection to a proxy, or nil.
func proxyError(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		return op.Err
	}
	return nil
}

// proxyAsks reports whether a proxy requires authentication. net/http has no typed
// error for it.
func proxyAsks(err error) bool {
	return strings.Contains(err.Error(), http.StatusText(http.StatusProxyAuthRequired))
}
