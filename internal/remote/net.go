package remote

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
	"time"

	"github.com/furlhq/furl/internal/visible"
)

// Timeout limits each request to a gateway that checks it.
const Timeout = 15 * time.Second

// reachableHost replaces an address that means all interfaces by 127.0.0.1.
func reachableHost(hostport string) string {
	host, port, err := net.SplitHostPort(hostport)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return hostport
}

// PlainClient returns a client that does not follow redirects.
func PlainClient() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// NetWords returns a short text for a network error, without the URL that net/http
// adds.
func NetWords(err error) string {
	var dns *net.DNSError
	if proxy := proxyError(err); proxy != nil {
		return "the proxy of the environment: " + NetWords(proxy)
	}
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host: " + visible.Text(dns.Name)
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
	return visible.Text(err.Error())
}

// NetCure returns a remedy for a network error.
func NetCure(err error) string {
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
