package openai

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/furlhq/furl/protocol"
)

// One odd entry or field does not discard a list, and the entry that fits a name best counts.
func TestReadModels(t *testing.T) {
	for _, tc := range []struct {
		name, vendor, model, body string
		window, output            int
		next                      string // path of the next query
	}{
		{name: "odd entries", model: "m", window: 4096,
			body: `{"object":1,"data":[null,"m",3,[{"id":"m","max_model_len":1}],{"id":7},{"id":"m","owned_by":null,"aliases":"m","meta":[],"top_provider":"x","context_length":"8k","context_window":1e99,"max_model_len":4096},true],"extra":{"data":[]}}`},
		{name: "an odd field", model: "m", window: 8192, body: `{"data":[{"id":"m","max_model_len":"long","meta":{"n_ctx":8192,"n_ctx_train":262144}}]}`},
		{name: "a null list", model: "m", body: `{"data":null}`},
		{name: "null in place of a provider", model: "m", window: 32_000, body: `{"data":[{"id":"m","context_length":32000,"top_provider":null}]}`},
		{name: "cut off", model: "m", body: `{"data":[{"id":"m","max_model_len":4096`},
		{name: "llama.cpp", model: "any", window: 193_024,
			body: `{"models":[{"name":"g.gguf","capabilities":["completion"]}],"object":"list","data":[{"id":"g.gguf","aliases":["gemma"],"owned_by":"llamacpp","meta":{"n_ctx":193024,"n_ctx_train":262144}}]}`},
		{name: "an alias in a router of llama.cpp", model: "gemma", next: "/props",
			body: `{"data":[{"id":"qwen","owned_by":"llamacpp","aliases":[]},{"id":"models/g.gguf","owned_by":"llamacpp","aliases":[2,"gemma"],"status":{"value":"unloaded"}}]}`},
		{name: "the id before an alias", model: "a", window: 2, body: `{"data":[{"id":"b","aliases":["a"],"max_model_len":1},{"id":"a","max_model_len":2}]}`},
		{name: "an adapter in vLLM", model: "sql-lora", window: 40_960,
			body: `{"data":[{"id":"base","owned_by":"vllm","parent":null,"max_model_len":40960},{"id":"sql-lora","owned_by":"vllm","parent":"base","max_model_len":null}]}`},
		{name: "OpenRouter", vendor: "OpenRouter", model: "z/glm:nitro", window: 131_072, output: 8000,
			body: `{"data":[{"id":"z/glm:free","context_length":1},{"id":"z/glm","context_length":202752,"top_provider":{"context_length":131072,"max_completion_tokens":8000,"is_moderated":false}}]}`},
		{name: "a listed variant", vendor: "OpenRouter", model: "z/glm:free", window: 1, body: `{"data":[{"id":"z/glm","context_length":202752},{"id":"z/glm:free","context_length":1}]}`},
		{name: "no variants elsewhere", model: "glm:nitro", body: `{"data":[{"id":"glm","context_length":1},{"id":"b"}]}`},
		{name: "Groq", vendor: "Groq", model: "m", window: 131_072, output: 65_536, body: `{"data":[{"id":"m","owned_by":"Groq","context_window":131072,"max_completion_tokens":65536}]}`},
		{name: "Mistral", model: "codestral-latest", window: 256_000, body: `{"data":[{"id":"codestral-2508","aliases":["codestral-latest"],"owned_by":"mistralai","max_context_length":256000}]}`},
		{name: "the maximum of a local model", model: "m", next: "/api/v0/models", body: `{"data":[{"id":"m","owned_by":"organization_owner","max_context_length":32768}]}`},
		{name: "Together", model: "b", window: 131_072, body: `[{"id":"a","context_length":1},{"id":"b","context_length":131072}]`},
		{name: "Ollama", model: "gemma4", next: "/api/ps", body: `{"data":[{"id":"other:7b","owned_by":"library"},{"id":"gemma4:latest","owned_by":"library"}]}`},
		{name: "Ollama, from another registry", model: "hf.co/bartowski/Qwen3-GGUF:Q4_K_M", next: "/api/ps", body: `{"data":[{"id":"a:b","owned_by":"library"},{"id":"hf.co/bartowski/Qwen3-GGUF:Q4_K_M","owned_by":"bartowski"}]}`},
		{name: "Ollama, somebody's model", model: "mira/own", next: "/api/ps", body: `{"data":[{"id":"mira/own:latest","owned_by":"mira"},{"id":"b:c","owned_by":"library"}]}`},
		{name: "a proxy's names are not Ollama's", model: "openai/gpt-4o", body: `{"data":[{"id":"openai/gpt-4o","owned_by":"openai"}]}`},
	} {
		a := readModels([]byte(tc.body), tc.vendor, tc.model)
		next := ""
		if len(a.Next) > 0 {
			next = a.Next[0].Path
		}
		if a.Window != tc.window || a.MaxOutput != tc.output || next != tc.next {
			t.Errorf("%s: window %d, largest reply %d, next %q; want %d, %d, %q", tc.name, a.Window, a.MaxOutput, next, tc.window, tc.output, tc.next)
		}
	}
}

