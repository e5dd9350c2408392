package cmdline

import (
	"errors"
	"fmt"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/access"
	"github.com/furlhq/furl/internal/tenants"
	"github.com/furlhq/furl/storage"
	"github.com/spf13/cobra"
)

// TenantNamedOrNew is tenantNamed for a tenant that need not have sessions yet. It prints a line
// on standard error if it has none, since the name may be misspelled. A word of hexadecimal
// digits is the beginning of a hash, so it must exist.
func TenantNamedOrNew(cmd *cobra.Command, store storage.Store, word string) (furl.Tenant, error) {
	t, err := tenants.Named(cmd.Context(), store, word)
	if _, ok := errors.AsType[*tenants.UnknownError](err); !ok || tenants.IsHex(word) || access.CheckTenant(word) != nil {
		return t, err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "furl: tenant %s has no sessions yet\n", word)
	return furl.Tenant(word), nil
}
