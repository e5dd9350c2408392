// Package upstream sends requests to a provider. It handles HTTP, not the contents
// of requests and responses.
//
//	client, err := upstream.New("https://api.example", nil)
//	proxy := &httputil.ReverseProxy{Transport: client, …}
//
// A request is sent unchanged, with all headers of the client, including credentials
// and version headers. Exceptions are hop-by-hop headers, furl's headers, and
// credentials of other vendors (see [Client.CheckCredentials]). Redirects are not
// followed, so credentials go only to the configured address. A request that was
// sent is never retried: clients handle statuses such as 429 and 529.
//
// Errors and log lines never contain headers or queries, which may have credentials.
package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/furlhq/furl/internal/lazyregexp"
)

// Options are the settings of a Client.
type Options struct {
	// Connect limits the time to connect, including TLS. If zero, 10 seconds.
	Connect time.Duration
	// FirstByte limits the time from the end of the request to the end of the
	// response header. Without streaming, this is the time in which the model
	// generates the whole response. If zero, 15 minutes.
	FirstByte time.Duration
	// Idle limits the time between two parts of a response. If zero, 5 minutes;
	// providers send keep-alive events much more often.
	Idle time.Duration
	// Total limits the time of a request and its response. If zero, there is no
	// limit.
	Total time.Duration
	// Retries is the number of further attempts to connect. If zero, 1; if
	// negative, none.
	Retries int
	// Vendor is the name of the vendor whose credentials the provider accepts, such as
	// ChatGPT. If empty, the host decides.
	Vendor string
	// NoVersion means that the provider's paths have no API version: one at the start
	// of a request's path is removed.
	NoVersion bool
	// Transport makes the connections. If nil, a new http.Transport with HTTP/2
	// and the proxies of the environment.
	Transport http.RoundTripper
	// Logger gets a line for each request at level debug. If nil, nothing is
	// logged.
	Logger *slog.Logger
}

// Client sends requests to one provider. It is an http.RoundTripper, safe for
// concurrent use.
type Client struct {
	base    *url.URL
	version bool // the base's path names an API version, or none is sent
	opts    Options
	log     *slog.Logger
	own     *http.Transport
}

// New returns a Client for the provider at base, an http or https URL. Its path is
// prepended to that of each request that does not begin with it. If it has a version, as
// in https://host/api/v1, that version replaces the request's: base URLs work with and
// without it.
func New(base string, opts *Options) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, errors.New("invalid upstream address: expected a URL such as https://host")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("invalid upstream address %s: expected http://host or https://host", u.Redacted())
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("invalid upstream address %s://%s: expected no user, query or fragment", u.Scheme, u.Host)
	}
	c := &Client{base: u}
	if opts != nil {
		c.opts = *opts
	}
	c.version = c.opts.NoVersion || versioned.MatchString(u.Path+"/")
	c.defaults()
	return c, nil
}

// versioned matches the API version in a path that ends with a slash.
var versioned = lazyregexp.New(`/v[0-9]+[a-z0-9]*/`)

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
			DialContext:            dial(o.Connect),
			TLSHandshakeTimeout:    o.Connect,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           256,
			MaxIdleConnsPerHost:    64,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 1 << 20,
			WriteBufferSize:        32 << 10,
			ReadBufferSize:         32 << 10,
			DisableCompression:     true, // response bodies are passed through
		}
		o.Transport = c.own
	}
}

// Host is the host of the provider, for logs and metrics.
func (c *Client) Host() string { return c.base.Host }

// Address is the base URL.
func (c *Client) Address() string { return c.base.String() }

// URL returns the URL to which a request to u is sent, "" if its path is refused.
func (c *Client) URL(u *url.URL) string {
	target, err := c.target(u)
	if err != nil {
		return ""
	}
	return target.String()
}

// Root returns a Client of the same server for paths outside the API: without the API
// version in the base URL's path, and what follows it. It shares the connections.
func (c *Client) Root() *Client {
	root, base := *c, *c.base
	if at := versioned.FindStringIndex(base.Path + "/"); at != nil {
		base.Path, base.RawPath = base.Path[:at[0]], ""
	}
	root.base, root.version, root.own = &base, false, nil
	return &root
}

// Close closes idle connections of the Client's own transport.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// ErrPath is the cause of errors for requests with "." or ".." in their path, which
// could leave the base URL.
var ErrPath = errors.New("path with dot segments")

// target returns the URL at the provider for a request to u.
func (c *Client) target(u *url.URL) (*url.URL, error) {
	for _, segment := range strings.FieldsFunc(u.Path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if segment == "." || segment == ".." {
			return nil, ErrPath
		}
	}
	path, base := u.EscapedPath(), strings.TrimSuffix(c.base.EscapedPath(), "/")
	if base != "" && strings.HasPrefix(path+"/", base+"/") {
		path = path[len(base):] // the client's base URL has the path of the provider's
	} else if c.version {
		if rest := versioned.FindStringIndex(path + "/"); rest != nil && rest[0] == 0 {
			path = path[min(rest[1]-1, len(path)):]
		}
	}
	if !strings.HasPrefix(path, "/") && path != "" {
		path = "/" + path
	}
	escaped := base + path
	decoded, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, ErrPath
	}
	return &url.URL{Scheme: c.base.Scheme, Host: c.base.Host, Path: decoded, RawPath: escaped, RawQuery: u.RawQuery}, nil
}
