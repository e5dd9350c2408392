package upstream

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A credential is sent to a provider only if the provider can accept it. Two things
// show the vendor of a credential: its header, and the prefix of the key if only one
// vendor uses it. Hosts of known vendors accept no other vendor's keys. Any other
// host may be a compatible server or a router, which accepts any key.

// vendor is a company whose hosts and credentials are known.
type vendor struct {
	name string
	// hosts are its host names. One that starts with a dot matches all names
	// that end with it.
	hosts []string
	// headers are those in which its hosts accept credentials.
	headers []string
	// prefixes are those that only its credentials have.
	prefixes []string
}

const (
	headerAuthorization = "Authorization"
	headerKey           = "X-Api-Key"      // Anthropic and compatible servers
	headerAzureKey      = "Api-Key"        // Azure
	headerGoogleKey     = "X-Goog-Api-Key" // Google
)

// credentialHeaders are those in which clients send a provider's credential.
var credentialHeaders = []string{headerAuthorization, headerKey, headerAzureKey, headerGoogleKey}

var google = &vendor{
	name: "Google", hosts: []string{".googleapis.com"},
	headers: []string{headerAuthorization, headerGoogleKey}, prefixes: []string{"AIza", "AQ.", "ya29."},
}

var vendors = []*vendor{
	{"Anthropic", []string{"api.anthropic.com"}, []string{headerAuthorization, headerKey}, []string{"sk-ant-"}},
	{"OpenAI", []string{"api.openai.com", ".api.openai.com"}, []string{headerAuthorization}, []string{"sk-proj-", "sk-svcacct-", "sk-admin-"}},
	{"Azure", []string{".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"}, []string{headerAuthorization, headerKey, headerAzureKey}, nil},
	google,
	{"AWS", []string{".amazonaws.com", ".api.aws"}, []string{headerAuthorization, headerKey}, []string{"AWS4-HMAC-SHA256", "ABSK"}},
	{"OpenRouter", []string{"openrouter.ai"}, []string{headerAuthorization, headerKey}, []string{"sk-or-"}},
	{"xAI", []string{"api.x.ai"}, []string{headerAuthorization, headerKey}, []string{"xai-"}},
	{"Groq", []string{"api.groq.com"}, []string{headerAuthorization}, []string{"gsk_"}},
}

// compatible is used for all other hosts.
var compatible = &vendor{headers: []string{headerAuthorization, headerKey, headerAzureKey}}

func vendorOfHost(host string) *vendor {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, v := range vendors {
		for _, h := range v.hosts {
			if host == h || h[0] == '.' && strings.HasSuffix(host, h) {
				return v
			}
		}
	}
	return compatible
}

// VendorOf returns the name of the vendor whose prefix a credential has, or "" if no
// prefix matches. A leading "Bearer " is ignored.
func VendorOf(credential string) string {
	if scheme, token, ok := strings.Cut(credential, " "); ok && strings.EqualFold(scheme, "bearer") {
		credential = strings.TrimSpace(token)
	}
	for _, v := range vendors {
		if slices.ContainsFunc(v.prefixes, func(p string) bool { return strings.HasPrefix(credential, p) }) {
			return v.name
		}
	}
	return ""
}

// Vendor returns the name of the vendor that the host belongs to, or "" for any other
// host.
func (c *Client) Vendor() string { return vendorOfHost(c.base.Host).name }

// takes returns an error if the vendor's host does not accept a credential.
func (v *vendor) takes(header, credential, host string) error {
	if !slices.Contains(v.headers, header) {
		return fmt.Errorf("%s does not take the credential in %s%s", host, header, belongs(VendorOf(credential)))
	}
	if of := VendorOf(credential); v != compatible && of != "" && of != v.name {
		return fmt.Errorf("%s does not take the credential in %s%s", host, header, belongs(of))
	}
	return nil
}

func belongs(vendor string) string {
	if vendor == "" {
		return ""
	}
	return ", which is a key of " + vendor
}

// CheckCredentials returns an error if a request has credentials and the provider
// accepts none of them, or if its query has a Google key and the provider is not
// Google. A request without credentials passes. The error does not contain the
// credential. RoundTrip removes credentials that the provider does not accept.
func (c *Client) CheckCredentials(u *url.URL, h http.Header) error {
	v := vendorOfHost(c.base.Host)
	ofGoogle := func(key string) bool { return VendorOf(key) == google.name }
	if v != google && slices.ContainsFunc(u.Query()["key"], ofGoogle) {
		return fmt.Errorf("%s does not take the credential in the query%s", c.base.Host, belongs(google.name))
	}
	var first error
	for _, name := range credentialHeaders {
		for _, value := range h.Values(name) {
			if value == "" {
				continue
			}
			err := v.takes(name, value, c.base.Host)
			if err == nil {
				return nil
			}
			if first == nil {
				first = err
			}
		}
	}
	return first
}

// withoutForeignCredentials removes the credentials that the provider at host does
// not accept.
func withoutForeignCredentials(h http.Header, host string) {
	v := vendorOfHost(host)
	for _, name := range credentialHeaders {
		kept := slices.DeleteFunc(h[name], func(value string) bool { return v.takes(name, value, host) != nil })
		if h[name] = kept; len(kept) == 0 {
			delete(h, name)
		}
	}
}
