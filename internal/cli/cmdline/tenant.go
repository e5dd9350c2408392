package cmdline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/storage"
	"github.com/spf13/cobra"
)

// HeldWords says what a legal hold keeps.
func HeldWords(h *storage.Hold) string {
	if h.Session == "" {
		return "all sessions of tenant " + TenantWord(h.Tenant)
	}
	if h.Tenant == LocalTenant {
		return "session " + string(h.Session)
	}
	return fmt.Sprintf("session %s of tenant %s", h.Session, TenantWord(h.Tenant))
}

// LocalName is the name of localTenant on the command line.
const LocalName = "local"

// TenantsOf returns the tenants of a store.
func TenantsOf(ctx context.Context, store storage.Store) ([]furl.Tenant, error) {
	lister, ok := store.(storage.TenantLister)
	if !ok {
		return nil, errors.New("this store does not support listing tenants")
	}
	list, err := lister.Tenants(ctx)
	return slices.DeleteFunc(list, func(t furl.Tenant) bool { return t == storage.HoldTenant }), err
}

// TenantWord is the name of a tenant on the command line.
func TenantWord(t furl.Tenant) string {
	if t == LocalTenant {
		return LocalName
	}
	return string(t)
}

// TenantNamed returns the tenant with a name: "local", a full name, or the beginning of
// one tenant's name if that is a hash. Other names are those of people and groups, where
// one may begin another. A full hash need not have sessions yet.
func TenantNamed(ctx context.Context, store storage.Store, word string) (furl.Tenant, error) {
	if word == LocalName {
		return LocalTenant, nil
	}
	if isTenant(word) {
		return furl.Tenant(word), nil
	}
	all, err := TenantsOf(ctx, store)
	if err != nil {
		return "", err
	}
	var found []furl.Tenant
	for _, t := range all {
		if t == furl.Tenant(word) && word != "" {
			return t, nil
		}
		if word != "" && isTenant(string(t)) && strings.HasPrefix(string(t), word) {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return "", UsageError{&unknownTenantError{word}}
	case 1:
		return found[0], nil
	}
	return "", BadUsage("ambiguous tenant %q: %d tenants start with it", word, len(found))
}

// unknownTenantError is the error for a name that no tenant of the store has.
type unknownTenantError struct{ word string }

func (e *unknownTenantError) Error() string {
	return fmt.Sprintf("unknown tenant %q: furl tenants lists the tenants of the store", e.word)
}

// TenantNamedOrNew is tenantNamed for a tenant that need not have sessions yet. It prints a line
// on standard error if it has none, since the name may be misspelled. A word of hexadecimal
// digits is the beginning of a hash, so it must exist.
func TenantNamedOrNew(cmd *cobra.Command, store storage.Store, word string) (furl.Tenant, error) {
	t, err := TenantNamed(cmd.Context(), store, word)
	if _, ok := errors.AsType[*unknownTenantError](err); !ok || isHex(word) || access.CheckTenant(word) != nil {
		return t, err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "furl: tenant %s has no sessions yet\n", word)
	return furl.Tenant(word), nil
}

// isTenant reports whether a word has the form of a full tenant name.
func isTenant(word string) bool {
	return len(word) == len(gateway.TenantOf(nil, "")) && isHex(word)
}

func isHex(word string) bool { return strings.Trim(word, "0123456789abcdef") == "" }
