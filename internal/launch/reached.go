package launch

import (
	"net"
	"net/url"
	"strings"

	"github.com/furlhq/furl/internal/config"
)

// GatewayAt returns the URL for clients on this machine of a gateway that listens on an
// address with a configuration.
func GatewayAt(listen string, c *config.Config) string {
	url := ReachedAt(listen)
	if c.Gateway.TLS.CertFile != "" {
		url = "https" + strings.TrimPrefix(url, "http")
	}
	return url
}

// ReachedAt returns the URL for clients on this machine of a server that listens on an
// address. Addresses for all interfaces, such as 0.0.0.0, become 127.0.0.1.
func ReachedAt(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "http://" + listen
	}
	switch ip := net.ParseIP(host); {
	case host == "", ip != nil && ip.IsUnspecified():
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// SameHost reports whether two URLs have the same host and port. All loopback names
// are the same host.
func SameHost(a, b *url.URL) bool {
	return portOf(a) == portOf(b) && (strings.EqualFold(a.Hostname(), b.Hostname()) || Loopback(a.Hostname()) && Loopback(b.Hostname()))
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

// Loopback reports whether a host is this machine.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
