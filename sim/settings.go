package sim

import (
	"encoding/json"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// Fields that a provider accepts only with others.

// checkSampling checks the range of the temperature, and that it fits the
// thinking.
func checkSampling(f *facts) *protocol.Refusal {
	if f.temperature == nil {
		return nil
	}
	var t float64
	if json.Unmarshal(f.temperature, &t) != nil {
		return refused("temperature: Input should be a valid number")
	}
	switch {
	case t < 0 || t > 1:
		return refused("temperature: range: 0..1")
	case t != 1 && (f.thinking == "enabled" || f.thinking == "adaptive"):
		return refused("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. " +
			"Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking")
	}
	return nil
}

// checkDependentFields refuses fields that Chat Completions accepts only with tools,
// or only when streaming.
func checkDependentFields(c *call) *protocol.Refusal {
	f := &c.facts
	if f.streamOptions != nil && !c.req.Stream {
		return dependentField("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	if f.tools != nil {
		return nil
	}
	for _, name := range []string{"tool_choice", "parallel_tool_calls"} {
		if f.wantTools[name] {
			return dependentField(name, "Invalid value for '"+name+"': '"+name+"' is only allowed when 'tools' are specified.")
		}
	}
	return nil
}

func dependentField(param, text string) *protocol.Refusal {
	return &protocol.Refusal{Status: 400, Type: "invalid_request_error", Param: param, Message: text}
}

// recordNeedsTools records that a field which requires tools is set.
func (f *facts) recordNeedsTools(name string, r *rawjson.Reader) {
	if r.Kind() == 'n' {
		return
	}
	if f.wantTools == nil {
		f.wantTools = make(map[string]bool)
	}
	f.wantTools[name] = true
}
