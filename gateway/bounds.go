package gateway

import (
	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/rawjson"
)

// maxParts is the most messages and blocks of a request that furl deals with,
// together. The longest sessions have some thousands.
const maxParts = 50_000

// memoryOf estimates the memory that a request takes once it is decoded, and
// reports how many messages, blocks and tools it has, or a few more. It counts
// what a decoder would make a part of, whether that is valid or not.
func memoryOf(body []byte) (bytes int64, parts int) {
	values := rawjson.CountValues(body)
	if membudget.Request(0, values, values) <= roughly {
		return membudget.Request(len(body), values, values), values
	}
	r := rawjson.NewReader(body)
	if r.Kind() == '{' {
		for name := range r.Fields() {
			switch string(name) {
			case "messages", "input", "tools", "system":
				parts += elements(r, 0)
			}
		}
	}
	return membudget.Request(len(body), parts, values), parts
}

// roughly is how much memory the values of a request may seem to need before
// its parts among them are counted.
const roughly = 16 << 20

// elements counts the elements of a list, and those of the lists in its elements.
func elements(r *rawjson.Reader, depth int) (n int) {
	if r.Kind() != '[' || depth > 2 {
		return 0
	}
	for range r.Elements() {
		if n++; r.Kind() != '{' {
			continue
		}
		for range r.Fields() {
			n += elements(r, depth+1)
		}
	}
	return n
}
