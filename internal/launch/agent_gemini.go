package launch

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// connectGemini says why the requests of Gemini CLI may not reach the gateway: a sign-in with
// Google goes to another service of Google's, and with -p and a base URL it starts only if its
// settings name the kind of key (seen in 0.61.0; findings/gemini-cli-base-url-needs-auth-type.sh).
func (r *Route) connectGemini() {
	selected, from := r.geminiAuth()
	vertex := r.Getenv("GOOGLE_GENAI_USE_VERTEXAI") == "true"
	switch {
	case selected == "oauth-personal" || selected == "compute-default-credentials":
		r.problem("%s sets security.auth.selectedType to %q, so Gemini CLI sends its requests to Gemini Code Assist and not to furl: choose an API key or Vertex AI with /auth", from, selected)
	case selected == "" && r.Getenv("GOOGLE_GENAI_USE_GCA") == "true":
		r.problem("GOOGLE_GENAI_USE_GCA is true, so Gemini CLI sends its requests to Gemini Code Assist and not to furl: unset it, and set GEMINI_API_KEY")
	case selected == "" && !vertex && from != "" && slices.ContainsFunc(r.command[1:], func(arg string) bool {
		return arg == "-p" || arg == "--prompt" || strings.HasPrefix(arg, "--prompt=")
	}):
		r.problem(`with a base URL, Gemini CLI refuses -p ("Invalid auth method selected.") until its settings name the kind of key: choose it once with /auth, or set security.auth.selectedType to "gemini-api-key" in %s`, from)
	}
}

// geminiAuth returns the kind of sign-in that Gemini CLI's settings select, and the file; "" if
// none does, with the user's file. Of files that cannot be read nothing is returned.
func (p Place) geminiAuth() (selected, from string) {
	home := p.Getenv("GEMINI_CLI_HOME")
	if home == "" {
		home = p.Home
	}
	if home == "" {
		return "", ""
	}
	user := filepath.Join(home, ".gemini", "settings.json")
	files := []string{user}
	if p.folder != "" {
		files = []string{filepath.Join(p.folder, ".gemini", "settings.json"), user} // the project's has precedence
	}
	for _, file := range files {
		data := readSettings(file)
		if data == nil {
			continue
		}
		var s struct {
			Security struct {
				Auth struct{ SelectedType string }
			}
		}
		if json.Unmarshal(data, &s) != nil {
			return "", ""
		}
		if s.Security.Auth.SelectedType != "" {
			return s.Security.Auth.SelectedType, file
		}
	}
	return "", user
}
