// Package doctor checks stores, and running gateways as a client on this machine, and says what
// to do about each problem.
package doctor

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/launch"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/remote"
	"github.com/furlhq/furl/internal/serving"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/internal/workspace"
)

// The states of a finding.
const (
	findingFine    = "ok"
	findingWarning = "warning"
	findingProblem = "problem"
)

// Finding is the result of one check of furl doctor --gateway.
type Finding struct {
	Check string `json:"check"`
	State string `json:"state"`
	Text  string `json:"text"`
	// Gateway is the gateway's host and port if several are checked.
	Gateway string `json:"gateway,omitempty"`
	// Cure is the remedy, if there is one.
	Cure string `json:"cure,omitempty"`
}

// gatewayDoctor checks running gateways as a client on this machine.
type gatewayDoctor struct {
	url      *url.URL // the gateway that is checked
	fleet    *fleetDoctor
	key      string // for the gateway, "" for none
	http     *http.Client
	own      *http.Client // for the gateway; nil: http
	asked    *atomic.Bool // see clientTLS
	getenv   func(string) string
	now      func() time.Time
	findings []Finding
}

// Configured is the value of --gateway without an address: the gateway of the
// configuration.
const Configured = "configured"

// Gateways checks gateways at addresses, which are separated by commas, as a client on
// this machine with its configuration. With only, it returns an error unless each accepts
// requests, and no report.
func Gateways(ctx context.Context, w *workspace.Workspace, addresses string, only bool) (*Report, error) {
	d := &gatewayDoctor{getenv: os.Getenv, now: time.Now, http: remote.PlainClient()}
	c, file := d.config(w)
	if addresses == Configured {
		addresses = launch.GatewayAt(cmp.Or(c.Gateway.Listen, config.DefaultListen), c)
	}
	var all []*url.URL
	for address := range strings.SplitSeq(addresses, ",") {
		u, err := remote.URL(strings.TrimSpace(address))
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	if !only {
		d.keys(c, file)
		d.access(c, file)
		d.issuer(ctx, c)
	}
	if len(all) > 1 {
		d.fleet = newFleetDoctor()
	}
	for _, d.url = range all {
		if d.own, d.asked = nil, nil; d.url.Scheme == "https" {
			d.trust(c, file)
		}
		if only {
			if err := d.ready(ctx); err != nil {
				return nil, err
			}
			continue
		}
		d.examine(ctx)
	}
	if only {
		return nil, nil
	}
	if d.fleet != nil {
		d.compare()
	}
	return d.report(), nil
}

func (d *gatewayDoctor) found(check, state, cure, format string, args ...any) {
	f := Finding{Check: check, State: state, Text: fmt.Sprintf(format, args...), Cure: cure}
	if d.fleet != nil && d.url != nil {
		f.Gateway = d.url.Host
	}
	d.findings = append(d.findings, f)
}

// config reads the configuration file. An error is a finding.
func (d *gatewayDoctor) config(w *workspace.Workspace) (c *config.Config, name string) {
	c, name, err := config.Load(w.Config, w.Policies)
	switch {
	case err != nil:
		d.found("configuration", findingProblem, "correct the file and run furl config check; a running gateway keeps its settings", "%s", err)
		return &config.Config{}, ""
	case name == "":
		d.found("configuration", findingFine, "", "no file, using the defaults")
	default:
		d.found("configuration", findingFine, "", "%s is valid", name)
	}
	return c, name
}

// keys chooses the key to send: that of the environment, else an operator key, else a
// client key of the configuration. Key files that the gateway would refuse are
// findings.
func (d *gatewayDoctor) keys(c *config.Config, file string) {
	for _, e := range serving.PrivateFiles(c, file) {
		d.found("key file", findingProblem, e.Cure, "%s has mode %04o: other users can read it, so the gateway refuses it", visible.Text(e.Name), e.Mode)
	}
	d.key = d.getenv("FURL_KEY")
	for _, read := range []func(*config.Config, string) ([]string, error){serving.OperatorKeys, serving.ClientKeys} {
		// This shell need not have the gateway's key.
		if keys, err := read(c, file); d.key == "" && err == nil && len(keys) > 0 {
			d.key = keys[0]
		}
	}
}

func (d *gatewayDoctor) examine(ctx context.Context) {
	if d.alive(ctx) {
		if st := d.status(ctx); st != nil {
			d.clock(st.Now, "the gateway's")
			d.stream(ctx)
			d.provider(ctx, "anthropic", st.Anthropic)
			d.provider(ctx, "openai", st.OpenAI)
			if st.Gemini != workspace.GeminiAddress { // not all who use furl use it
				d.provider(ctx, "gemini", st.Gemini)
			}
			if st.ChatGPT != workspace.ChatGPTAddress { // few people need it, and some networks block it
				d.provider(ctx, "chatgpt", st.ChatGPT)
			}
			d.fleet.add(d.url.Host, st)
		}
	}
	if d.fleet == nil { // the shell's variables name one gateway, or a balancer
		d.environment()
	}
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
	if d.own != nil {
		return d.own.Do(req)
	}
	return d.http.Do(req)
}

// ready returns an error unless the gateway accepts requests.
func (d *gatewayDoctor) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, remote.Timeout)
	defer cancel()
	resp, err := d.ask(ctx, http.MethodGet, "/readyz")
	if err != nil {
		return fmt.Errorf("%s did not respond: %s", d.url, remote.NetWords(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	why, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err != nil {
		return fmt.Errorf("%s: %w", d.url, err)
	}
	return fmt.Errorf("%s accepts no requests: %s %s", d.url, resp.Status, visible.Text(strings.TrimSpace(string(why))))
}

// alive reports whether a gateway responds.
func (d *gatewayDoctor) alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, remote.Timeout)
	defer cancel()
	resp, err := d.ask(ctx, http.MethodGet, "/healthz")
	if err != nil {
		cure := cmp.Or(remote.TlsCure(err, d.asked), "start it with furl serve, or name its address: furl doctor --gateway http://HOST:PORT")
		d.found("reachable", findingProblem, cure, "%s did not respond: %s", d.url, remote.NetWords(err))
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		d.found("reachable", findingProblem, "another program listens there, or a proxy in front of the gateway responds; choose another address with furl serve --listen", "%s responds to /healthz with %s, unlike furl", d.url, resp.Status)
		return false
	}
	d.found("reachable", findingFine, "", "%s responds", d.url)
	return true
}

