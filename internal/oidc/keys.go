package oidc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	goidc "github.com/coreos/go-oidc/v3/oidc"
)

const (
	// refreshAfter is the age at which keys are read again when a token is verified. A key
	// that the issuer has removed is forgotten then.
	refreshAfter = 5 * time.Minute
	// latest is the age from which all requests wait for new keys.
	latest = 9 * time.Minute
	// askEvery is the shortest time between two attempts to read keys, also if they fail. It
	// keeps clients with invented keys from flooding the issuer.
	askEvery = 5 * time.Second
)

// issuerKeys reads the keys of an issuer and keeps them. While the issuer fails, the last
// ones that it had are used. It is safe for concurrent use.
type issuerKeys struct {
	issuer string
	client *http.Client
	now    func() time.Time

	asking sync.Mutex // held while the issuer is asked

	mu      sync.Mutex
	set     *keySet // nil: never read
	asked   time.Time
	failure error // of the last attempt
}

// keySet are the keys that an issuer had at a time.
type keySet struct {
	read     time.Time
	verifier goidc.KeySet
	algs     []string
	ids      map[string]string // by the key's id in tokens, its digest
	digests  map[string]bool
	all      string // the digest of all
}

// current returns the keys, which are read again if they are old, or with anew if they were
// not read just now. The set is nil if they were never read; err is why the last attempt
// failed.
func (k *issuerKeys) current(anew bool) (set *keySet, err error) {
	set, err, wants := k.known(anew)
	if !wants {
		return set, err
	}
	if set == nil || anew || !within(k.now().Sub(set.read), latest) {
		k.asking.Lock()
	} else if !k.asking.TryLock() {
		return set, err // another request asks
	}
	defer k.asking.Unlock()
	if set, err, wants = k.known(anew); !wants { // another request has asked
		return set, err
	}
	k.mu.Lock()
	k.asked = k.now()
	k.mu.Unlock()
	fresh, err := k.read()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failure = err; err == nil {
		k.set = fresh
	}
	return k.set, err
}

// known returns the keys, why the last attempt to read them failed, and whether they are to
// be read.
func (k *issuerKeys) known(anew bool) (set *keySet, failure error, wants bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.set == nil || anew || !within(k.now().Sub(k.set.read), refreshAfter)
	return k.set, k.failure, old && (k.asked.IsZero() || !within(k.now().Sub(k.asked), askEvery))
}

// within reports whether an age is below a limit, which the age after a change of the clock
// is not.
func within(age, limit time.Duration) bool { return age >= 0 && age < limit }

// read asks the issuer for its configuration and its keys.
func (k *issuerKeys) read() (*keySet, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*timeout) // others wait for the answer too
	defer cancel()
	provider, err := goidc.NewProvider(goidc.ClientContext(ctx, k.client), k.issuer)
	if err != nil {
		return nil, err
	}
	var config struct {
		Keys string   `json:"jwks_uri"`
		Algs []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := provider.Claims(&config); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Keys, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s responds with %s", config.Keys, resp.Status)
	case len(body) > maxResponse:
		return nil, fmt.Errorf("%s responds with more than %d bytes", config.Keys, maxResponse)
	}
	return newKeySet(body, config.Algs, k.now())
}

// newKeySet returns the keys of a JSON Web Key Set.
func newKeySet(body []byte, algs []string, now time.Time) (*keySet, error) {
	var doc struct {
		Keys []map[string]any `json:"keys"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, errors.New("the keys of the issuer are not a JSON Web Key Set")
	}
	set := &keySet{read: now, algs: supported(algs), ids: make(map[string]string), digests: make(map[string]bool)}
	var all []byte
	for _, key := range doc.Keys {
		var public []string
		for _, name := range []string{"kty", "crv", "n", "e", "x", "y"} {
			value, _ := key[name].(string)
			public = append(public, value)
		}
		digest := digestOf(strings.Join(public, "."))
		set.digests[digest] = true
		all = append(all, digest...)
		if id, _ := key["kid"].(string); id != "" {
			if other, ok := set.ids[id]; ok && other != digest {
				digest = "" // two keys of one name
			}
			set.ids[id] = digest
		}
	}
	set.all = digestOf(string(all))
	set.digests[set.all] = true
	// The package reads keys by itself, at any time. It gets these ones from memory, so that
	// this one decides when the issuer is asked.
	client := &http.Client{Transport: document(body)}
	set.verifier = goidc.NewRemoteKeySet(goidc.ClientContext(context.Background(), client), "https://keys.invalid/")
	return set, nil
}

// supported returns the algorithms of an issuer that verify signatures by public keys.
func supported(algs []string) (list []string) {
	for _, a := range algs {
		switch a {
		case goidc.RS256, goidc.RS384, goidc.RS512, goidc.ES256, goidc.ES384, goidc.ES512, goidc.PS256, goidc.PS384, goidc.PS512, goidc.EdDSA:
			list = append(list, a)
		}
	}
	return list
}

// digestOfSigner returns the digest of the key that has signed a token that was verified.
func (s *keySet) digestOfSigner(token string) string {
	if digest := s.ids[keyID(token)]; digest != "" {
		return digest
	}
	return s.all
}

// keyID returns the id of the key in the header of a token, "" if it has none.
func keyID(token string) string {
	head, _, _ := strings.Cut(token, ".")
	data, err := base64.RawURLEncoding.DecodeString(head)
	var header struct {
		ID string `json:"kid"`
	}
	if err != nil || json.Unmarshal(data, &header) != nil {
		return ""
	}
	return header.ID
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// document is a RoundTripper that responds with a JSON document.
type document []byte

func (d document) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(d)),
	}, nil
}
