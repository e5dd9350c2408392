package upstream

import (
	"net/http"
	"net/textproto"
	"strings"
)

// hops are the headers that concern one connection (RFC 9110, 7.6.1), and those
// that the transport writes itself.
var hops = nameSet("Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Http2-Settings", "Content-Length", "Expect", "Host")

func nameSet(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// forwarding are the headers by which proxies in front of furl describe the
// client. A provider that is called directly never sees them.
var forwarding = []string{"Forwarded", "Via", "X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server"}

// own starts the names of furl's headers.
const own = "X-Furl-"

// passOn returns the headers that are passed on to the other side. The values are
// shared.
func passOn(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		if !hops[name] && !strings.HasPrefix(name, own) {
			out[name] = values
		}
	}
	for _, value := range h["Connection"] { // it names further ones
		for name := range strings.SplitSeq(value, ",") {
			delete(out, textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)))
		}
	}
	return out
}

// incoming returns the headers of an answer for the client. Alt-Svc names other
// ways to reach the provider, which are not ways to reach furl.
func incoming(h http.Header) http.Header {
	out := passOn(h)
	if length := h["Content-Length"]; length != nil {
		out["Content-Length"] = length
	}
	delete(out, "Alt-Svc")
	return out
}

// outgoingHeader returns the headers of a request to the provider at host.
func outgoingHeader(h http.Header, host string) http.Header {
	out := passOn(h)
	withoutForeignCredentials(out, host)
	for _, name := range forwarding {
		delete(out, name)
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = nil // else the transport names itself
	}
	if len(out["Accept-Encoding"]) == 0 {
		// Without one some transports ask for gzip and decode it.
		out["Accept-Encoding"] = []string{"identity"}
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		// By its usual spelling this header makes the transport send a request
		// again that the provider may have had. The name means the same in
		// small letters.
		if values, ok := out[name]; ok {
			delete(out, name)
			out[strings.ToLower(name)] = values
		}
	}
	return out
}
