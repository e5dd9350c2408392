package gateway

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/admission"
	"github.com/furlhq/furl/internal/exchange"
	"github.com/furlhq/furl/internal/quota"
	"github.com/furlhq/furl/upstream"
)

// PlanAccount is what a provider has said about the limits of an account.
type PlanAccount = quota.Account

// Headers that name an account whose credential changes when it is refreshed.
const headerOrganization = "Anthropic-Organization-Id"

// accountOf returns the account that a request was sent for. The fingerprint is of the
// account's id if there is one, since access tokens change, else of the credential. Its key
// is random and forgotten at the end of the process, so it does not help to guess either.
func (c *call) accountOf(response http.Header) quota.Key {
	mac := hmac.New(sha256.New, c.g.accountSecret[:])
	id := c.r.Header.Get(headerChatGPT)
	if token := c.r.Header.Get("Authorization"); id == "" && strings.HasPrefix(token, "Bearer sk-ant-oat") {
		id = response.Get(headerOrganization)
	}
	if id != "" {
		mac.Write([]byte("account " + id))
	} else {
		for _, name := range admission.CredentialHeaders {
			mac.Write([]byte(name + " " + strings.Join(c.r.Header[name], "\x00") + "\x00"))
		}
	}
	return quota.Key{Tenant: tenantOf(c.g.admissionOf(c.r)), Provider: c.rt.up.Vendor(), Account: hex.EncodeToString(mac.Sum(nil)[:6])}
}

// readPlan reads the limits in the header of a response.
func (c *call) readPlan(h http.Header) {
	if s := quota.Read(h, c.g.o.Now()); s != nil {
		c.account = c.accountOf(h)
		c.g.plans.Seen(c.account, s)
	}
}

// usedPlan adds a reply to what its session has used of the limits, and records that if it
// has changed.
func (c *call) usedPlan(r *exchange.Reply) {
	if c.account == (quota.Key{}) || r.RecordErr != nil {
		return
	}
	weight := float64(r.Usage.Prompt() + r.Usage.Output)
	if r.Fit != nil && r.Fit.Account != nil && r.Fit.Account.Priced {
		weight = r.Fit.Account.Cost
	}
	info := c.x.Session.Info()
	c.g.plans.Sent(c.account, info.SessionKey, weight)
	if p := c.g.plans.Session(info.SessionKey); p != nil && quota.Changed(info.Plan, p) {
		if err := c.x.Session.RecordPlan(context.WithoutCancel(c.r.Context()), p); err != nil {
			c.g.log.Warn("limits of the provider could not be recorded", "session", c.x.Session.ID(), "error", upstream.Text(err))
		}
	}
}

// plansOf returns the accounts of a tenant, or of all tenants if it is nil.
func (g *Gateway) plansOf(t *furl.Tenant) []PlanAccount { return g.plans.Accounts(t, g.o.Now()) }

// planMetrics collects the limits of plans: of each provider and window, the account that
// has used the most.
type planMetrics struct {
	g    *Gateway
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (p planMetrics) Describe(to chan<- *prometheus.Desc) { to <- p.desc }

// Collect implements prometheus.Collector. Only windows with known names have labels.
func (p planMetrics) Collect(to chan<- prometheus.Metric) {
	type of struct{ provider, window string }
	most := make(map[of]float64)
	for _, a := range p.g.plansOf(nil) {
		for _, w := range a.Windows {
			switch w.Name {
			case "5h", "7d", "7d_oi", "overage", "requests", "tokens", "input-tokens", "output-tokens":
				k := of{a.Provider, w.Name}
				most[k] = max(most[k], w.Used)
			}
		}
	}
	for k, used := range most {
		to <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue, used, k.provider, k.window)
	}
}
