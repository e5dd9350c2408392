package clienttest

import (
	"testing"

	"google.golang.org/genai"
)

// geminiAgent works with a chat of Google's SDK, which keeps the pieces of a streamed reply as
// contents of their own.
func (st *fixture) geminiAgent(t testing.TB, stream bool) func(task string) string {
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: "dummy", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: st.url},
	})
	if err != nil {
		t.Fatal(err)
	}
	chat, err := client.Chats.Create(t.Context(), "gemini-3.1-pro-preview", &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText("You work through all pieces.", genai.RoleUser),
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
			Name: "bash", Description: "Run a command.",
			ParametersJsonSchema: map[string]any{"type": "object", "properties": properties, "required": []string{"command"}},
		}}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(parts []genai.Part) (calls []*genai.FunctionCall, said string) {
		read := func(r *genai.GenerateContentResponse, err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range r.Candidates[0].Content.Parts {
				if part.FunctionCall != nil {
					calls = append(calls, part.FunctionCall)
				} else if !part.Thought {
					said += part.Text
				}
			}
		}
		if !stream {
			read(chat.SendMessage(t.Context(), parts...))
			return calls, said
		}
		for r, err := range chat.SendMessageStream(t.Context(), parts...) {
			read(r, err)
		}
		return calls, said
	}
	return func(task string) string {
		parts := []genai.Part{{Text: task}}
		for {
			calls, said := ask(parts)
			if len(calls) == 0 {
				return said
			}
			parts = nil
			for _, call := range calls {
				parts = append(parts, genai.Part{FunctionResponse: &genai.FunctionResponse{
					ID: call.ID, Name: call.Name, Response: map[string]any{"output": st.bash(t, string(mustJSON(call.Args)))},
				}})
			}
		}
	}
}
