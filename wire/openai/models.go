package openai

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// ModelQueries returns the query for a model. OpenAI and some others report no windows.
func (chat) ModelQueries(vendor, model string) []protocol.ModelQuery {
	return modelQueries(vendor, model)
}

// ModelQueries returns the query for a model, as Chat does.
func (responses) ModelQueries(vendor, model string) []protocol.ModelQuery {
	return modelQueries(vendor, model)
}

func modelQueries(vendor, model string) []protocol.ModelQuery {
	switch vendor {
	case "", "OpenRouter", "Groq":
		return []protocol.ModelQuery{{Path: "/v1/models", Read: func(body []byte) protocol.ModelAnswer { return readModels(body, vendor, model) }}}
	}
	return nil
}

// listed is a model in the list of a server. The fields in which servers report windows are:
//
//   - max_model_len: vLLM (ModelCard in vllm/entrypoints/openai) and SGLang. An adapter has
//     none, but names its base model as its parent.
//   - context_length: Together and others. OpenRouter also reports that of the provider to
//     which it prefers to send requests (openrouter.ai/docs, "List models").
//   - context_window and max_completion_tokens: Groq (console.groq.com/docs/models)
//   - max_context_length: Mistral (docs.mistral.ai/api). On local servers that is the maximum
//     of the model, and not the window of the server.
//   - meta.n_ctx: llama.cpp, of one slot. meta.n_ctx_train is the maximum of the model.
type listed struct {
	id, owner, parent                     string
	alias                                 bool // one of its aliases is the name that is looked for
	context, topContext, modelLen, window int
	maxContext, slot                      int
	maxOutput                             int
}

// modelsIn ranges over the entries of a list of models: those of a field of an object, or
// the whole body. Entries that are not objects are skipped. After an error it ends.
func modelsIn(body []byte, field string) iter.Seq[*rawjson.Reader] {
	return func(yield func(*rawjson.Reader) bool) {
		r := rawjson.NewReader(body)
		elements := func() bool {
			for range r.Elements() {
				if r.Kind() == '{' && !yield(r) {
					return false
				}
			}
			return true
		}
		switch r.Kind() {
		case '[': // Together
			elements()
		case '{':
			for key := range r.Fields() {
				if string(key) == field && r.Kind() == '[' && !elements() {
					return
				}
			}
		}
	}
}

func readListed(r *rawjson.Reader, model string) (m listed) {
	for key := range r.Fields() {
		switch string(key) {
		case "id":
			m.id, _ = r.String()
		case "owned_by":
			m.owner, _ = r.String()
		case "parent":
			m.parent, _ = r.String()
		case "aliases":
			if r.Kind() != '[' {
				break
			}
			for range r.Elements() {
				name, _ := r.String()
				m.alias = m.alias || name == model
			}
		case "meta":
			m.slot = readInts(r, "n_ctx")[0]
		case "top_provider":
			n := readInts(r, "context_length", "max_completion_tokens")
			m.topContext, m.maxOutput = n[0], max(m.maxOutput, n[1])
		case "max_model_len":
			m.modelLen, _ = r.Int()
		case "context_length":
			m.context, _ = r.Int()
		case "context_window":
			m.window, _ = r.Int()
		case "max_context_length":
			m.maxContext, _ = r.Int()
		case "max_completion_tokens":
			n, _ := r.Int()
			m.maxOutput = max(m.maxOutput, n)
		}
	}
	return m
}

// readInts consumes a value and returns numbers of an object, 0 for those that it lacks.
func readInts(r *rawjson.Reader, names ...string) []int {
	out := make([]int, len(names))
	if r.Kind() != '{' {
		r.Skip()
		return out
	}
	for key := range r.Fields() {
		if i := slices.Index(names, string(key)); i >= 0 {
			out[i], _ = r.Int()
		}
	}
	return out
}

// matches returns how well the entry fits the name of a model in requests, 0 if it does not.
func (m *listed) matches(vendor, model string) int {
	switch {
	case m.id == model:
		return 4
	case m.alias:
		return 3
	case m.id == model+":latest": // Ollama
		return 2
	}
	if base, _, variant := strings.Cut(model, ":"); variant && vendor == "OpenRouter" && m.id == base {
		return 1 // :nitro and others choose the provider; the list has only some, such as :free
	}
	return 0
}

// readModels reads a list of models. It keeps only the entries that it needs, because a
// list may have millions.
func readModels(body []byte, vendor, model string) protocol.ModelAnswer {
	var m, first listed
	count, best := 0, 0
	for r := range modelsIn(body, "data") {
		e := readListed(r, model)
		if r.Err() != nil {
			return protocol.ModelAnswer{}
		}
		if count++; count == 1 {
			first = e
		}
		if fit := e.matches(vendor, model); fit > best {
			m, best = e, fit
		}
	}
	if best == 0 && count == 1 {
		m, best = first, 1 // llama.cpp and others serve their model under every name
	}
	if best == 0 {
		return protocol.ModelAnswer{}
	}
	if m.modelLen == 0 && m.parent != "" {
		for r := range modelsIn(body, "data") {
			if e := readListed(r, ""); e.id == m.parent {
				m.modelLen = e.modelLen
			}
		}
	}
	// A router may send the request to a provider with a smaller window than the largest
	// one.
	a := protocol.ModelAnswer{Window: smaller(m.context, m.topContext), MaxOutput: m.maxOutput}
	a.Window = cmp.Or(a.Window, m.modelLen, m.window, m.slot)
	if m.owner == "mistralai" {
		a.Window = cmp.Or(a.Window, m.maxContext)
	}
	if a.Window == 0 && vendor == "" {
		a.Next = serverQueries(&m, model)
	}
	return a
}

