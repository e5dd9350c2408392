// Package remote uses a running gateway from this machine, with the key and the certificates of
// the environment.
package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/private"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/internal/usage"
	"github.com/furlhq/furl/internal/visible"
	"golang.org/x/sync/errgroup"
)

// Gateway is a running gateway that furl run and furl ui use with --gateway. It passes
// requests to a free port of this machine on to the gateway, with the key and the
// certificate of the environment. So agents and browsers need neither.
type Gateway struct {
	url    *url.URL
	key    string // for X-Furl-Key, "" for none
	client *http.Client
	asked  *atomic.Bool // see clientTLS
	proxy  *httputil.ReverseProxy
	local  string // the address on this machine

	requests atomic.Int64
	session  atomic.Value // the newest session's id
}

// Open returns the gateway at an address. The environment has the files for its
// connections, and the key.
func Open(address string, getenv func(string) string) (*Gateway, error) {
	u, err := URL(address)
	if err != nil {
		return nil, err
	}
	secured, asked, err := ClientTLS(getenv)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.MaxIdleConnsPerHost, transport.DisableCompression = secured, 64, true
	r := &Gateway{url: u, key: getenv("FURL_KEY"), client: PlainClient(), asked: asked}
	r.client.Transport = transport
	r.proxy = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, Rewrite: r.rewrite, ModifyResponse: r.note, ErrorHandler: r.fail,
		ErrorLog: log.New(io.Discard, "", 0), // it quotes addresses; the client gets the error
	}
	return r, nil
}

// URL parses the address of --gateway.
func URL(address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usage.Errorf("invalid --gateway %s: expected an address such as https://furl.internal:7410", address)
	}
	return &url.URL{Scheme: u.Scheme, Host: reachableHost(u.Host)}, nil
}

// ClientTLS returns how to connect to a gateway with TLS: FURL_CA_FILE has authorities in
// addition to the machine's, FURL_CERT_FILE and FURL_CERT_KEY_FILE the certificate for a
// gateway that requires one. Without such a certificate, asked is set when a gateway asks
// for one: the connection then fails only after the handshake, and with various errors.
func ClientTLS(getenv func(string) string) (c *tls.Config, asked *atomic.Bool, err error) {
	c, asked = &tls.Config{MinVersion: tls.VersionTLS12}, new(atomic.Bool)
	if name := getenv("FURL_CA_FILE"); name != "" {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, fmt.Errorf("FURL_CA_FILE: %w", err)
		}
		if c.RootCAs, err = x509.SystemCertPool(); err != nil {
			c.RootCAs = x509.NewCertPool()
		}
		if !c.RootCAs.AppendCertsFromPEM(data) {
			return nil, nil, fmt.Errorf("FURL_CA_FILE: %s has no certificate in PEM", name)
		}
	}
	certFile, keyFile := getenv("FURL_CERT_FILE"), getenv("FURL_CERT_KEY_FILE")
	if certFile == "" && keyFile == "" {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked.Store(true)
			return new(tls.Certificate), nil
		}
		return c, asked, nil
	}
	if certFile == "" || keyFile == "" {
		return nil, nil, errors.New("set both FURL_CERT_FILE and FURL_CERT_KEY_FILE")
	}
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, nil, fmt.Errorf("FURL_CERT_FILE: %w", err)
	}
	key, err := private.Read(keyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("FURL_CERT_KEY_FILE: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, nil, fmt.Errorf("FURL_CERT_FILE with FURL_CERT_KEY_FILE: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, asked, nil
}

// ServeHTTP passes a request on. One for another host name is from a web page whose name
// resolves to this machine (DNS rebinding).
func (r *Gateway) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if host, _, err := net.SplitHostPort(req.Host); err != nil || !launch.Loopback(host) {
		http.Error(w, "furl: unknown host name; use "+r.local, http.StatusForbidden)
		return
	}
	r.proxy.ServeHTTP(w, req)
}

func (r *Gateway) rewrite(p *httputil.ProxyRequest) {
	p.SetURL(r.url)
	if r.key != "" && p.Out.Header.Get("X-Furl-Key") == "" {
		p.Out.Header.Set("X-Furl-Key", r.key)
	}
	// For the gateway, its page is the origin of the page's own requests. Others stay
	// requests of other sites.
	if p.In.Header.Get("Origin") == r.local {
		p.Out.Header.Set("Origin", r.url.String())
	}
}

