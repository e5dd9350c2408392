package encrypted

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Master wraps the keys of tenants with a master key, which it has or which a
// key management service has. It is called when a tenant is used for the first
// time in a while, not for each record.
type Master interface {
	// ID names the master key that Wrap uses. It is stored with what is wrapped,
	// and is not secret.
	ID() string
	// Wrap encrypts a secret of 32 bytes, bound to a context, which is not secret.
	Wrap(ctx context.Context, secret, context []byte) ([]byte, error)
	// Unwrap decrypts what the master key id has wrapped with the same context. If
	// the master lacks that key, the error wraps ErrUnknownMaster.
	Unwrap(ctx context.Context, id string, wrapped, context []byte) ([]byte, error)
}

// ErrUnknownMaster means that a Master does not have a key.
var ErrUnknownMaster = errors.New("unknown master key")

// keySize is the length of all keys, in bytes.
const keySize = 32

// NewMasterKey returns a random master key in the form that ParseMaster reads.
func NewMasterKey() string {
	return base64.StdEncoding.EncodeToString(random())
}

func random() []byte {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // it does not fail
	return key
}

// localMaster has its keys in memory. The first one wraps, all of them unwrap.
type localMaster struct {
	first string
	keys  map[string]cipher.AEAD
}

// ParseMaster reads master keys: one per line, each 32 random bytes in base64 or
// hexadecimal. The first one wraps; the others only unwrap, until the keys of
// tenants are wrapped with the first. Empty lines and lines that start with # are
// ignored. Errors do not contain keys.
func ParseMaster(text string) (Master, error) {
	m := &localMaster{keys: make(map[string]cipher.AEAD)}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, err := hex.DecodeString(line)
		if err != nil {
			key, err = base64.StdEncoding.DecodeString(line)
		}
		if err != nil || len(key) != keySize {
			return nil, fmt.Errorf("line %d: invalid master key: expected 32 bytes in base64, as furl encryption new-key prints them", n)
		}
		sum := sha256.Sum256(append([]byte("furl master key "), key...))
		id := "mk_" + hex.EncodeToString(sum[:5])
		if m.keys[id] = newAEAD(key); m.first == "" {
			m.first = id
		}
	}
	if m.first == "" {
		return nil, errors.New("no master key: expected 32 bytes in base64, as furl encryption new-key prints them")
	}
	return m, nil
}

func (m *localMaster) ID() string { return m.first }

func (m *localMaster) Wrap(_ context.Context, secret, context []byte) ([]byte, error) {
	aead := m.keys[m.first]
	nonce := random()[:aead.NonceSize()]
	return aead.Seal(nonce, nonce, secret, context), nil
}

func (m *localMaster) Unwrap(_ context.Context, id string, wrapped, context []byte) ([]byte, error) {
	aead := m.keys[id]
	if aead == nil {
		return nil, fmt.Errorf("%w %s", ErrUnknownMaster, id)
	}
	if len(wrapped) < aead.NonceSize() {
		return nil, errors.New("the wrapped key is cut off")
	}
	n := aead.NonceSize()
	return aead.Open(nil, bytes.Clone(wrapped[:n]), wrapped[n:], context)
}

// newAEAD returns AES-256-GCM with a key of 32 bytes.
func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the length of a key is checked before
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the right block size
	}
	return aead
}
