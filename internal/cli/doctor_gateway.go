package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/config"
)

// The states of a finding.
const (
	findingFine    = "ok"
	findingWarning = "warning"
	findingProblem = "problem"
)

// finding is one thing that furl doctor --gateway has looked at.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"`
	Text  string `json:"text"`
	// Cure is what to do about it, "" if nothing is to be done.
	Cure string `json:"cure,omitempty"`
}

// gatewayDoctor looks at a running gateway from where its clients are.
type gatewayDoctor struct {
	url      *url.URL
	key      string // of the gateway's own, "" for none
	http     *http.Client
	getenv   func(string) string
	now      func() time.Time
	findings []finding
}

// configuredGateway asks for the address that the configuration has.
const configuredGateway = "configured"

// doctorTimeout bounds each question.
const doctorTimeout = 15 * time.Second

// examineGateway is furl doctor --gateway.
func (f *storeFlags) examineGateway(cmd *cobra.Command, address string, only bool) error {
	d := &gatewayDoctor{getenv: os.Getenv, now: time.Now, http: plainClient()}
	c, file := d.config(f.config, f.program)
	if address == configuredGateway {
		address = cmp.Or(c.Gateway.Listen, config.DefaultListen)
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	var err error
	if d.url, err = url.Parse(address); err != nil || d.url.Host == "" || d.url.Scheme != "http" && d.url.Scheme != "https" {
		return badUsage("--gateway %s: want an address such as http://%s", address, config.DefaultListen)
	}
	d.url = &url.URL{Scheme: d.url.Scheme, Host: reachableHost(d.url.Host)}
	if only {
		return d.ready(cmd.Context())
	}
	d.keys(c, file)
	d.examine(cmd.Context())
	return d.report(cmd.OutOrStdout(), f.json)
}

// reachableHost is where a gateway is reached that listens on all addresses.
func reachableHost(hostport string) string {
	host, port, err := net.SplitHostPort(hostport)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return hostport
}

// plainClient asks without following anything anywhere.
func plainClient() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (d *gatewayDoctor) found(check, state, cure, format string, args ...any) {
	d.findings = append(d.findings, finding{check, state, fmt.Sprintf(format, args...), cure})
}

// config reads the file, whatever is wrong with it.
func (d *gatewayDoctor) config(file string, p program) (c *config.Config, name string) {
	c, name, err := config.Load(file, p.policies)
	switch {
	case err != nil:
		d.found("configuration", findingProblem, "correct the file; furl config check reads it again. A running gateway keeps the settings it has", "%s", err)
		return &config.Config{}, ""
	case name == "":
		d.found("configuration", findingFine, "", "no file; the defaults apply")
	default:
		d.found("configuration", findingFine, "", "%s makes sense", name)
	}
	return c, name
}

// keys chooses the key to show: that of the environment, else an operator key of
// the configuration, which sees all, else a client key. Files of keys that the
// gateway would refuse are findings.
func (d *gatewayDoctor) keys(c *config.Config, file string) {
	for _, e := range privateFiles(c, file) {
		d.found("key file", findingProblem, e.cure, "%s has mode %04o, so others can read it: the gateway refuses it", printable(e.name), e.mode)
	}
	d.key = d.getenv("FURL_KEY")
	for _, read := range []func(*config.Config, string) ([]string, error){operatorKeys, clientKeys} {
		// A key that this shell does not have is not a finding: the gateway has it.
		if keys, err := read(c, file); d.key == "" && err == nil && len(keys) > 0 {
			d.key = keys[0]
		}
	}
}

func (d *gatewayDoctor) examine(ctx context.Context) {
	if !d.alive(ctx) {
		d.environment()
		return
	}
	if st := d.status(ctx); st != nil {
		d.clock(st.Now, "the gateway's")
		d.stream(ctx)
		d.provider(ctx, "anthropic", st.Anthropic)
		d.provider(ctx, "openai", st.OpenAI)
	}
	d.environment()
}

// ask sends a request to the gateway.
func (d *gatewayDoctor) ask(ctx context.Context, method, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, d.url.String()+path, nil)
	if err != nil {
		return nil, err
	}
	if d.key != "" {
		req.Header.Set("X-Furl-Key", d.key)
	}
	return d.http.Do(req)
}