// note notes the session of a response, and lets browsers keep the cookie of a login: the
// connection to this machine is not encrypted.
func (r *Gateway) note(resp *http.Response) error {
	if id := resp.Header.Get("X-Furl-Session"); id != "" {
		r.requests.Add(1)
		r.session.Store(id)
	}
	for i, cookie := range resp.Header["Set-Cookie"] {
		resp.Header["Set-Cookie"][i] = strings.Replace(cookie, "; Secure", "", 1)
	}
	return nil
}

// fail responds to a request that did not reach the gateway, in a form that clients of
// all providers print.
func (r *Gateway) fail(w http.ResponseWriter, req *http.Request, err error) {
	if req.Context().Err() != nil {
		return // the client has disconnected
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]string{"type": "api_error", "message": "furl: " + r.failure(err).Error()}})
}

func (r *Gateway) failure(err error) error {
	text := fmt.Sprintf("the gateway %s did not respond: %s", r.url, NetWords(err))
	if cure := TlsCure(err, r.asked); cure != "" {
		text += "; " + cure
	}
	return errors.New(text)
}

// TlsCure returns what to set for a connection to a gateway that failed because of a
// certificate, "" if it failed for another reason. asked is that of clientTLS.
func TlsCure(err error, asked *atomic.Bool) string {
	switch {
	case otherName(err), expired(err):
		return ""
	case badCertificate(err):
		return "if it has a private authority, set FURL_CA_FILE to the file with its certificate"
	case asked != nil && asked.Load(), strings.Contains(err.Error(), "unknown certificate authority"), strings.Contains(err.Error(), "bad certificate"):
		return "the gateway requires a certificate of its clients' authority: set FURL_CERT_FILE and FURL_CERT_KEY_FILE"
	}
	return ""
}

// Serve passes requests on until while returns. The gateway must respond.
func (r *Gateway) Serve(ctx context.Context, listen string, while func(ctx context.Context, url string) error) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil || !launch.Loopback(host) {
		return usage.Errorf("--listen %s: with --gateway, expected a port of this machine such as 127.0.0.1:7412, because furl sends its key for everybody who can reach it", listen)
	}
	if err := r.responds(ctx); err != nil {
		return err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", listen, err)
	}
	r.local = launch.ReachedAt(ln.Addr().String())
	srv := &http.Server{Handler: r, ReadHeaderTimeout: serving.HeaderTimeout, IdleTimeout: serving.IdleTimeout, MaxHeaderBytes: serving.MaxHeader, ErrorLog: log.New(io.Discard, "", 0)}
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		err := while(working, r.local)
		serving.Drain(srv, serving.PageShutdown)
		return err
	})
	return group.Wait()
}

// responds returns an error unless the gateway responds.
func (r *Gateway) responds(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url.String()+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return r.failure(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("%s responds to /healthz with %s, unlike furl", r.url, resp.Status)
	}
	return nil
}

// Forwarding asks the gateway where it forwards requests. The addresses are unknown if it
// does not respond, or not to this client.
func (r *Gateway) Forwarding(ctx context.Context) launch.Forwarding {
	to := launch.Forwarding{Running: true, FreePort: true, Keep: func(flag, address string) string {
		return "set gateway." + flag + " of " + r.url.String() + " to " + address
	}}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url.String()+"/furl/v1/status", nil)
	if err != nil {
		return to
	}
	if r.key != "" {
		req.Header.Set("X-Furl-Key", r.key)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return to
	}
	defer resp.Body.Close()
	var st gateway.Status
	if resp.StatusCode == http.StatusOK && json.NewDecoder(io.LimitReader(resp.Body, launch.MaxSettings)).Decode(&st) == nil {
		to.Anthropic, to.Openai = cmp.Or(st.Anthropic, "none"), cmp.Or(st.OpenAI, "none")
	}
	return to
}

// Recorded says what the gateway has recorded.
func (r *Gateway) Recorded(w io.Writer) {
	id, _ := r.session.Load().(string)
	if id == "" {
		fmt.Fprintf(w, "furl: no request was recorded by %s\n", r.url)
		return
	}
	fmt.Fprintf(w, "furl: session %s: %s recorded by %s; furl ui --gateway %[3]s %[1]s shows it\n", visible.Text(id), numbers.Count(int(r.requests.Load()), "request"), r.url)
}