// Lists of servers' own APIs are read in the same way.
func TestReadServerLists(t *testing.T) {
	for _, tc := range []struct {
		name string
		got  int
		want int
	}{
		{"Ollama", readLoaded([]byte(`{"models":[1,{"name":2,"context_length":1},{"name":"g:latest","size":1,"context_length":4096},{"model":"g","context_length":8192}]}`), "g").Window, 4096},
		{"Ollama, another model", readLoaded([]byte(`{"models":[{"name":"h:latest","context_length":4096}]}`), "g").Window, 0},
		{"Ollama, no list", readLoaded([]byte(`{"models":{}}`), "g").Window, 0},
		{"LM Studio", readStudioList([]byte(`{"models":[null,{"key":"k","loaded_instances":[7,{"id":"k","config":{"context_length":4096}},{"id":"k:2","config":{"context_length":2048}}],"max_context_length":32768}]}`), "k").Window, 4096},
		{"LM Studio, an instance", readStudioList([]byte(`{"models":[{"key":"k","loaded_instances":[{"id":"k:2","config":{"context_length":2048}}]}]}`), "k:2").Window, 2048},
		{"LM Studio, instances of other names", readStudioList([]byte(`{"models":[{"loaded_instances":[{"id":"x","config":{"context_length":4096}},{"id":"y","config":{"context_length":2048}},{"id":"z","config":null}],"key":"k"}]}`), "k").Window, 2048},
		{"LM Studio, not loaded", readStudioList([]byte(`{"models":[{"key":"k","loaded_instances":[],"max_context_length":32768}]}`), "k").Window, 0},
		{"LM Studio v0", readStudio([]byte(`{"id":"k","max_context_length":32768,"loaded_context_length":4096}`)).Window, 4096},
		{"llama.cpp", readProps([]byte(`{"default_generation_settings":{"n_ctx":8192,"params":{"n_ctx":1}},"n_ctx":2}`)).Window, 8192},
		{"llama.cpp, odd", readProps([]byte(`{"default_generation_settings":[8192]}`)).Window, 0},
		{"Ollama's parameters", readShow([]byte(`{"parameters":"stop \"x\"\nnum_ctx    8192","model_info":{"g.context_length":131072}}`)).Window, 8192},
		{"Ollama without parameters", readShow([]byte(`{"parameters":{"num_ctx":1}}`)).Window, 0},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, tc.got, tc.want)
		}
	}
}

// Reading a list takes no memory for each entry.
func TestReadModelsMemory(t *testing.T) {
	entries := strings.Repeat(`{},`, 500_000)
	list := []byte(`{"data":[` + entries + `{"id":"m","max_model_len":4096}],"models":[` + entries + `{"name":"m","key":"m","context_length":4096}]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if a := readModels(list, "", "m"); a.Window != 4096 {
		t.Errorf("the window is %d", a.Window)
	}
	if a := readLoaded(list, "m"); a.Window != 4096 {
		t.Errorf("the loaded window is %d", a.Window)
	}
	readStudioList(list, "m")
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes for a list of %d bytes", n, len(list))
	}
}

// Whatever a server lists beside a model, the model's own entry counts.
func FuzzModels(f *testing.F) {
	for _, s := range []string{`{"id":"x","max_model_len":1}`, `[{"id":1}]`, `null`, `{"id":{"a":[1e9]},"aliases":[null,"x"],"top_provider":{"context_length":-1}}`, `{"key":"x","loaded_instances":[{"config":[]}]}`, `{"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, odd []byte) {
		for _, body := range [][]byte{odd, append([]byte(`{"default_generation_settings":`), odd...), append([]byte(`{"parameters":`), odd...)} {
			readModels(body, "", "m")
			readLoaded(body, "m")
			readStudioList(body, "m")
			readStudio(body)
			readProps(body)
			readShow(body)
		}
		if !json.Valid(odd) || bytes.ContainsAny(odd, `m\`) {
			return
		}
		for name, read := range map[string]func([]byte) protocol.ModelAnswer{
			`{"id":"m","max_model_len":4096}`:                                              func(b []byte) protocol.ModelAnswer { return readModels(b, "", "m") },
			`{"model":"m","context_length":4096}`:                                          func(b []byte) protocol.ModelAnswer { return readLoaded(b, "m") },
			`{"key":"m","loaded_instances":[{"id":"m","config":{"context_length":4096}}]}`: func(b []byte) protocol.ModelAnswer { return readStudioList(b, "m") },
		} {
			list := `[` + string(odd) + `,` + name + `,` + string(odd) + `]`
			if a := read([]byte(`{"models":` + list + `,"data":` + list + `}`)); a.Window != 4096 {
				t.Errorf("%s: the window is %d, with %s", name, a.Window, odd)
			}
		}
	})
}
