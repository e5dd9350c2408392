package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Health is what Check has found out about an issuer.
type Health struct {
	// Keys is the number of keys that sign tokens.
	Keys int
	// Date is the issuer's time, zero if it does not say.
	Date time.Time
}

// IssuerError is the error for an issuer that responds, but with something else than a
// Verifier needs.
type IssuerError struct{ Text, Cure string }

func (e *IssuerError) Error() string { return e.Text }

// Check asks an issuer for its configuration and its keys, as a Verifier does. The error
// wraps an *IssuerError, or is that of the connection.
func Check(ctx context.Context, issuer string, client *http.Client) (h Health, err error) {
	var config struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	address := strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
	if h.Date, err = fetch(ctx, client, address, "check gateway.oidc.issuer: it is the claim iss of the tokens", &config); err != nil {
		return h, err
	}
	if config.Issuer != issuer {
		return h, &IssuerError{fmt.Sprintf("%s names the issuer %.200s, not %s", address, config.Issuer, issuer), "set gateway.oidc.issuer to the name in the tokens' claim iss, to the character"}
	}
	var set struct {
		Keys []struct {
			Use string `json:"use"`
		} `json:"keys"`
	}
	if _, err = fetch(ctx, client, config.Keys, "ask the issuer's operator: its configuration names this address for its keys (jwks_uri)", &set); err != nil {
		return h, err
	}
	for _, k := range set.Keys {
		if k.Use == "" || k.Use == "sig" {
			h.Keys++
		}
	}
	if h.Keys == 0 {
		return h, &IssuerError{fmt.Sprintf("%.200s has no keys that sign tokens", config.Keys), "ask the issuer's operator: without keys no token can be verified"}
	}
	return h, nil
}

// fetch decodes the JSON at an address into out. date is the server's time.
func fetch(ctx context.Context, client *http.Client, address, cure string, out any) (date time.Time, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return date, &IssuerError{fmt.Sprintf("invalid address %.200q", address), cure}
	}
	resp, err := client.Do(req)
	if err != nil {
		return date, err
	}
	defer resp.Body.Close()
	date, _ = http.ParseTime(resp.Header.Get("Date")) // zero if it is missing
	if resp.StatusCode != http.StatusOK {
		return date, &IssuerError{fmt.Sprintf("%.200s responds with %s", address, resp.Status), cure}
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return date, err
	}
	if json.Unmarshal(data, out) != nil {
		return date, &IssuerError{fmt.Sprintf("%.200s responds with something else than JSON", address), cure}
	}
	return date, nil
}
