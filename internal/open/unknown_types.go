package open

import (
	"maps"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/wire"
)

// Types that furl does not know are sent as they are. They are reported, so that people
// see what is new: there may be a rule to add.

// maxUnknownTypes is the largest number of unknown types that are kept for a session,
// maxUnknownTypesInAll for a process. maxTypeName is the longest name in bytes.
const (
	maxUnknownTypes      = 8
	maxUnknownTypesInAll = 40
	maxTypeName          = 48
)

// otherType is the name of further types, and of those whose name is not printed.
const otherType = "other"

// unknownTypes are the unknown types in the first messages of a path.
type unknownTypes struct {
	read  int
	types []string
}

// UnknownTypesOf returns the types in the messages of a path that furl does not know, in
// the order of their first message.
func UnknownTypesOf(s *furl.State) []string {
	if len(s.Fixed()) == 0 {
		return nil
	}
	u := furl.Memo(s, func(original *unknownTypes, shared int) *unknownTypes {
		if original != nil && original.read <= shared {
			return &unknownTypes{read: original.read, types: slices.Clip(original.types)}
		}
		return new(unknownTypes)
	})
	for ; u.read < s.Len(); u.read++ {
		_, m := s.Message(u.read)
		if !slices.ContainsFunc(m.Blocks, func(b furl.Block) bool { return b.Fixed }) {
			continue
		}
		api := wire.For(m.Format)
		if api == nil {
			continue
		}
		for _, typ := range api.UnknownTypes(m) {
			typ = printableType(typ)
			if len(u.types) >= maxUnknownTypes {
				typ = otherType
			}
			if !slices.Contains(u.types, typ) {
				u.types = append(u.types, typ)
			}
		}
	}
	return u.types
}

// printableType returns the name of a type if it looks like one. Names come from
// requests, and go into headers, logs and metrics.
func printableType(typ string) string {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.:-", r)
	}
	if typ == "" || len(typ) > maxTypeName || strings.ContainsFunc(typ, odd) {
		return otherType
	}
	return strings.Clone(typ)
}

// countUnknownTypes counts a request with unknown types, and logs each type once.
func (a *shared) countUnknownTypes(types []string) {
	for _, typ := range types {
		a.mu.Lock()
		if a.unknownTypes == nil {
			a.unknownTypes = make(map[string]int)
		}
		if _, known := a.unknownTypes[typ]; !known && len(a.unknownTypes) >= maxUnknownTypesInAll {
			typ = otherType
		}
		a.unknownTypes[typ]++
		first := a.unknownTypes[typ] == 1
		a.mu.Unlock()
		if first {
			a.log.Warn("a type that furl does not know: its step is always sent unchanged", "type", typ)
		}
	}
}

// UnknownTypes returns the number of requests with each unknown type.
func (a *shared) UnknownTypes() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.unknownTypes)
}
