// Package access says who a client of the gateway is and what it may do: scopes,
// identities, named keys and their file, and limits for each tenant. It has no
// sockets and no files.
package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/lazyregexp"
)

// Scopes are what a client may do, as a set of bits.
type Scopes uint8

// The scopes.
const (
	Proxy   Scopes = 1 << iota // send requests to providers
	Read                       // read the sessions of its tenant
	Change                     // change the sessions of its tenant
	Operate                    // metrics, status and reload, for all tenants

	// Client has the scopes of a client without further rules.
	Client = Proxy | Read | Change
)

var scopeNames = []string{"proxy", "read", "change", "operate"}

// ScopeNames returns the names of all scopes.
func ScopeNames() []string { return slices.Clone(scopeNames) }

// ParseScopes returns the scopes with these names. Without names, there are none.
func ParseScopes(names []string) (s Scopes, err error) {
	for _, name := range names {
		i := slices.Index(scopeNames, name)
		if i < 0 {
			return 0, fmt.Errorf("unknown scope %.40q: choose one of %s", name, strings.Join(scopeNames, ", "))
		}
		s |= 1 << i
	}
	return s, nil
}

// Names returns the names of the scopes in their order.
func (s Scopes) Names() []string {
	names := []string{}
	for i, name := range scopeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names, separated by commas.
func (s Scopes) String() string { return strings.Join(s.Names(), ",") }

// Has reports whether all scopes of need are in s.
func (s Scopes) Has(need Scopes) bool { return s&need == need }

// Identity is who sends a request.
type Identity struct {
	// Name identifies the client in the audit log. It is never a secret.
	Name string
	// By says how the client was identified.
	By By
	// Tenant has the sessions that it reads and changes. "" is a tenant too: that
	// of a gateway without tenants.
	Tenant furl.Tenant
	Scopes Scopes
	// Expires is when a token expires, zero for other ways.
	Expires time.Time
	// Signer identifies the key that has signed a token, and what the token had to say: a
	// login with it ends when TokenVerifier.Trusts is false. It is not a secret.
	Signer string
}

// By is a way to identify a client.
type By string

// The ways.
const (
	ByNothing     By = "anonymous"   // nothing is required
	ByKey         By = "key"         // a named key
	ByClientKey   By = "client_key"  // a key without a name
	ByOperatorKey By = "operator"    // the operator's key
	ByToken       By = "token"       // an OpenID Connect token
	ByProxy       By = "proxy"       // a header of a trusted proxy
	ByCertificate By = "certificate" // a certificate of the client
	ByShell       By = "shell"       // the command line
)

// ErrUnavailable means that a client cannot be identified now, through no fault of its
// own.
var ErrUnavailable = errors.New("try again later")

// Label returns a label for metrics. The number of its values is bounded by the number
// of named keys.
func (i *Identity) Label() string {
	if i.By == ByKey {
		return i.Name
	}
	return string(i.By)
}

// maxName is the longest name of a key, a tenant or a user, in bytes.
const maxName = 128

var (
	keyName    = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$`)
	tenantName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.@|:+/=-]*$`)
	tenantHash = lazyregexp.New(`^[0-9a-f]{32}$`)
)

// CheckKeyName returns an error for a name that a key cannot have.
func CheckKeyName(name string) error {
	if !keyName.MatchString(name) {
		return fmt.Errorf("invalid name of a key %.80q: expected 1 to 64 letters, digits and _ . @ -, a letter or digit first", name)
	}
	return nil
}

// CheckTenant returns an error for a name that is not one of a tenant. "local" is the
// tenant of the command line.
func CheckTenant(name string) error {
	if len(name) > maxName || !tenantName.MatchString(name) || name == "local" {
		return fmt.Errorf("invalid name of a tenant %.140q: expected 1 to %d letters, digits and _ . @ | : + / = -, and not local", name, maxName)
	}
	return nil
}

// ClaimedTenant is CheckTenant for a name that a user may have chosen. It also refuses
// names of the form in which the gateway hashes client keys and credentials, so that
// nobody can claim the sessions of such a tenant.
func ClaimedTenant(name string) (furl.Tenant, error) {
	if tenantHash.MatchString(name) {
		return "", fmt.Errorf("invalid name of a tenant %q: 32 hexadecimal digits are for tenants of client keys", name)
	}
	return furl.Tenant(name), CheckTenant(name)
}
