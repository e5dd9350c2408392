package access

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Key is a key of a client. Only its hash is kept. A key is random, so its hash needs
// no salt and no slow function.
type Key struct {
	Name string
	// Hash is the SHA-256 of the secret.
	Hash [sha256.Size]byte
	// Tenant is the tenant of the key's holder. If empty, Name.
	Tenant string
	Scopes Scopes
	// By is ByKey for keys of a file.
	By      By
	Created time.Time
	// Expires and Revoked are when the key ends, zero for never.
	Expires, Revoked time.Time
}

// KeyPrefix begins the secrets that furl makes. They are never credentials of a
// provider.
const KeyPrefix = "furl_"

// NewKey returns a key with a random secret of 260 bits. The secret is not kept.
func NewKey(name, tenant string, s Scopes, now, expires time.Time) (Key, string, error) {
	k := Key{Name: name, Tenant: tenant, Scopes: s, By: ByKey, Created: now.UTC().Truncate(time.Second), Expires: expires.UTC().Truncate(time.Second)}
	if expires.IsZero() {
		k.Expires = time.Time{}
	}
	if err := k.check(); err != nil {
		return Key{}, "", err
	}
	secret := KeyPrefix + strings.ToLower(rand.Text()+rand.Text())
	k.Hash = sha256.Sum256([]byte(secret))
	return k, secret, nil
}

// Unnamed returns a key with a secret that the operator has chosen.
func Unnamed(secret string, by By, s Scopes) Key {
	return Key{Name: string(by), Hash: sha256.Sum256([]byte(secret)), Scopes: s, By: by}
}

func (k *Key) check() error {
	if err := CheckKeyName(k.Name); err != nil {
		return err
	}
	if k.Scopes == 0 {
		return fmt.Errorf("key %q has no scope: choose some of %s", k.Name, strings.Join(scopeNames, ", "))
	}
	if k.Tenant == "" && k.Name == "local" {
		return errors.New(`a key cannot be named local without another tenant, because "local" is the tenant of the command line: choose another name, or a tenant`)
	}
	if k.Tenant != "" {
		return CheckTenant(k.Tenant)
	}
	return nil
}

// Identity returns who holds the key.
func (k *Key) Identity() Identity {
	return Identity{Name: k.Name, By: k.By, Scopes: k.Scopes}
}

// EndedError is the error for a key that was valid once.
type EndedError struct {
	Key    *Key
	Reason string // expired or revoked
	At     time.Time
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("the key %q %s at %s", e.Key.Name, map[string]string{"expired": "expired", "revoked": "was revoked"}[e.Reason], e.At.UTC().Format(time.RFC3339))
}

// Usable returns an *EndedError for a key that has expired or was revoked.
func (k *Key) Usable(now time.Time) error {
	switch {
	case !k.Revoked.IsZero():
		return &EndedError{k, "revoked", k.Revoked}
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return &EndedError{k, "expired", k.Expires}
	}
	return nil
}

// Keys finds keys by their secrets. The zero value and nil have none.
type Keys struct {
	list  []Key
	begin map[[8]byte][]int // indexes by the beginning of the hash
}

// NewKeys returns Keys with a list. Of keys with the same secret, the first counts.
func NewKeys(list []Key) *Keys {
	k := &Keys{list: slices.Clone(list), begin: make(map[[8]byte][]int, len(list))}
	for i := range k.list {
		at := [8]byte(k.list[i].Hash[:])
		k.begin[at] = append(k.begin[at], i)
	}
	return k
}

// All returns the keys. The caller must not change them.
func (k *Keys) All() []Key {
	if k == nil {
		return nil
	}
	return k.list
}

// Find returns the key with a secret, also if it has expired or was revoked, or nil.
// The comparison takes constant time. The time of the search depends on the beginning
// of the secret's hash, of which a client learns nothing about other secrets.
func (k *Keys) Find(secret string) *Key {
	if k == nil || secret == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(secret))
	for _, i := range k.begin[[8]byte(sum[:])] {
		if subtle.ConstantTimeCompare(sum[:], k.list[i].Hash[:]) == 1 {
			return &k.list[i]
		}
	}
	return nil
}

// keyFile is the file of named keys.
type keyFile struct {
	Version int       `json:"version"`
	Keys    []fileKey `json:"keys"`
}

type fileKey struct {
	Name    string    `json:"name"`
	SHA256  string    `json:"sha256"`
	Tenant  string    `json:"tenant,omitempty"`
	Scopes  []string  `json:"scopes"`
	Created time.Time `json:"created,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// MaxKeys is the largest number of keys in a file.
const MaxKeys = 20_000

// ParseKeys decodes a file of keys. An empty file has none. Errors contain no hash.
func ParseKeys(data []byte) ([]Key, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	var f keyFile
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("not a file of furl keys: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("not a file of furl keys: data after the JSON object")
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("a file of furl keys of version %d: this furl reads version 1", f.Version)
	}
	if len(f.Keys) > MaxKeys {
		return nil, fmt.Errorf("%d keys: at most %d", len(f.Keys), MaxKeys)
	}
	var keys []Key
	names := make(map[string]bool)
	for i, in := range f.Keys {
		k := Key{Name: in.Name, Tenant: in.Tenant, By: ByKey, Created: in.Created, Expires: in.Expires, Revoked: in.Revoked}
		sum, err := hex.DecodeString(in.SHA256)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("key %d (%.64q): sha256 is not a hash of 64 hexadecimal digits", i+1, in.Name)
		}
		k.Hash = [sha256.Size]byte(sum)
		if k.Scopes, err = ParseScopes(in.Scopes); err == nil {
			err = k.check()
		}
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		if k.Revoked.IsZero() {
			if names[k.Name] {
				return nil, fmt.Errorf("key %d: two keys are named %q", i+1, k.Name)
			}
			names[k.Name] = true
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// FormatKeys encodes a file of keys, ordered by name.
func FormatKeys(keys []Key) []byte {
	f := keyFile{Version: 1, Keys: []fileKey{}}
	for _, k := range keys {
		f.Keys = append(f.Keys, fileKey{k.Name, hex.EncodeToString(k.Hash[:]), k.Tenant, k.Scopes.Names(), k.Created, k.Expires, k.Revoked})
	}
	slices.SortStableFunc(f.Keys, func(a, b fileKey) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.Created.Compare(b.Created))
	})
	out, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		panic(err) // strings and times within the range of years can be encoded
	}
	return append(out, '\n')
}