// smaller returns the smaller of two numbers that are not 0.
func smaller(a, b int) int {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// serverQueries returns the queries of the server that is recognised by the owner of its
// models.
func serverQueries(m *listed, model string) []protocol.ModelQuery {
	switch {
	case m.owner == "llamacpp":
		// A router of servers needs the model; a single server ignores it.
		return []protocol.ModelQuery{{Path: "/props", Root: true, Read: readProps, Query: map[string]string{"model": m.id, "autoload": "false"}}}
	case m.ofOllama():
		body := append(rawjson.AppendString([]byte(`{"model":`), model), '}')
		return []protocol.ModelQuery{
			{Path: "/api/ps", Root: true, Read: func(body []byte) protocol.ModelAnswer { return readLoaded(body, model) }},
			{Path: "/api/show", Root: true, Body: body, Read: readShow},
		}
	case m.owner == "organization_owner": // LM Studio
		return []protocol.ModelQuery{
			{Path: "/api/v0/models", Name: model, Root: true, Read: readStudio},
			{Path: "/api/v1/models", Root: true, Read: func(body []byte) protocol.ModelAnswer { return readStudioList(body, model) }},
		}
	}
	return nil
}

// ofOllama reports whether Ollama has listed the model: the owner is the namespace of its
// name, library by default, as in gemma4:latest or hf.co/OWNER/MODEL:TAG
// (ToListCompletion in ollama/openai).
func (m *listed) ofOllama() bool {
	if m.owner == "library" {
		return true
	}
	parts := strings.Split(m.id, "/")
	return len(parts) >= 2 && m.owner != "" && parts[len(parts)-2] == m.owner && strings.Contains(parts[len(parts)-1], ":")
}

// readProps reads llama.cpp's GET /props: n_ctx is the context of one slot
// (tools/server/README.md).
func readProps(body []byte) protocol.ModelAnswer {
	return protocol.ModelAnswer{Window: intField(rawjson.Field(body, "default_generation_settings"), "n_ctx")}
}

func intField(obj []byte, name string) int {
	n, _ := strconv.Atoi(string(rawjson.Field(obj, name)))
	return n
}

// readLoaded reads Ollama's GET /api/ps: context_length is the context of a loaded model,
// which is often less than its maximum (docs.ollama.com/api/ps).
func readLoaded(body []byte, model string) (a protocol.ModelAnswer) {
	name := func(r *rawjson.Reader) string {
		s, _ := r.String()
		return strings.TrimSuffix(s, ":latest")
	}
	want := strings.TrimSuffix(model, ":latest")
	for r := range modelsIn(body, "models") {
		found, context := false, 0
		for key := range r.Fields() {
			switch string(key) {
			case "name", "model":
				found = name(r) == want || found
			case "context_length":
				context, _ = r.Int()
			}
		}
		if found && a.Window == 0 {
			a.Window = context
		}
	}
	return a
}

// readShow reads Ollama's POST /api/show. Its parameters are lines such as "num_ctx 8192".
// The context length in model_info is the maximum of the model; the server's default is
// smaller, so the maximum is not the window.
func readShow(body []byte) protocol.ModelAnswer {
	for line := range strings.Lines(rawjson.Unquote(rawjson.Field(body, "parameters"))) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			n, _ := strconv.Atoi(f[1])
			return protocol.ModelAnswer{Window: n}
		}
	}
	return protocol.ModelAnswer{}
}

// readStudio reads LM Studio's GET /api/v0/models/{model}. A model that is not loaded has
// only a maximum (lmstudio.ai/docs/developer/rest/endpoints).
func readStudio(body []byte) protocol.ModelAnswer {
	return protocol.ModelAnswer{Window: intField(body, "loaded_context_length")}
}

// readStudioList reads LM Studio's GET /api/v1/models (lmstudio.ai/docs/developer/rest/list).
// A request names a model or one of its loaded instances. The smallest instance counts if it
// names a model.
func readStudioList(body []byte, model string) protocol.ModelAnswer {
	exact, smallest := 0, 0
	for r := range modelsIn(body, "models") {
		key, instances := "", 0
		for field := range r.Fields() {
			switch string(field) {
			case "key":
				key, _ = r.String()
			case "loaded_instances":
				if r.Kind() != '[' {
					break
				}
				for range r.Elements() {
					if r.Kind() != '{' {
						continue
					}
					id, context := "", 0
					for field := range r.Fields() {
						switch string(field) {
						case "id":
							id, _ = r.String()
						case "config":
							context = readInts(r, "context_length")[0]
						}
					}
					instances = smaller(instances, context)
					if id == model {
						exact = context
					}
				}
			}
		}
		if key == model {
			smallest = smaller(smallest, instances)
		}
	}
	return protocol.ModelAnswer{Window: cmp.Or(exact, smallest)}
}
