package gateway

import (
	"bytes"

	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/rawjson"
)

// maxParts is the most messages and blocks of a request that furl deals with,
// together. The longest sessions have some thousands.
const maxParts = 50_000

// countParts returns how many messages, blocks and tools a request has, or a
// few more. Each is an object, and counting braces is all that most requests
// need; those with so many that the difference matters are counted exactly.
func countParts(body []byte) int {
	braces := bytes.Count(body, []byte("{"))
	if membudget.Request(0, braces) <= roughly {
		return braces
	}
	n := 0
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return 0
	}
	for name := range r.Fields() {
		switch string(name) {
		case "messages", "input", "tools", "system":
			n += parts(r, 0)
		}
	}
	return n
}

// roughly is how much memory the parts of a request may seem to need before
// they are counted exactly.
const roughly = 16 << 20

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
