package gateway

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
)

// Limits of the salt of fingerprints, in bytes.
const (
	minSalt = 16
	maxSalt = 64
)

// fingerprintRounds make it slower to guess the value of a fingerprint, and let a busy
// gateway answer for all settings in time. Keys should be random in any case.
const fingerprintRounds = 1_000

// fingerprints returns a fingerprint of each setting in Options.Shared. With the same
// salt, equal settings of two gateways have equal fingerprints, and a fingerprint tells
// nothing else. The caller chooses the salt, so that no table of known fingerprints helps
// to guess a value.
func (o *Options) fingerprints(salt string) (map[string]string, error) {
	switch {
	case salt == "":
		return nil, nil
	case len(salt) < minSalt || len(salt) > maxSalt:
		return nil, badRequest("invalid salt: expected %d to %d bytes, chosen at random", minSalt, maxSalt)
	}
	prints := make(map[string]string, len(o.Shared))
	for name, value := range o.Shared {
		sum, err := pbkdf2.Key(sha256.New, value, []byte(salt+" "+name), fingerprintRounds, 16)
		if err != nil {
			return nil, err
		}
		prints[name] = hex.EncodeToString(sum)
	}
	return prints, nil
}
