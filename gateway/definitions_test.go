package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/transcript"
)

// definingTypes are blocks and items that define tools for the model, or name their
// definitions.
var definingTypes = map[any]bool{
	"additional_tools": true, "tool_search_output": true, "tool_reference": true, "tool_addition": true, "tool_removal": true, "mcp_list_tools": true,
}

// definitions is what a request defines, as JSON: its tools, its instructions, and what does so
// in the list of messages or items, for which it holds true.
func definitions(t testing.TB, body []byte) map[string]bool {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool)
	inList := false
	add := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		found[string(text)] = inList
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			delete(v, "cache_control") // furl moves breakpoints
			if definingTypes[v["type"]] {
				add(v)
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	for _, name := range []string{"tools", "system", "instructions"} {
		if v, ok := fields[name]; ok {
			walk(v)
			add(v)
		}
	}
	inList = true
	for _, name := range []string{"messages", "input"} {
		list, _ := fields[name].([]any)
		walk(list)
		for _, e := range list {
			m, _ := e.(map[string]any)
			if role := m["role"]; role != "system" && role != "developer" {
				break
			}
			add(e)
		}
	}
	return found
}

// sameDefinitions compares what the client's request defines with what the provider got: that
// request, and maybe one of furl's for a summary. st.mu must be held.
func (st *judgeStand) sameDefinitions(asked []byte) {
	want, missing, inList := definitions(st.t, asked), "", false
	for _, body := range st.got {
		got := definitions(st.t, body)
		missing = ""
		for d, listed := range want {
			if _, ok := got[d]; !ok {
				missing = d
			}
			inList = inList || listed
		}
		if missing == "" {
			break
		}
	}
	if missing != "" {
		st.t.Errorf("request %d: the provider did not get %.200s", st.requests, missing)
	}
	if inList {
		st.defined++
	}
}

// No request that reaches the provider lacks a definition that the client's had, with any
// preset and in a small window. Only recordings that define tools in their messages are sent,
// and those with auto only; FURL_MARKS=1 sends 100 requests of all recordings with all presets.
func TestDefinitionsReachTheProvider(t *testing.T) {
	all := os.Getenv("FURL_MARKS") != ""
	presets, most := []string{"auto"}, 60
	if all {
		presets, most = policy.NewSet().Names(), 100
	}
	requests, defined, stopped := 0, 0, 0
	for _, file := range recordings.Files(t, "*/*.gz") {
		text := recordings.Read(t, file)
		if !all && !bytes.Contains(text, []byte(`"tool_reference"`)) && !bytes.Contains(text, []byte(`"tool_search_output"`)) {
			continue
		}
		rec, err := transcript.ReadFile(file)
		if err != nil || len(rec.Sessions) == 0 {
			continue // not an agent's
		}
		s := rec.Sessions[0]
		way := followed{client: "claude", window: smallWindow}
		if s.Wire == furl.FormatResponses {
			way.client = "codex"
		}
		if gateway.RaceDetector && defined > 0 {
			break
		}
		for _, name := range presets {
			if name == "none" {
				continue // the provider refuses what is larger than its window
			}
			t.Run(fmt.Sprintf("%s/%s", filepath.Base(file), name), func(t *testing.T) {
				way.policy = name
				st := newJudge(t, s, way, 10_000_000)
				st.definitions = true
				if st.follow(t, s, way, most); st.err != nil {
					stopped++
					t.Log(st.err) // at a recorded compaction, or one by furl
				}
				requests += st.requests
				defined += st.defined
			})
		}
	}
	if t.Logf("%d requests, %d of them with definitions among the messages; %d recordings were left early", requests, defined, stopped); defined == 0 {
		t.Error("no request had definitions among its messages")
	}
}
