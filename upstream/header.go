package upstream

import (
	"maps"
	"net/http"
	"net/textproto"
	"strings"
)

// hops are the hop-by-hop headers (RFC 9110, 7.6.1) and those that the transport
// writes itself.
var hops = nameSet("Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Http2-Settings", "Content-Length", "Expect", "Host")

func nameSet(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// forwarding are the headers in which proxies in front of furl describe the client.
// They are not sent to the provider.
var forwarding = []string{"Forwarded", "Via", "X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server"}

// own is the prefix of furl's headers.
const own = "X-Furl-"

// withoutOwn removes furl's headers, which only furl may set.
func withoutOwn(h http.Header) {
	maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(name, own) })
}

// passOn returns the end-to-end headers. It shares their values.
func passOn(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		if !hops[name] && !strings.HasPrefix(name, own) {
			out[name] = values
		}
	}
	for _, value := range h["Connection"] { // it lists more hop-by-hop headers
		for name := range strings.SplitSeq(value, ",") {
			delete(out, textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)))
		}
	}
	return out
}

// incoming returns the response headers for the client. It drops Alt-Svc, which is
// about connections to the provider.
func incoming(h http.Header) http.Header {
	out := passOn(h)
	if length := h["Content-Length"]; length != nil {
		out["Content-Length"] = length
	}
	delete(out, "Alt-Svc")
	return out
}

// outgoingHeader returns the headers of a request to the provider.
func (c *Client) outgoingHeader(h http.Header) http.Header {
	out := passOn(h)
	withoutForeignCredentials(out, c.vendor(), c.base.Host)
	for _, name := range forwarding {
		delete(out, name)
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = nil // otherwise the transport adds its own
	}
	if len(out["Accept-Encoding"]) == 0 {
		// Without it, some transports request gzip and decode it.
		out["Accept-Encoding"] = []string{"identity"}
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		// With the canonical spelling of this header, http.Transport retries
		// requests that the provider may have received. Providers accept
		// lower case too.
		if values, ok := out[name]; ok {
			delete(out, name)
			out[strings.ToLower(name)] = values
		}
	}
	return out
}
