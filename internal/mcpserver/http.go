package mcpserver

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl/internal/origin"
)

// HTTPOptions are the options of Handler.
type HTTPOptions struct {
	// Token, if not empty, is the bearer token that clients must send.
	Token string
	// Hosts are further names under which the server is addressed, besides localhost
	// and IP addresses.
	Hosts []string
	// Origins are the origins of web pages that may send requests, as patterns of
	// package origin. Without them, no web page may.
	Origins []string
}

// Path is where Handler serves the protocol.
const Path = "/mcp"

// Limits of the handler.
const (
	maxBody     = 1 << 20 // of a request, in bytes
	sessionIdle = time.Hour
)

// Handler returns the handler of the streamable HTTP transport, at Path.
//
// A web page may send requests to servers on the user's machine, and with DNS rebinding
// read their responses. So a request must address the server by a known name, and those
// that browsers send for pages are refused.
func (s *Server) Handler(o HTTPOptions) http.Handler {
	serve := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
		SessionTimeout: sessionIdle, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // checkHost knows more names
	})
	token := sha256.Sum256([]byte(o.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse := func(status int, err error) {
			s.log.Warn("request refused", "status", status, "error", err)
			http.Error(w, "furl: "+err.Error(), status)
		}
		if err := checkHost(r, o.Hosts); err != nil {
			refuse(http.StatusForbidden, err)
			return
		}
		if err := checkOrigin(r, o.Origins); err != nil {
			refuse(http.StatusForbidden, err)
			return
		}
		if o.Token != "" {
			given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			sum := sha256.Sum256([]byte(given))
			if subtle.ConstantTimeCompare(sum[:], token[:]) != 1 {
				w.Header().Set("WWW-Authenticate", `Bearer realm="furl"`)
				refuse(http.StatusUnauthorized, fmt.Errorf("missing or wrong bearer token"))
				return
			}
		}
		if r.URL.Path != Path {
			http.NotFound(w, r)
			return
		}
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
			if err != nil {
				return // the client has left
			}
			if id := inexactID(body); id != nil && len(body) <= maxBody {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write(refusalOf(id, jsonrpc.CodeInvalidRequest, inexactReason))
				return
			}
			r.Body = struct {
				io.Reader
				io.Closer
			}{bytes.NewReader(body), r.Body} // serve refuses one that is too long
		}
		serve.ServeHTTP(w, r)
	})
}

// checkHost returns an error for a request to an unknown name. DNS rebinding needs a
// name; an IP address is safe.
func checkHost(r *http.Request, hosts []string) error {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") || slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return nil
	}
	return fmt.Errorf("unknown host name %.100q: to allow it, add it to mcp.hosts in the configuration", host)
}

// checkOrigin returns an error for a request of a web page. Programs that are not
// browsers send none of these headers.
func checkOrigin(r *http.Request, allowed []string) error {
	origins, sites := r.Header.Values("Origin"), r.Header.Values("Sec-Fetch-Site")
	if len(origins) > 1 || len(sites) > 1 {
		return fmt.Errorf("more than one Origin or Sec-Fetch-Site header")
	}
	if len(origins) == 0 {
		if len(sites) == 1 && sites[0] != "same-origin" && sites[0] != "none" {
			return fmt.Errorf("requests of web pages are refused")
		}
		return nil
	}
	if u, err := url.Parse(origins[0]); err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) && (u.Scheme == "http" || u.Scheme == "https") {
		return nil
	}
	if slices.ContainsFunc(allowed, func(pattern string) bool { return origin.Match(pattern, origins[0]) }) {
		return nil
	}
	return fmt.Errorf("requests of the web page %.100q are refused: to allow them, add it to mcp.origins in the configuration", origins[0])
}
