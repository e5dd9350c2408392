// Package admission decides which requests a gateway serves: who sends a request, with
// which scopes and for which tenant, whether a limit of the tenant refuses it, which of
// its credentials must not reach a provider, and what the audit log says about it. It
// also makes and checks the logins of the page.
//
// A gateway with none of that configured has no Guard and runs no function of this
// package.
package admission

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/audit"
)

// Options are the settings of a Guard. A gateway needs one unless all of them are zero.
type Options struct {
	// ClientKeys and OperatorKeys are keys without names.
	ClientKeys, OperatorKeys []string
	// Keys are named keys. If not nil, clients must identify themselves, even if it is
	// empty.
	Keys *access.Keys
	// Tokens verifies tokens that identify clients.
	Tokens TokenVerifier
	// Proxy is a proxy that identifies its users.
	Proxy *TrustedProxy
	// Certificate is the part of a client's certificate that names the client, such as
	// Subject.
	Certificate string
	// TenantSecret keys the hash that names a tenant, and TenantBy is the part of a
	// request that identifies its tenant. Without a secret, all clients are one tenant.
	TenantSecret []byte
	TenantBy     TenantBy
	// Limits are what each tenant may use.
	Limits *access.LimitSet
	// Audit records accesses. AuditRequired refuses requests whose access cannot be
	// recorded.
	Audit         AuditLog
	AuditRequired bool
}

// Identifies reports whether clients must identify themselves.
func (o *Options) Identifies() bool {
	return len(o.ClientKeys) > 0 || o.Keys != nil || o.Tokens != nil || o.Proxy != nil || o.Certificate != ""
}

// Env has the parts of the gateway that a Guard uses.
type Env struct {
	State *State
	Now   func() time.Time
	Log   *slog.Logger
	// Unaudited is called for each entry that the audit log does not accept.
	Unaudited func()
}

// State is passed on when a Guard is replaced by one with other options: the usage of
// tenants, and the number of refusals. The zero value is ready to use.
type State struct {
	usage    access.Usage
	refusals refusals
}

// TrustedProxy is a proxy in front of the gateway.
type TrustedProxy struct {
	Header   string         // with the name of the user and tenant
	Networks []netip.Prefix // the addresses of the proxy
}

// Error is the reason for refusing a request, with the HTTP status of the response.
type Error struct {
	Status int
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func unauthorized(format string, args ...any) error {
	return &Error{http.StatusUnauthorized, fmt.Errorf(format, args...)}
}

func forbidden(format string, args ...any) error {
	return &Error{http.StatusForbidden, fmt.Errorf(format, args...)}
}

// Guard decides about requests. It is safe for concurrent use.
type Guard struct {
	o          Options
	env        Env
	keys       *access.Keys // of clients and operators
	clientKeys bool         // clients may have a key
	operators  bool         // there are keys for operators
	required   bool         // clients must identify themselves
	loginKeys  []loginKey   // of the cookies of the page, one for each client key
}

// New returns a Guard, or an error if its options contradict each other.
func New(o *Options, env *Env) (*Guard, error) {
	g := &Guard{o: *o, env: *env}
	g.o.TenantSecret = slices.Clone(o.TenantSecret)
	g.clientKeys = len(o.ClientKeys) > 0 || o.Keys != nil
	g.required = o.Identifies()
	for _, key := range o.OperatorKeys {
		if slices.Contains(o.ClientKeys, key) {
			return nil, errors.New("an operator key is also a client key: use different keys")
		}
	}
	var err error
	if g.o.TenantBy, err = g.checkTenantBy(); err != nil {
		return nil, err
	}
	g.keys = g.allKeys()
	g.operators = slices.ContainsFunc(g.keys.All(), func(k access.Key) bool { return k.Scopes.Has(access.Operate) && k.By != access.ByClientKey })
	g.loginKeys = g.newLoginKeys()
	return g, nil
}

// allKeys returns the keys of clients and operators.
func (g *Guard) allKeys() *access.Keys {
	list := slices.Clone(g.o.Keys.All())
	client := access.Client
	if g.o.TenantBy == "" {
		client |= access.Operate // its sessions are all there are
	}
	for _, secret := range g.o.ClientKeys {
		list = append(list, access.Unnamed(secret, access.ByClientKey, client))
	}
	for _, secret := range g.o.OperatorKeys {
		list = append(list, access.Unnamed(secret, access.ByOperatorKey, access.Operate))
	}
	return access.NewKeys(list)
}

// Required reports whether clients must identify themselves.
func (g *Guard) Required() bool { return g.required }

// TenantBy returns what identifies a tenant, "" if all clients are one.
func (g *Guard) TenantBy() TenantBy { return g.o.TenantBy }

// NeedsKey reports whether a client needs a key that only its own program can send.
// Without one, or with what a browser sends unasked (the header of a proxy, a
// certificate), a page of another site can make a browser send a request that is
// admitted.
func (g *Guard) NeedsKey() bool {
	return g.clientKeys && g.o.Proxy == nil && g.o.Certificate == ""
}

// Admission is the decision about a request.
type Admission struct {
	// Who sends the request, as far as that is known. An admitted client has a tenant,
	// unless it is only for operators.
	Who access.Identity
	// LoggedIn reports that the cookie of a login identifies the client.
	LoggedIn bool
	// Refused is why the client is refused, nil if it is admitted.
	Refused error

	g     *Guard
	sent  credentials
	entry *audit.Entry // of the audit log; nil: none
}

// Admit decides about a request that needs one of the scopes. It returns an *Error if the
// request is refused: because of its client, or because its access must be written down
// and cannot be. The Admission is never nil.
func (g *Guard) Admit(r *http.Request, need access.Scopes) (*Admission, error) {
	a := &Admission{g: g, sent: g.credentialsOf(r)}
	a.Refused = a.decide(r, need)
	return a, a.record(r, need)
}

// Labels returns the labels of the decision for metrics: the client, and accepted,
// refused, expired or revoked.
func (a *Admission) Labels() (client, result string) {
	client, result = a.Who.Label(), "accepted"
	if client == "" {
		client = "unknown"
	}
	if e, ok := errors.AsType[*access.EndedError](a.Refused); ok {
		result = e.Reason
	} else if a.Refused != nil {
		result = "refused"
	}
	return client, result
}

// Operates reports whether the client may see the data of all tenants.
func (a *Admission) Operates() bool { return a.Who.Scopes.Has(access.Operate) }
