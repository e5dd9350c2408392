package launch

import "testing"

func TestReachedAt(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:7410":  "http://127.0.0.1:7410",
		"localhost:7410":  "http://localhost:7410",
		"[::1]:7410":      "http://[::1]:7410",
		"10.1.2.3:80":     "http://10.1.2.3:80",
		"0.0.0.0:7410":    "http://127.0.0.1:7410",
		"[::]:7410":       "http://127.0.0.1:7410",
		":7410":           "http://127.0.0.1:7410",
		"furl.corp:7410":  "http://furl.corp:7410",
		"something else…": "http://something else…",
	} {
		if got := ReachedAt(listen); got != want {
			t.Errorf("%s: %s, want %s", listen, got, want)
		}
	}
}
