package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
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
// host may be a compatible server or a router, which accepts any key. Options.Vendor
// names the vendor of such a host. Only a login with ChatGPT requires it.

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
	// keys are prefixes of which each key in X-Api-Key has one. Empty: any key may be
	// one of its keys.
	keys []string
	// refused are prefixes that credentials of its hosts never have, although other
	// vendors share them.
	refused []string
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
	name: Google, hosts: []string{".googleapis.com"},
	headers: []string{headerAuthorization, headerGoogleKey}, prefixes: []string{"AIza", "AQ.", "ya29."},
}

// chatGPT is the backend for people who signed in with ChatGPT. Its credentials are
// tokens of such a login. They are sent to no other host, and API keys are not sent there.
var chatGPT = &vendor{name: ChatGPT, hosts: []string{"chatgpt.com", ".chatgpt.com"}, headers: []string{headerAuthorization}, refused: []string{"sk-"}}

// The names of vendors.
const (
	Anthropic = "Anthropic"
	Google    = "Google"
	// ChatGPT is the vendor whose credentials are logins with ChatGPT.
	ChatGPT = "ChatGPT"
)

// azure is the name of the vendor whose credentials can be tokens of Entra ID.
const azure = "Azure"

var vendors = []*vendor{
	// A key of another provider of this format, such as Foundry's, may have no known
	// prefix. Anthropic documents that its own keys begin with sk-ant-. The form of its
	// tokens in Authorization is not documented.
	{name: Anthropic, hosts: []string{"api.anthropic.com"}, headers: []string{headerAuthorization, headerKey}, prefixes: []string{"sk-ant-"}, keys: []string{"sk-ant-"}},
	{name: "OpenAI", hosts: []string{"api.openai.com", ".api.openai.com"}, headers: []string{headerAuthorization}, prefixes: []string{"sk-proj-", "sk-svcacct-", "sk-admin-"}},
	{name: azure, hosts: []string{".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"}, headers: []string{headerAuthorization, headerKey, headerAzureKey}},
	google,
	{name: "AWS", hosts: []string{".amazonaws.com", ".api.aws"}, headers: []string{headerAuthorization, headerKey}, prefixes: []string{
		"AWS4-HMAC-SHA256", "ABSK", "bedrock-api-key-", "AEAA", "aws-external-anthropic-api-key-",
	}},
	{name: "OpenRouter", hosts: []string{"openrouter.ai"}, headers: []string{headerAuthorization, headerKey}, prefixes: []string{"sk-or-"}},
	{name: "xAI", hosts: []string{"api.x.ai"}, headers: []string{headerAuthorization, headerKey}, prefixes: []string{"xai-"}},
	{name: "Groq", hosts: []string{"api.groq.com"}, headers: []string{headerAuthorization}, prefixes: []string{"gsk_"}},
	chatGPT,
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

// VendorOf returns the name of the vendor whose prefix a credential has, or that has
// issued a token for its own APIs, or "" if it is unknown. A leading "Bearer " is ignored.
func VendorOf(credential string) string {
	credential = withoutScheme(credential)
	for _, v := range vendors {
		if hasPrefix(credential, v.prefixes) {
			return v.name
		}
	}
	return vendorOfToken(credential)
}

func withoutScheme(credential string) string {
	if scheme, token, ok := strings.Cut(credential, " "); ok && strings.EqualFold(scheme, "bearer") {
		return strings.TrimSpace(token)
	}
	return credential
}

func hasPrefix(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// vendorOfToken returns the vendor of a JSON Web Token: one with OpenAI's claim about the
// account is a login with ChatGPT, one that Microsoft's Entra ID has issued is for Azure.
// Its signature is not checked, since the answer only keeps the token from other hosts.
func vendorOfToken(credential string) string {
	if !strings.HasPrefix(credential, "eyJ") {
		return ""
	}
	_, rest, _ := strings.Cut(credential, ".")
	claims, _, ok := strings.Cut(rest, ".")
	if !ok || len(claims) > maxClaims {
		return ""
	}
	decoded, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(claims, "="))
	if err != nil {
		return ""
	}
	if bytes.Contains(decoded, []byte(`"https://api.openai.com/auth"`)) || bytes.Contains(decoded, []byte(`"https:\/\/api.openai.com\/auth"`)) {
		return ChatGPT
	}
	var token struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(decoded, &token) == nil && hasPrefix(token.Issuer, entraIssuers) {
		return azure
	}
	return ""
}

// entraIssuers are the beginnings of the issuers of Entra ID's tokens, of version 1 and 2
// and of the national clouds.
var entraIssuers = []string{"https://sts.windows.net/", "https://login.microsoftonline.", "https://sts.chinacloudapi.cn/", "https://login.partner.microsoftonline.cn/"}

// maxClaims is the size of the largest claims that are decoded, in bytes. Headers have
// a limit too.
const maxClaims = 64 << 10

// vendor returns the vendor whose credentials the provider accepts.
func (c *Client) vendor() *vendor {
	for _, v := range vendors {
		if v.name == c.opts.Vendor {
			return v
		}
	}
	return vendorOfHost(c.base.Host)
}

// Vendor returns the name of the vendor whose credentials the provider accepts, or ""
// if it accepts any key.
func (c *Client) Vendor() string { return c.vendor().name }

// takes returns an error if the vendor's host does not accept a credential.
func (v *vendor) takes(header, credential, host string) error {
	if !slices.Contains(v.headers, header) {
		return fmt.Errorf("%s does not take the credential in %s%s", host, header, belongs(VendorOf(credential)))
	}
	of := VendorOf(credential)
	if of != "" && of != v.name && (v != compatible || of == ChatGPT) {
		return fmt.Errorf("%s does not take the credential in %s%s", host, header, belongs(of))
	}
	if hasPrefix(withoutScheme(credential), v.refused) {
		return fmt.Errorf("%s does not take the credential in %s, which is an API key", host, header)
	}
	if header == headerKey && credential != "" && len(v.keys) > 0 && !hasPrefix(withoutScheme(credential), v.keys) {
		return fmt.Errorf("%s does not take the credential in %s: keys of %s begin with %s", host, header, v.name, strings.Join(v.keys, " or "))
	}
	return nil
}

func belongs(vendor string) string {
	if vendor == "" {
		return ""
	}
	switch vendor {
	case ChatGPT:
		return ", which is a login with ChatGPT"
	case azure:
		return ", which is a token for Azure"
	}
	return ", which is a key of " + vendor
}

// CheckCredentials returns an error if a request has credentials and the provider
// accepts none of them, or if its query has a Google key and the provider is not
// Google. A request without credentials passes. The error does not contain the
// credential. RoundTrip removes credentials that the provider does not accept.
func (c *Client) CheckCredentials(u *url.URL, h http.Header) error {
	v := c.vendor()
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

// withoutForeignCredentials removes the credentials that a vendor does not accept.
func withoutForeignCredentials(h http.Header, v *vendor, host string) {
	for _, name := range credentialHeaders {
		kept := slices.DeleteFunc(h[name], func(value string) bool { return v.takes(name, value, host) != nil })
		if h[name] = kept; len(kept) == 0 {
			delete(h, name)
		}
	}
}