// status requests the gateway's status.
func (d *gatewayDoctor) status(ctx context.Context) *gateway.Status {
	ctx, cancel := context.WithTimeout(ctx, remote.Timeout)
	defer cancel()
	resp, err := d.ask(ctx, http.MethodGet, "/furl/v1/status"+d.fleet.query())
	if err != nil {
		d.found("status", findingProblem, "", "the gateway's API did not respond: %s", remote.NetWords(err))
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	st := &gateway.Status{}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		d.found("key", findingProblem, "export FURL_KEY=… with the operator key or a client key of the gateway", "the gateway requires a key, and this shell has no valid one")
		return nil
	case resp.StatusCode == http.StatusForbidden:
		d.found("status", findingProblem, "add the name to gateway.hosts", "the gateway does not accept the host name %s", d.url.Hostname())
		return nil
	case err != nil || resp.StatusCode != http.StatusOK || json.Unmarshal(body, st) != nil:
		d.found("status", findingProblem, "restart the gateway after an update; furl version prints the installed version", "%s responds with %s: an older furl, or another program", d.url, resp.Status)
		return nil
	}
	d.judge(st)
	return st
}

// judge adds the findings of a status.
func (d *gatewayDoctor) judge(st *gateway.Status) {
	if st.Version == workspace.Version() {
		d.found("version", findingFine, "", "%s, up for %s", visible.Text(st.Version), d.now().Sub(st.Started).Round(time.Second))
	} else {
		d.found("version", findingWarning, "restart the gateway to run the installed version", "the gateway is %s, this command is %s", visible.Text(st.Version), workspace.Version())
	}
	if st.NotReady == "" {
		d.found("ready", findingFine, "", "it accepts requests; %s in progress, %s in memory", numbers.Count(st.UnderWay, "request"), numbers.Count(st.Sessions, "session"))
	} else {
		d.found("ready", findingProblem, "check the store with furl doctor; a gateway that is draining stops soon", "it accepts no requests: %s", visible.Text(st.NotReady))
	}
	if st.DryRun {
		d.found("dry run", findingWarning, "set gateway.dry_run: false, or omit --dry-run", "dry run: it reports what it would hide, and hides nothing")
	}
	d.certificate(st.CertificateExpires)
	d.totals(st)
}

// totals adds the findings of the gateway's totals.
func (d *gatewayDoctor) totals(st *gateway.Status) {
	if st.Totals == nil {
		d.found("store", findingFine, "", "not checked: with tenants, store failures require the operator key in FURL_KEY")
		return
	}
	if st.StoreErrors+st.Failed+st.Unrecorded > 0 {
		d.found("store", findingWarning, "see the gateway's log, and check the store with furl doctor", "since the gateway started: %d store errors, %s not prepared, %s not recorded",
			st.StoreErrors, numbers.Count(int(st.Failed), "request"), numbers.Count(int(st.Unrecorded), "response"))
	} else {
		d.found("store", findingFine, "", "no errors since the gateway started; furl doctor without --gateway checks its contents")
	}
	d.windows(st)
	d.unknownTypes(st)
}

