package anthropic

import (
	"fmt"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// defaultMaxMarks is the maximum number of cache breakpoints in a request if
// the model does not define one.
const defaultMaxMarks = 4

// facts are read from the body of a request.
type facts struct {
	thinking          bool
	auto              rawjson.Value // the top-level cache_control
	contextManagement bool
	system, tools     []byte
}

// body reads the facts, once.
func (v *validator) body() *facts {
	if v.facts != nil {
		return v.facts
	}
	f := new(facts)
	v.facts = f
	if v.req.Body == nil {
		return f
	}
	r := rawjson.NewReader(v.req.Body)
	for key := range r.Fields() {
		switch string(key) {
		case "thinking":
			t := readFields(r).typ
			f.thinking = t == "enabled" || t == "adaptive"
		case "cache_control":
			if f.auto = r.Value(); !present(f.auto) {
				f.auto = rawjson.Value{}
			}
		case "context_management":
			f.contextManagement = r.Kind() != 'n'
		case "system":
			f.system = r.Raw()
		case "tools":
			f.tools = r.Raw()
		}
	}
	return f
}

// cacheMarks checks the number of breakpoints, and that those of one hour
// precede those of five minutes, in the order tools, system, messages.
func (v *validator) cacheMarks() *protocol.Refusal {
	n := 0
	for i := range v.req.Preamble {
		if v.req.Preamble[i].CacheMark {
			n++
		}
	}
	list := v.req.Messages
	for i := range list {
		for j := range list[i].Blocks {
			if list[i].Blocks[j].CacheMark {
				n++
			}
		}
	}
	if n == 0 {
		return nil // an automatic breakpoint alone is always valid
	}
	auto := v.body().auto
	if present(auto) {
		if b := last(&list[len(list)-1]); b != nil && b.CacheMark {
			// A breakpoint on the last block and the automatic one are the
			// same.
			if lifetime(auto) != lifetime(rawFields(&list[len(list)-1], b).cacheControl) {
				// furl's wording.
				return refuse("cache_control: the last block already has a cache_control with a different ttl")
			}
			auto = rawjson.Value{}
		} else {
			n++
		}
	}
	most := v.model.Caching.MaxMarks
	if most == 0 {
		most = defaultMaxMarks
	}
	if n > most {
		return refuse("A maximum of %d blocks with cache_control may be provided. Found %d.", most, n)
	}
	if n < 2 {
		return nil
	}
	return v.lifetimes(auto)
}

func (v *validator) lifetimes(auto rawjson.Value) *protocol.Refusal {
	short := false
	check := func(mark rawjson.Value, path string, at ...any) *protocol.Refusal {
		if !present(mark) {
			return nil
		}
		if lifetime(mark) != "1h" {
			short = true
			return nil
		}
		if short {
			return refuse("%s.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "+
				"Note that blocks are processed in the following order: `tools`, `system`, `messages`.", fmt.Sprintf(path, at...))
		}
		return nil
	}
	for _, part := range []struct {
		name string
		raw  []byte
	}{{"tools", v.body().tools}, {"system", v.body().system}} {
		r := rawjson.NewReader(part.raw)
		if r.Kind() != '[' {
			continue
		}
		for i := range r.Elements() {
			if refusal := check(readFields(r).cacheControl, "%s.%d.cache_control", part.name, i); refusal != nil {
				return refusal
			}
		}
	}
	list := v.req.Messages
	for i := range list {
		for j := range list[i].Blocks {
			if b := &list[i].Blocks[j]; b.CacheMark {
				if r := check(rawFields(&list[i], b).cacheControl, "messages.%d.content.%d.cache_control", i, j); r != nil {
					return r
				}
			}
		}
	}
	return check(auto, "cache_control")
}

// lifetime returns the ttl of a cache_control, "5m" if it has none.
func lifetime(mark rawjson.Value) string {
	ttl := "5m"
	r := rawjson.NewReader(mark.Raw)
	if r.Kind() != '{' {
		return ttl
	}
	for key := range r.Fields() {
		if string(key) == "ttl" {
			if s, ok := r.String(); ok {
				ttl = s
			}
		}
	}
	return ttl
}
