package encrypted

import (
	"fmt"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// KeyError is the error for encrypted data whose key is missing. Nothing was
// changed.
type KeyError struct {
	Tenant furl.Tenant
	// Master is the id of the master key that is needed, "" if the tenant's own
	// keys are missing.
	Master string
	// Key is the number of the tenant's data key that is needed, 0 for any.
	Key uint32
	// Destroyed is when the keys were destroyed, zero if they were not.
	Destroyed time.Time
	Reason    string
}

func (e *KeyError) Error() string {
	switch {
	case !e.Destroyed.IsZero():
		return fmt.Sprintf("the encryption keys of tenant %q were destroyed at %s: its content cannot be read any more; delete its sessions, or use another tenant",
			e.Tenant, e.Destroyed.Format(time.RFC3339))
	case e.Master != "":
		return fmt.Sprintf("tenant %q is encrypted with master key %s, and %s: set encryption.key_file or encryption.key_env to the key %[2]s", e.Tenant, e.Master, e.Reason)
	case e.Key != 0:
		return fmt.Sprintf("key %d of tenant %q is missing: restore the store's keys with furl encryption import", e.Key, e.Tenant)
	}
	return fmt.Sprintf("the encryption keys of tenant %q are missing: restore them with furl encryption import", e.Tenant)
}

// Is reports whether the error is storage.ErrDestroyed.
func (e *KeyError) Is(target error) bool {
	return target == storage.ErrDestroyed && !e.Destroyed.IsZero()
}
