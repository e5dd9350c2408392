package openai

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/furlhq/furl/protocol"
)

// ModelQueries returns the query for a model. OpenAI and some others do not say windows.
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

// listed is a model in the list of a server, with the fields in which servers say
// windows:
//
//   - max_model_len: vLLM (ModelCard in vllm/entrypoints/openai) and SGLang
//   - context_length and top_provider: OpenRouter (openrouter.ai/docs, "List models")
//   - context_window and max_completion_tokens: Groq (console.groq.com/docs/models)
//   - meta.n_ctx: newer versions of llama.cpp. meta.n_ctx_train is what the model was trained
//     for, not what the server has.
type listed struct {
	ID          string `json:"id"`
	OwnedBy     string `json:"owned_by"`
	MaxModelLen int    `json:"max_model_len"`
	Context     int    `json:"context_length"`
	Window      int    `json:"context_window"`
	MaxOutput   int    `json:"max_completion_tokens"`
	Meta        struct {
		Context int `json:"n_ctx"`
	} `json:"meta"`
	Top struct {
		Context   int `json:"context_length"`
		MaxOutput int `json:"max_completion_tokens"`
	} `json:"top_provider"`
}

func readModels(body []byte, vendor, model string) protocol.ModelAnswer {
	var list struct {
		Data []listed `json:"data"`
	}
	if json.Unmarshal(body, &list) != nil {
		return protocol.ModelAnswer{}
	}
	at := -1
	for i := range list.Data {
		if m := &list.Data[i]; m.ID == model || m.ID == model+":latest" && at < 0 {
			at = i
		}
	}
	if at < 0 && len(list.Data) == 1 {
		at = 0 // llama.cpp and others serve their model under every name
	}
	if at < 0 {
		return protocol.ModelAnswer{}
	}
	m := &list.Data[at]
	// A router may send the request to a provider with a smaller window than the best
	// one's.
	a := protocol.ModelAnswer{Window: smaller(m.Context, m.Top.Context), MaxOutput: max(m.MaxOutput, m.Top.MaxOutput)}
	for _, n := range []int{m.MaxModelLen, m.Window, m.Meta.Context} {
		if a.Window == 0 {
			a.Window = n
		}
	}
	if a.Window == 0 && vendor == "" {
		a.Next = serverQueries(m.OwnedBy, model, len(list.Data))
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

// serverQueries returns the queries of the server that is known by the owner of its
// models.
func serverQueries(owner, model string, models int) []protocol.ModelQuery {
	switch owner {
	case "llamacpp":
		q := protocol.ModelQuery{Path: "/props", Root: true, Read: readProps}
		if models > 1 { // it is a router of servers
			q.Query = map[string]string{"model": model, "autoload": "false"}
		}
		return []protocol.ModelQuery{q}
	case "library": // Ollama
		body, _ := json.Marshal(map[string]string{"model": model})
		return []protocol.ModelQuery{
			{Path: "/api/ps", Root: true, Read: func(body []byte) protocol.ModelAnswer { return readLoaded(body, model) }},
			{Path: "/api/show", Root: true, Body: body, Read: readShow},
		}
	case "organization_owner": // LM Studio
		return []protocol.ModelQuery{
			{Path: "/api/v0/models", Name: model, Root: true, Read: readStudio},
			{Path: "/api/v1/models", Root: true, Read: func(body []byte) protocol.ModelAnswer { return readStudioList(body, model) }},
		}
	}
	return nil
}

// readProps reads llama.cpp's GET /props: n_ctx is the context of one slot
// (tools/server/README.md).
func readProps(body []byte) protocol.ModelAnswer {
	var p struct {
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if json.Unmarshal(body, &p) != nil {
		return protocol.ModelAnswer{}
	}
	return protocol.ModelAnswer{Window: p.Settings.Context}
}

// readLoaded reads Ollama's GET /api/ps: context_length is what a loaded model has in
// use, which is often less than its maximum (docs.ollama.com/api/ps).
func readLoaded(body []byte, model string) protocol.ModelAnswer {
	var ps struct {
		Models []struct {
			Name    string `json:"name"`
			Model   string `json:"model"`
			Context int    `json:"context_length"`
		} `json:"models"`
	}
	if json.Unmarshal(body, &ps) != nil {
		return protocol.ModelAnswer{}
	}
	tagged := strings.TrimSuffix(model, ":latest")
	for _, m := range ps.Models {
		if strings.TrimSuffix(m.Name, ":latest") == tagged || strings.TrimSuffix(m.Model, ":latest") == tagged {
			return protocol.ModelAnswer{Window: m.Context}
		}
	}
	return protocol.ModelAnswer{}
}

// readShow reads Ollama's POST /api/show. Its parameters are lines such as "num_ctx 8192".
// The context length in model_info is the model's maximum; the server's default is
// smaller, so that does not tell the window.
func readShow(body []byte) protocol.ModelAnswer {
	var show struct {
		Parameters string `json:"parameters"`
	}
	if json.Unmarshal(body, &show) != nil {
		return protocol.ModelAnswer{}
	}
	for line := range strings.Lines(show.Parameters) {
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
	var m struct {
		Context int `json:"loaded_context_length"`
	}
	if json.Unmarshal(body, &m) != nil {
		return protocol.ModelAnswer{}
	}
	return protocol.ModelAnswer{Window: m.Context}
}

// readStudioList reads LM Studio's GET /api/v1/models (lmstudio.ai/docs/developer/rest).
func readStudioList(body []byte, model string) protocol.ModelAnswer {
	var list struct {
		Models []struct {
			Key    string `json:"key"`
			Loaded []struct {
				ID     string `json:"id"`
				Config struct {
					Context int `json:"context_length"`
				} `json:"config"`
			} `json:"loaded_instances"`
		} `json:"models"`
	}
	if json.Unmarshal(body, &list) != nil {
		return protocol.ModelAnswer{}
	}
	window := 0
	for _, m := range list.Models {
		for _, l := range m.Loaded {
			if l.ID == model {
				return protocol.ModelAnswer{Window: l.Config.Context}
			}
			if m.Key == model {
				window = smaller(window, l.Config.Context)
			}
		}
	}
	return protocol.ModelAnswer{Window: window}
}
