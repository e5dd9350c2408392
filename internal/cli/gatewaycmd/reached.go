package gatewaycmd

import (
	"net"
	"strings"

	"github.com/furlhq/furl/internal/config"
)

// gatewayAt returns the URL for clients on this machine of a gateway that listens on an
// address with a configuration.
func gatewayAt(listen string, c *config.Config) string {
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