// windows warns of models without a known context window.
func (d *gatewayDoctor) windows(st *gateway.Status) {
	if n := st.UnknownWindows; n > 0 {
		d.found("models", findingWarning, "set --window, or add them to a catalogue (key catalog of the configuration); the gateway's log has their names",
			"the context window of %s is unknown: nothing is hidden until the provider reports it", numbers.Count(n, "model"))
	}
	if n := st.AssumedModels; n > 0 {
		d.found("models", findingWarning, "furl models lists them; add what you know to a catalogue (key catalog of the configuration), or update furl",
			"the catalogue lacks %s: rules and window of similar models are assumed", numbers.Count(n, "requested model"))
	}
}

// unknownTypes lists the types in requests that furl does not know.
func (d *gatewayDoctor) unknownTypes(st *gateway.Status) {
	if len(st.UnknownTypes) == 0 {
		return
	}
	d.found("types", findingWarning, "a newer version of furl may know them", "%s", strings.TrimSuffix(UnknownTypes(st.UnknownTypes, "request"), "."))
}

// UnknownTypes says which types furl does not know, and in how many of what they are.
func UnknownTypes(count map[string]int, what string) string {
	var list []string
	for _, typ := range slices.Sorted(maps.Keys(count)) {
		list = append(list, fmt.Sprintf("%s in %s", visible.Line(typ), numbers.Count(count[typ], what)))
	}
	return "furl does not know these types of blocks, and never hides their steps: " + strings.Join(list, ", ") + "."
}

// maxSkew is the largest difference between two clocks without a warning.
const maxSkew = 2 * time.Minute

// clock compares a time with this machine's clock.
func (d *gatewayDoctor) clock(theirs time.Time, whose string) {
	if theirs.IsZero() {
		return
	}
	// A Date header is in whole seconds, and the response took time.
	if skew := d.now().Sub(theirs).Round(10 * time.Second); skew.Abs() > maxSkew {
		d.found("clock", findingWarning, "synchronize the clock, for example with NTP: ages, caches and certificates depend on it", "this machine's clock and %s differ by about %s", whose, skew.Abs())
	}
}

// stream checks whether events of streams arrive without delay.
func (d *gatewayDoctor) stream(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, remote.Timeout)
	defer cancel()
	resp, err := d.ask(ctx, http.MethodGet, "/furl/v1/echo")
	if err != nil {
		d.found("streams", findingProblem, "", "the test stream failed: %s", remote.NetWords(err))
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
		d.found("streams", findingProblem, "turn off buffering of text/event-stream in proxies, such as proxy_buffering off in nginx", "a proxy in front of the gateway buffers streams until they end")
	default:
		d.found("streams", findingWarning, "", "the test stream ended with %s and without events", resp.Status)
	}
}

// provider sends a request without credentials to a provider.
func (d *gatewayDoctor) provider(ctx context.Context, name, address string) {
	if address == "" || d.fleet.asked(address) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, remote.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		d.found(name, findingProblem, "correct gateway."+name+" in the configuration file", "invalid address %s", visible.Text(address))
		return
	}
	resp, err := d.http.Do(req)
	if err != nil {
		d.found(name, findingProblem, remote.NetCure(err), "cannot connect to %s: %s", visible.Text(address), remote.NetWords(err))
		return
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusProxyAuthRequired:
		d.found(name, findingProblem, "add a user and a password to the proxy URL of the environment", "the proxy requires authentication for %s", visible.Text(address))
	case resp.StatusCode >= 500:
		d.found(name, findingWarning, "see the provider's status page", "%s responds with %s", visible.Text(address), resp.Status)
	default: // an error status is normal without a credential
		d.found(name, findingFine, "", "%s responds (status %d without a credential)", visible.Text(address), resp.StatusCode)
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		d.clock(date, name+"'s")
	}
}

// Report is what furl doctor says of gateways.
type Report struct {
	Findings []Finding `json:"findings"`
	Gateway  string    `json:"gateway,omitempty"` // its URL, if one is checked
	Problems int       `json:"problems"`
}

// report counts the problems.
func (d *gatewayDoctor) report() *Report {
	r := &Report{Findings: d.findings}
	for _, f := range d.findings {
		if f.State == findingProblem {
			r.Problems++
		}
	}
	if d.fleet == nil {
		r.Gateway = d.url.String()
	}
	return r
}
