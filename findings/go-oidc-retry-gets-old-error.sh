#!/bin/sh
# github.com/coreos/go-oidc/v3 3.21.0 (Go): a retry after a failed request for an issuer's keys may get the old error again.
#
# Callers of RemoteKeySet.VerifySignature share one request for the keys. When it has failed, the callers get the error before the
# key set forgets the request. A caller that tries again at once may still find it, and gets the same error without a new
# request, although the issuer answers by then. Some retries in many thousands do, and more the more callers wait. So wait for
# some milliseconds before a retry, or verify the token with the next request of the client.
#
# In this program the issuer refuses its first request only. It stops at the first such retry, at the latest after a minute.
#
# Output seen on 2026-11-28 (the number varies):
#   retries at once that send a new request: NUMBER
#   retries at once that get the old error: true
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// issuer refuses the first request for its keys and answers all others.
type issuer struct {
	requests atomic.Int64
	keys     string
}

func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(i.keys)), Request: r}
	if i.requests.Add(1) == 1 {
		resp.StatusCode, resp.Status = 503, "503 Service Unavailable"
	}
	return resp, nil
}

func main() {
	key, _ := rsa.GenerateKey(rand.Reader, 2048)
	jwk := jose.JSONWebKey{Key: key.Public(), KeyID: "a", Algorithm: "RS256", Use: "sig"}
	public, _ := jwk.MarshalJSON()
	signer, _ := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "a"}}, nil)
	signed, _ := signer.Sign([]byte(`{"sub":"me"}`))
	token, _ := signed.CompactSerialize()
	const callers = 64
	var old, fresh atomic.Int64
	for end := time.Now().Add(time.Minute); old.Load() == 0 && time.Now().Before(end); {
		in := &issuer{keys: `{"keys":[` + string(public) + `]}`}
		set := oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), &http.Client{Transport: in}), "https://issuer.example/keys")
		var wait sync.WaitGroup
		for range callers {
			wait.Go(func() {
				if _, err := set.VerifySignature(context.Background(), token); err == nil {
					return // it came after the request that was refused
				}
				if _, err := set.VerifySignature(context.Background(), token); err != nil {
					old.Add(1)
				} else {
					fresh.Add(1)
				}
			})
		}
		wait.Wait()
	}
	fmt.Printf("retries at once that send a new request: %d\n", fresh.Load())
	fmt.Printf("retries at once that get the old error: %t\n", old.Load() > 0)
	if old.Load() == 0 {
		os.Exit(1)
	}
}
GO
go mod init try 2>/dev/null
go get github.com/coreos/go-oidc/v3@v3.21.0 github.com/go-jose/go-jose/v4@v4.1.4 2>/dev/null
go mod tidy 2>/dev/null
go run .
