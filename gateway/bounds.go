package gateway

import (
	"bytes"

	"github.com/furlhq/furl/internal/rawjson"
)

// maxParts is the most messages and blocks of a request that furl deals with,
// together. Each takes a few kilobytes of memory, however small it is on the
// wire; the longest sessions have some thousands.
const maxParts = 50_000

// tooMany reports whether a request has more parts than furl deals with. Each
// begins with a brace, and counting those is all that most requests need.
func tooMany(body []byte) bool {
	if bytes.Count(body, []byte("{")) <= maxParts {
		return false
	}
	n := 0
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return false
	}
	for name := range r.Fields() {
		switch string(name) {
		case "messages", "input", "tools", "system":
			n += parts(r, 0)
		}
	}
	return n > maxParts
}

// parts counts the elements of a list, and those of the lists in its elements.
func parts(r *rawjson.Reader, depth int) (n int) {
	if r.Kind() != '[' || depth > 2 {
		return 0
	}
	for range r.Elements() {
		if n++; r.Kind() != '{' {
			continue
		}
		for range r.Fields() {
			n += parts(r, depth+1)
		}
	}
	return n
}
