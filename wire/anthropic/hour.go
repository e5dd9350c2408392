package anthropic

import (
	"time"

	"github.com/furlhq/furl/internal/rawjson"
)

// HourPreamble implements wire.API. Breakpoints of one hour must precede those of five
// minutes, and the provider reads tools, then instructions, then messages (Anthropic,
// prompt caching, "Mixing different TTLs", 2026-10). So all breakpoints in tools and
// instructions get an hour, and those in messages stay as they are.
func (codec) HourPreamble(body []byte) ([]byte, bool) {
	var edits []rawjson.Edit
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return nil, false
	}
	for key := range r.Fields() {
		if name := string(key); name != "tools" && name != "system" || r.Kind() != '[' {
			r.Skip()
			continue
		}
		for range r.Elements() {
			start := r.Offset()
			element := r.Raw()
			mark := rawjson.Value{Raw: rawjson.Field(element, "cache_control")}
			if !present(mark) || lifetimeOf(mark) >= time.Hour {
				continue
			}
			longer := rawjson.Splice(mark.Raw, rawjson.SetField(mark.Raw, "ttl", []byte(`"1h"`)))
			for _, e := range rawjson.SetField(element, "cache_control", longer) {
				e.Span.Start += start
				e.Span.End += start
				edits = append(edits, e)
			}
		}
	}
	if r.End() != nil || len(edits) == 0 {
		return nil, false
	}
	return rawjson.Splice(body, edits), true
}