// ready is an error unless the gateway takes work.
func (d *gatewayDoctor) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	resp, err := d.ask(ctx, http.MethodGet, "/readyz")
	if err != nil {
		return fmt.Errorf("%s does not answer: %s", d.url, netWords(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	why, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err != nil {
		return fmt.Errorf("%s: %w", d.url, err)
	}
	return fmt.Errorf("%s takes no work: %s %s", d.url, resp.Status, printable(strings.TrimSpace(string(why))))
}

// alive reports whether something that may be furl answers.
func (d *gatewayDoctor) alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	resp, err := d.ask(ctx, http.MethodGet, "/healthz")
	if err != nil {
		state, cure := findingProblem, "start it with furl serve, or name its address: furl doctor --gateway http://HOST:PORT"
		d.found("reachable", state, cure, "%s does not answer: %s", d.url, netWords(err))
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		d.found("reachable", findingProblem, "another program listens there, or is in front of the gateway; furl serve --listen takes another address", "%s answers /healthz with %s, which is not what furl says", d.url, resp.Status)
		return false
	}
	d.found("reachable", findingFine, "", "%s answers", d.url)
	return true
}

// status asks how the gateway is.
func (d *gatewayDoctor) status(ctx context.Context) *gateway.Status {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	resp, err := d.ask(ctx, http.MethodGet, "/furl/v1/status")
	if err != nil {
		d.found("status", findingProblem, "", "the gateway's own API does not answer: %s", netWords(err))
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	st := &gateway.Status{}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		d.found("key", findingProblem, "export FURL_KEY=… with the operator key or one of the gateway's client keys, and send it in X-Furl-Key", "the gateway asks for a key, and this shell has none that it takes")
		return nil
	case resp.StatusCode == http.StatusForbidden:
		d.found("status", findingProblem, "add the name to gateway.hosts", "the gateway does not know itself by the name %s", d.url.Hostname())
		return nil
	case err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(body, st) != nil:
		d.found("status", findingProblem, "furl version says what is installed; start the gateway anew after an update", "%s answers with %s: an older furl, or something else", d.url, resp.Status)
		return nil
	}
	d.judge(st)
	return st
}

// judge says what a status means.
func (d *gatewayDoctor) judge(st *gateway.Status) {
	if st.Version == version() {
		d.found("version", findingFine, "", "%s, up for %s", printable(st.Version), d.now().Sub(st.Started).Round(time.Second))
	} else {
		d.found("version", findingWarning, "start the gateway anew, to have it run what is installed", "the gateway is %s, this is %s", printable(st.Version), version())
	}
	if st.NotReady == "" {
		d.found("ready", findingFine, "", "it takes work; %s under way, %s in memory", plural(st.UnderWay, "request"), plural(st.Sessions, "session"))
	} else {
		d.found("ready", findingProblem, "furl doctor examines the store; a gateway that is draining comes to its end", "it takes no work: %s", printable(st.NotReady))
	}
	if st.DryRun {
		d.found("dry run", findingWarning, "gateway.dry_run: false, or no --dry-run, once you trust it", "it only says what it would hide, and hides nothing")
	}
	d.totals(st)
}

// totals says what the counts of the whole gateway mean.
func (d *gatewayDoctor) totals(st *gateway.Status) {
	if st.Totals == nil {
		d.found("store", findingFine, "", "not checked: with tenants on, only the operator sees store failures; set FURL_KEY to the operator key")
		return
	}
	if st.StoreErrors+st.Failed+st.Unrecorded > 0 {
		d.found("store", findingWarning, "the gateway's log says why; furl doctor examines the store", "since it was started, the store failed %d times, %s could not be prepared, %s not recorded",
			st.StoreErrors, plural(int(st.Failed), "request"), plural(int(st.Unrecorded), "answer"))
	} else {
		d.found("store", findingFine, "", "it has answered every request since the gateway was started; furl doctor examines what is in it")
	}
	d.windows(st)
}

// windows warns of models that are only passed on.
func (d *gatewayDoctor) windows(st *gateway.Status) {
	if n := st.UnknownWindows; n > 0 {
		d.found("models", findingWarning, "--window, or a catalogue with them (furl config init shows the key); the gateway's log has their names",
			"the window of %s is not known: nothing is hidden for want of room until the provider says it", plural(n, "model"))
	}
}

// maxSkew is how far two clocks may be apart.
const maxSkew = 2 * time.Minute

// clock compares somebody's time with this machine's.
func (d *gatewayDoctor) clock(theirs time.Time, whose string) {
	if theirs.IsZero() {
		return
	}
	if skew := d.now().Sub(theirs).Round(time.Second); skew.Abs() > maxSkew {
		d.found("clock", findingWarning, "set the clock by the network: what furl knows of ages, caches and certificates goes by it", "this machine's clock and %s are %s apart", whose, skew.Abs())
	}
}

// stream finds out whether streams come through at once.
func (d *gatewayDoctor) stream(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	resp, err := d.ask(ctx, http.MethodGet, "/furl/v1/echo")
	if err != nil {
		d.found("streams", findingProblem, "", "no stream comes through: %s", netWords(err))
		return
	}
	defer resp.Body.Close()
	event := ""
	for in := bufio.NewScanner(io.LimitReader(resp.Body, 1<<16)); in.Scan(); {
		if name, ok := strings.CutPrefix(in.Text(), "event: "); ok {
			event = name
		}
		if word, ok := strings.CutPrefix(in.Text(), "data: "); ok && event == "word" {
			if said, err := d.ask(ctx, http.MethodPost, "/furl/v1/echo/"+url.PathEscape(word)); err == nil {
				_ = said.Body.Close()
			}
		}
	}
	switch event {
	case "heard":
		d.found("streams", findingFine, "", "events of a stream arrive as they are sent")
	case "late":
		d.found("streams", findingProblem, "proxies in between must not buffer text/event-stream: in nginx proxy_buffering off, in others a setting of that kind", "something between here and the gateway holds streams back until they end")
	default:
		d.found("streams", findingWarning, "", "the stream ended with %s, and no answer", resp.Status)
	}
}

// provider asks a provider's address for anything at all, without a credential.
func (d *gatewayDoctor) provider(ctx context.Context, name, address string) {
	if address == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		d.found(name, findingProblem, "gateway."+name+" in the configuration names it", "%s is no address", printable(address))
		return
	}
	resp, err := d.http.Do(req)
	if err != nil {
		d.found(name, findingProblem, netCure(err), "%s cannot be reached from here: %s", printable(address), netWords(err))
		return
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusProxyAuthRequired:
		d.found(name, findingProblem, "the proxy of the environment wants a user and a password in its address", "%s is behind a proxy that does not let this through", printable(address))
	case resp.StatusCode >= 500:
		d.found(name, findingWarning, "the provider's status page may say more", "%s answers with %s", printable(address), resp.Status)
	default: // without a credential hardly anything is a success
		d.found(name, findingFine, "", "%s answers (%d to a request without a credential)", printable(address), resp.StatusCode)
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		d.clock(date, name+"'s")
	}
}

// report prints what was found.
func (d *gatewayDoctor) report(w io.Writer, asJSON bool) error {
	problems := 0
	for _, f := range d.findings {
		if f.State == findingProblem {
			problems++
		}
	}
	var err error
	if asJSON {
		err = printJSON(w, map[string]any{"findings": d.findings, "problems": problems, "gateway": d.url.String()})
	} else {
		for _, f := range d.findings {
			if _, err = fmt.Fprintf(w, "%-8s %s: %s\n", f.State, f.Check, f.Text); err == nil && f.Cure != "" {
				_, err = fmt.Fprintf(w, "%-8s   %s\n", "", f.Cure)
			}
		}
	}
	if err == nil && problems > 0 {
		err = errors.New(plural(problems, "problem"))
	}
	return err
}
