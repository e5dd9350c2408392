package gateway_test

import (
	"fmt"
	"strings"
	"testing"
)

// C1: the API lists and changes the settings of a session. An error changes nothing and
// says what is expected.
func TestC1SettingsOverTheAPI(t *testing.T) {
	st, id := looped(t, nil)
	path := "/sessions/" + id + "/settings"
	status, out := st.ask(t, "POST", path, `{"rolling_context":true,"context_threshold":0.7,"context_limit":50000,"policy":"rolling"}`)
	if status != 200 {
		t.Fatalf("%d %v", status, out)
	}
	_, out = st.ask(t, "GET", path, "")
	got := make(map[string]string)
	for _, s := range out["settings"].([]any) {
		s := s.(map[string]any)
		got[s["name"].(string)] = fmt.Sprint(s["value"], " ", s["from"])
	}
	for name, want := range map[string]string{
		"rolling_context": "on session", "context_threshold": "0.7 session", "context_limit": "50000 session", "policy": "rolling session", "context_management_enabled": "on default",
	} {
		if got[name] != want {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
	if _, out := st.ask(t, "GET", "/sessions/"+id+"/context", ""); out["limit"] != 50000.0 {
		t.Errorf("the limit is %v", out["limit"])
	}
	for body, want := range map[string]string{
		`{"title":"x","polcy":"auto"}`:            "unknown setting \"polcy\": expected one of policy, ",
		`{"title":"x","rolling_context":"maybe"}`: "expected on or off",
		`{"title":"x","policy":{"name":"auto"}}`:  "expected a string, a number, true, false or null",
		`{}`:                                      "missing settings",
		`[1]`:                                     "expected a JSON object",
	} {
		status, out := st.ask(t, "POST", path, body)
		if text := fmt.Sprint(out); status != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want 400 and %q", body, status, text, want)
		}
	}
	if _, out := st.ask(t, "GET", "/sessions/"+id, ""); out["title"] == "x" {
		t.Error("an invalid request changed the title")
	}
	if _, out := st.ask(t, "POST", path, `{"context_limit":null}`); !strings.Contains(fmt.Sprint(out), "16000") {
		t.Errorf("the limit was not reset: %v", out)
	}
}
