// Package tenants has the tenants of a store: their names, lists and moves.
package tenants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/usage"
	"github.com/furlhq/furl/storage"
)

// Local is the tenant of sessions without a tenant.
const Local = furl.Tenant("")

// LocalName is the name of localTenant on the command line.
const LocalName = "local"

// All returns the tenants of a store.
func All(ctx context.Context, store storage.Store) ([]furl.Tenant, error) {
	lister, ok := store.(storage.TenantLister)
	if !ok {
		return nil, errors.New("this store does not support listing tenants")
	}
	list, err := lister.Tenants(ctx)
	return slices.DeleteFunc(list, func(t furl.Tenant) bool { return t == storage.HoldTenant }), err
}

// Word is the name of a tenant on the command line.
func Word(t furl.Tenant) string {
	if t == Local {
		return LocalName
	}
	return string(t)
}

// Named returns the tenant with a name: "local", a full name, or the beginning of
// one tenant's name if that is a hash. Other names are those of people and groups, where
// one may begin another. A full hash need not have sessions yet.
func Named(ctx context.Context, store storage.Store, word string) (furl.Tenant, error) {
	if word == LocalName {
		return Local, nil
	}
	if isTenant(word) {
		return furl.Tenant(word), nil
	}
	all, err := All(ctx, store)
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
		return "", usage.Wrap(&UnknownError{word})
	case 1:
		return found[0], nil
	}
	return "", usage.Errorf("ambiguous tenant %q: %d tenants start with it", word, len(found))
}

// UnknownError is the error for a name that no tenant of the store has.
type UnknownError struct{ word string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown tenant %q: furl tenants lists the tenants of the store", e.word)
}

// isTenant reports whether a word has the form of a full tenant name.
func isTenant(word string) bool {
	return len(word) == len(gateway.TenantOf(nil, "")) && IsHex(word)
}

// IsHex reports whether a word has hexadecimal digits only, as names that are hashes.
func IsHex(word string) bool { return strings.Trim(word, "0123456789abcdef") == "" }

// Tenant is one tenant of furl tenants --json.
type Tenant struct {
	Tenant   string    `json:"tenant"`
	Sessions int       `json:"sessions"`
	Messages int       `json:"messages"`
	Bytes    int64     `json:"bytes"`
	Newest   time.Time `json:"newest"`
}

// List returns the tenants of a store with the sizes of their sessions, the last used first.
func List(ctx context.Context, store storage.Store) ([]Tenant, error) {
	names, err := All(ctx, store)
	if err != nil {
		return nil, err
	}
	list := []Tenant{}
	for _, name := range names {
		t := Tenant{Tenant: Word(name)}
		for info, err := range store.Sessions(ctx, name, storage.SessionQuery{}) {
			if err != nil {
				return nil, err
			}
			t.Sessions++
			t.Messages += info.Messages
			t.Bytes += info.Bytes
			if at := info.Newest(); at.After(t.Newest) {
				t.Newest = at
			}
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b Tenant) int { return b.Newest.Compare(a.Newest) })
	return list, nil
}
