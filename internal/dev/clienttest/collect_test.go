//go:build clients_all

package clienttest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// shapes collects the shapes of requests.
type shapes struct {
	of      map[string]*shape
	clients map[string][]string // by key
	models  map[string]string   // to the client that asked for it
}

func newShapes() *shapes {
	return &shapes{of: make(map[string]*shape), clients: make(map[string][]string), models: make(map[string]string)}
}

func (s *shapes) add(client string, sh shape) {
	k := sh.key()
	known := s.of[k]
	if known == nil {
		known = &shape{API: sh.API, Place: sh.Place, Type: sh.Type}
		s.of[k] = known
	}
	for _, f := range sh.Fields {
		if at, ok := slices.BinarySearch(known.Fields, f); !ok {
			known.Fields = slices.Insert(known.Fields, at, f)
		}
	}
	if !slices.Contains(s.clients[k], client) {
		s.clients[k] = append(s.clients[k], client)
	}
}

// apiOf tells the API by the path.
func apiOf(p string) string {
	for end, api := range map[string]string{
		"/messages": "messages", "/messages/count_tokens": "messages",
		"/chat/completions": "chat", "/responses": "responses", "/responses/compact": "responses",
	} {
		if strings.HasSuffix(p, end) {
			return api
		}
	}
	return "other"
}

// plain headers say nothing about a client's habits.
var plainHeaders = []string{
	"accept", "accept-encoding", "accept-language", "authorization", "cache-control", "connection", "content-encoding", "content-length", "content-type", "cookie", "host",
	"origin", "pragma", "sec-fetch-mode", "sec-websocket-extensions", "sec-websocket-key", "sec-websocket-version", "transfer-encoding", "upgrade", "user-agent", "x-api-key", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
}

// idInPath finds a part of a path that has digits and is longer than a version.
var idInPath = regexp.MustCompile(`/[^/]*[0-9][^/]{5,}`)

// request adds what one request shows.
func (s *shapes) request(client, method string, target *url.URL, header http.Header, body []byte) error {
	api := apiOf(target.Path)
	s.add(client, shape{API: api, Place: "endpoint", Type: method + " " + idInPath.ReplaceAllString(target.Path, "/ID")})
	for name := range target.Query() {
		s.add(client, shape{API: api, Place: "query", Type: name})
	}
	for name, values := range header {
		name = strings.ToLower(name)
		if name == "anthropic-beta" || name == "openai-beta" {
			for beta := range strings.SplitSeq(strings.Join(values, ","), ",") {
				s.add(client, shape{API: api, Place: "beta", Type: strings.TrimSpace(beta)})
			}
		} else if strings.HasPrefix(name, "x-stainless-") {
			s.add(client, shape{API: "any", Place: "header", Type: "x-stainless-*"}) // of all SDKs by Stainless
		} else if !slices.Contains(plainHeaders, name) {
			s.add(client, shape{API: "any", Place: "header", Type: name})
		}
	}
	if header.Get("Content-Encoding") == "zstd" {
		dec, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderMaxMemory(64<<20))
		if err != nil {
			return err
		}
		defer dec.Close()
		var plain bytes.Buffer
		if _, err := plain.ReadFrom(dec); err != nil {
			return err
		}
		body = plain.Bytes()
	}
	if len(body) == 0 || api == "other" {
		return nil
	}
	var top map[string]any
	if err := json.Unmarshal(body, &top); err != nil {
		return fmt.Errorf("body of %s %s: %w", method, target.Path, err)
	}
	if model, _ := top["model"].(string); model != "" {
		s.models[model] = client
	}
	s.object(client, api, "request", top)
	return nil
}

// Under these keys is what tools and users write, not the API's.
var freeForm = []string{"input_schema", "parameters", "schema", "arguments", "metadata", "client_metadata"}

func (s *shapes) object(client, api, place string, o map[string]any) {
	typ, typed := o["type"].(string)
	if !typed {
		typ = "–"
		if role, ok := o["role"].(string); ok && place != "request" {
			typ = role
		}
	}
	s.add(client, shape{API: api, Place: place, Type: typ, Fields: slices.Sorted(maps.Keys(o))})
	for name, v := range o {
		if slices.Contains(freeForm, name) || place != "request" && name == "input" {
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			s.object(client, api, name, v)
		case []any:
			for _, e := range v {
				if e, ok := e.(map[string]any); ok {
					s.object(client, api, name, e)
				}
			}
		}
	}
}

// unlisted are the shapes that no row has, and the fields that a row lacks.
func (s *shapes) unlisted(list []row) []shape {
	known := make(map[string]row)
	for _, r := range list {
		known[r.key()] = r
	}
	var out []shape
	for k, sh := range s.of {
		r, ok := known[k]
		missing := shape{API: sh.API, Place: sh.Place, Type: sh.Type}
		for _, f := range sh.Fields {
			if !slices.Contains(r.Fields, f) {
				missing.Fields = append(missing.Fields, f)
			}
		}
		if !ok || len(missing.Fields) > 0 {
			out = append(out, missing)
		}
	}
	slices.SortFunc(out, func(a, b shape) int { return cmp.Compare(a.key(), b.key()) })
	return out
}
