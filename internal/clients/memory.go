package clients

import (
	"errors"

	"github.com/furlhq/furl/internal/membudget"
	"github.com/furlhq/furl/internal/rawjson"
)

// Reserve reserves memory for the decoded form of a request before it is decoded: an estimate
// in bytes, for so many messages, blocks and tools. A request is not decoded after an error.
type Reserve func(bytes int64, parts int) error

// ErrTooLarge is the error of a Reserve for a request that is never decoded, because it has
// too many parts or needs too much memory.
var ErrTooLarge = errors.New("too many messages and blocks, or too large")

// MemoryOf estimates the memory of a request's decoded form, and returns an
// upper bound of its messages, blocks and tools. It counts everything that a
// decoder would make a part of, valid or not.
func MemoryOf(body []byte) (bytes int64, parts int) {
	values := rawjson.CountValues(body)
	if membudget.Request(0, values, values) <= exactCountAbove {
		return membudget.Request(len(body), values, values), values
	}
	r := rawjson.NewReader(body)
	if r.Kind() == '{' {
		for name := range r.Fields() {
			switch string(name) {
			case "messages", "input", "tools", "system":
				parts += countElements(r, 0)
			}
		}
	}
	return membudget.Request(len(body), parts, values), parts
}

// exactCountAbove is the estimate in bytes above which parts are counted
// exactly. Below it, every JSON value counts as a part.
const exactCountAbove = 16 << 20

// countElements counts the elements of an array and of the arrays in its elements.
func countElements(r *rawjson.Reader, depth int) (n int) {
	if r.Kind() != '[' || depth > 2 {
		return 0
	}
	for range r.Elements() {
		if n++; r.Kind() != '{' {
			continue
		}
		for range r.Fields() {
			n += countElements(r, depth+1)
		}
	}
	return n
}
