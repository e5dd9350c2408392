// Package upstream sends requests to a provider. It knows HTTP, and not what is
// said over it.
//
//	client, err := upstream.New("https://api.example", nil)
//	proxy := &httputil.ReverseProxy{Transport: client, …}
//
// A request goes out as it came in, with all headers of the client, credentials
// and version headers included. Exceptions are headers that concern one
// connection, headers of furl, and credentials of other vendors (see
// [Client.CheckCredentials]). Redirects are not followed, so that credentials go
// only to the configured address. Nothing that was sent is sent again: statuses
// such as 429 and 529 are for the client to handle.
//
// No error and no log line contains a header or a query, which may hold
// credentials.
package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Options are the settings of a Client.
type Options struct {
	// Connect bounds the time to connect, TLS included. If
	// zero, 10 seconds.
	Connect time.Duration
	// FirstByte bounds the time from the end of the request to the end of the
	// answer's header, which for an answer that is not streamed is the time a
	// model takes for all of it. If zero, 15 minutes.
	FirstByte time.Duration
	// Idle bounds the time between two pieces of an answer. If zero, 5
	// minutes; providers send a sign of life much more often.
	Idle time.Duration
	// Total bounds the whole of a request and its answer. If zero, it is not
	// bounded.
	Total time.Duration
	// Retries is how often furl tries again to connect. If zero, 1; if
	// negative, never.
	Retries int
	// Transport makes the connections. If nil, one of its own with HTTP/2 and
	// the proxies that the environment names.
	Transport http.RoundTripper
	// Logger gets a line per request at level debug. If nil, nothing is logged.
	Logger *slog.Logger
}

// Client sends requests to one provider. It is an http.RoundTripper, safe for
// concurrent use.
type Client struct {
	base    *url.URL
	version bool // the base's path names an API version
	opts    Options
	log     *slog.Logger
	own     *http.Transport
}

// New returns a Client for the provider at base, an http or https address. A
// path in it goes before that of each request; if it names a version, as in
// https://host/api/v1, that replaces the request's, so that both
// ways of writing a base address lead to the same place.
func New(base string, opts *Options) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, errors.New("upstream address: not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("upstream address %s: want http://host or https://host", u.Redacted())
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("upstream address %s://%s: want no user, query or fragment", u.Scheme, u.Host)
	}
	c := &Client{base: u}
	if opts != nil {
		c.opts = *opts
	}
	c.version = versioned.MatchString(u.Path + "/")
	c.defaults()
	return c, nil
}

// versioned finds the version of an API in a path that ends in a slash.
var versioned = regexp.MustCompile(`/v[0-9]+[a-z0-9]*/`)

func (c *Client) defaults() {
	o := &c.opts
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&o.Connect, 10*time.Second)
	set(&o.FirstByte, 15*time.Minute)
	set(&o.Idle, 5*time.Minute)
	if o.Retries == 0 {
		o.Retries = 1
	}
	if c.log = o.Logger; c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if o.Transport == nil {
		c.own = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: o.Connect, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:    o.Connect,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           256,
			MaxIdleConnsPerHost:    64,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 1 << 20,
			WriteBufferSize:        32 << 10,
			ReadBufferSize:         32 << 10,
			DisableCompression:     true, // answers pass through as they come
		}
		o.Transport = c.own
	}
}

// Host is the host that the client talks to, for logs and metrics.
func (c *Client) Host() string { return c.base.Host }

// Address is the base address that requests go to.
func (c *Client) Address() string { return c.base.String() }

// Close closes idle connections of the Client's own transport.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// ErrPath is wrapped by the error of a request whose path would lead out of
// the base address.
var ErrPath = errors.New("path with dot segments")

// target is where a request to the path and query of u goes.
func (c *Client) target(u *url.URL) (*url.URL, error) {
	for _, segment := range strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if segment == "." || segment == ".." {
			return nil, ErrPath
		}
	}
	path := u.EscapedPath()
	if c.version {
		if rest := versioned.FindStringIndex(path + "/"); rest != nil && rest[0] == 0 {
			path = path[min(rest[1]-1, len(path)):]
		}
	}
	if !strings.HasPrefix(path, "/") && path != "" {
		path = "/" + path
	}
	escaped := strings.TrimSuffix(c.base.EscapedPath(), "/") + path
	decoded, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, ErrPath
	}
	return &url.URL{Scheme: c.base.Scheme, Host: c.base.Host, Path: decoded, RawPath: escaped, RawQuery: u.RawQuery}, nil
}
