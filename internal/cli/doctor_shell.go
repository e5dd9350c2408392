package cli

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
)

// baseVariables are those by which agents and SDKs are told where a provider
// is, the common ones first.
var baseVariables = []string{
	"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL",
	"ANTHROPIC_API_BASE", "OPENAI_API_BASE", "ANTHROPIC_API_ENDPOINT", "OPENAI_API_ENDPOINT",
}

// environment says whether what is started from this shell reaches the gateway.
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
			d.found("environment", findingProblem, "export "+name+"="+d.url.String(), "%s is no address", name)
		case !sameHost(u, d.url):
			d.found("environment", findingWarning, "export "+name+"="+d.url.String(), "%s is %s, not this gateway", name, printable(u.Host))
		case u.Scheme != d.url.Scheme:
			d.found("environment", findingProblem, "export "+name+"="+d.url.String(), "%s has the scheme %s, and the gateway speaks %s", name, printable(u.Scheme), d.url.Scheme)
		default:
			d.found("environment", findingFine, "", "%s is this gateway", name)
		}
	}
	if set == 0 {
		d.found("environment", findingWarning, `eval "$(furl serve --print-env claude)", or furl run -- AGENT`, "no base URL is set in this shell: agents started from it go to their providers directly")
	}
	d.proxies()
}

// proxies warns of clients that would reach the gateway through a proxy.
func (d *gatewayDoctor) proxies() {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
		if d.getenv(name) == "" || unproxied(d.url.Hostname(), d.getenv("NO_PROXY")+","+d.getenv("no_proxy")) {
			continue
		}
		d.found("environment", findingWarning, "export NO_PROXY="+d.url.Hostname()+", and no_proxy the same",
			"%s is set, and NO_PROXY does not have %s: some clients reach the gateway through that proxy then, or not at all, and it may hold streams back", name, d.url.Hostname())
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

// sameHost reports whether two addresses lead to one port of one host, as far
// as their names tell.
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

// netWords says in a few words why no answer came. An error of net/http has
// the whole address in front.
func netWords(err error) string {
	var dns *net.DNSError
	if proxy := proxyError(err); proxy != nil {
		return "the proxy that the environment names: " + netWords(proxy)
	}
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host: " + printable(dns.Name)
	case errors.As(err, &dns):
		return "the name server does not answer"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there"
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return "it took too long"
	case otherName(err):
		return "its certificate is for another name"
	case expired(err):
		return "its certificate has expired, or is not valid yet"
	case badCertificate(err):
		return "its certificate is not trusted"
	case proxyAsks(err):
		return "the proxy that the environment names asks for a user and a password"
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return printable(err.Error())
}

// netCure says what may help.
func netCure(err error) string {
	var dns *net.DNSError
	switch {
	case proxyError(err) != nil, proxyAsks(err):
		return "HTTPS_PROXY and its kin name the proxy, with user and password if it asks for them; here, and where the gateway is started"
	case otherName(err):
		return "check the address in the configuration; something else may answer in its place"
	case expired(err):
		return "check this machine's clock; else it is for whoever runs the server to renew it"
	case errors.As(err, &dns):
		return "check the name in the configuration, and this machine's name servers"
	case badCertificate(err):
		return "behind a proxy that signs for others, SSL_CERT_FILE names the file with its certificate; the gateway needs it too"
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return "a firewall may drop it: HTTPS_PROXY names the proxy to use, for the gateway too"
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

// proxyError is what went wrong on the way to a proxy, nil if nothing did.
func proxyError(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		return op.Err
	}
	return nil
}

// proxyAsks reports whether a proxy wants to know who asks. net/http has only
// words for that.
func proxyAsks(err error) bool {
	return strings.Contains(err.Error(), http.StatusText(http.StatusProxyAuthRequired))
}
