package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSetPolicy(t *testing.T) {
	for name, tt := range map[string]struct{ before, after string }{
		"no file":      {"", "policy: auto:frugal\n"},
		"replaced":     {"# mine\npolicy: rolling  # because\nstore: x.db\n", "# mine\npolicy: auto:frugal # because\nstore: x.db\n"},
		"quoted":       {"policy: \"auto\"\n", "policy: auto:frugal\n"},
		"added":        {"store: x.db", "store: x.db\npolicy: auto:frugal\n"},
		"only notes":   {"# nothing yet\n", "# nothing yet\npolicy: auto:frugal\n"},
		"rules stay":   {"models:\n  - model: a*\n    policy: rolling\n", "models:\n  - model: a*\n    policy: rolling\npolicy: auto:frugal\n"},
		"options stay": {"policy: rolling\npolicies:\n  rolling: {target_utilization: 0.5}\n", "policy: auto:frugal\npolicies:\n  rolling: {target_utilization: 0.5}\n"},
	} {
		file := filepath.Join(t.TempDir(), "furl", "config.yaml")
		if tt.before != "" {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(tt.before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := SetPolicy(file, "auto:frugal", nil); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != tt.after {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tt.after)
		}
		if info, err := os.Stat(file); tt.before != "" && (err != nil || info.Mode().Perm() != 0o600) {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
}

// What has no simple place to change, or is wrong already, stays as it is.
func TestSetPolicyLeaves(t *testing.T) {
	for _, before := range []string{"{store: x}\n", "policy:\n  auto\n", "stor: x\n", "store: x\n...\n", "{policy: auto}\n", "policy: >-\n  auto\n"} {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		err := SetPolicy(file, "auto:frugal", nil)
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v", before, err)
		}
		if got, _ := os.ReadFile(file); string(got) != before {
			t.Errorf("%q became %q", before, got)
		}
	}
}

// Whatever the file is like, it says the policy afterwards or is not touched.
func FuzzSetPolicy(f *testing.F) {
	for _, seed := range []string{Example, "policy: auto\n", "policy: auto # x\r\nstore: y", "? policy\n: auto\n", "'policy': auto", "policy: !!str auto", "\u2028\r#\r\npolicy: auto"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := setPolicy("f", data, "auto:faithful", nil)
		if err != nil {
			return
		}
		if c, err := Parse("f", out, nil); err != nil || c.Policy != "auto:faithful" {
			t.Fatalf("%q became %q: %v", data, out, err)
		}
	})
}
