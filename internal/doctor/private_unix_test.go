//go:build unix

package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/furlhq/furl/internal/config"
	"github.com/furlhq/furl/internal/private"
	"github.com/furlhq/furl/internal/serving"
)

// A key file that other users can read is refused. The error has the command to correct
// it.
func TestPrivateFiles(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "client keys")
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o660: false, 0o644: false, 0o610: false, 0o777: false} {
		if err := os.WriteFile(name, []byte("planted-key"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		data, err := private.Read(name)
		if ok && (err != nil || string(data) != "planted-key") {
			t.Errorf("mode %o: %q, %v", mode, data, err)
		}
		if want := fmt.Sprintf("has mode %04o, so others can read it: run chmod 600 '%s'", mode, name); !ok && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("mode %o: %v, want %q", mode, err, want)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// The group of a service may read secrets that the system provides, which are files of
// another user.
func TestPrivateFilesOfAnotherUser(t *testing.T) {
	other := &syscall.Stat_t{Uid: uint32(os.Geteuid() + 1)}
	for mode, ok := range map[os.FileMode]bool{0o440: true, 0o400: true, 0o444: false, 0o644: false} {
		info, err := (fstest.MapFS{"keys": {Mode: mode, Sys: other}}).Stat("keys")
		if err != nil {
			t.Fatal(err)
		}
		err = private.Check("/run/secrets/keys", info)
		if e, exposed := errors.AsType[*private.ExposedError](err); exposed == ok || exposed && e.Cure != "chmod o= /run/secrets/keys as its owner" {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

// furl config check, furl doctor and reading the tenants' key report the same problem.
func TestExposedFilesAreTold(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("FURL_DATA", folder)
	secret, err := serving.TenantSecret()
	if err != nil || len(secret) < 16 {
		t.Fatalf("the tenants' key: %d bytes, %v", len(secret), err)
	}
	if again, err := serving.TenantSecret(); err != nil || string(again) != string(secret) {
		t.Errorf("another key the second time, %v", err)
	}
	if left, err := filepath.Glob(folder + "/*"); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v", left, err)
	}
	c := &config.Config{Gateway: config.Gateway{Tenants: true, ClientKeysFile: "keys", OperatorKeyFile: "operator"}}
	for _, name := range []string{"keys", "operator"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("planted-"+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(folder, "config.yaml")
	if _, err := serving.Check(c, file); err != nil {
		t.Errorf("of private files it says %v", err)
	}
	d := &gatewayDoctor{getenv: func(string) string { return "" }}
	if d.keys(c, file); len(d.findings) != 0 || d.key != "planted-operator" {
		t.Errorf("with private files the doctor shows %q and says %v", d.key, d.findings)
	}
	for _, name := range []string{"keys", "operator", "tenants.key"} {
		exposed := filepath.Join(folder, name)
		if err := os.Chmod(exposed, 0o644); err != nil {
			t.Fatal(err)
		}
		want := "chmod 600 " + exposed
		if _, err := serving.Check(c, file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: config check says %v, want %q", name, err, want)
		}
		d := &gatewayDoctor{getenv: func(string) string { return "" }}
		d.keys(c, file)
		if !slices.ContainsFunc(d.findings, func(f Finding) bool {
			return f.State == findingProblem && f.Cure == want && strings.Contains(f.Text, "0644")
		}) {
			t.Errorf("%s: the doctor says %v, want %q", name, d.findings, want)
		}
		_, keysErr := serving.KeysOf(c, file)
		_, tenantsErr := serving.TenantSecret()
		if text := fmt.Sprint(keysErr, tenantsErr); !strings.Contains(text, want) || strings.Contains(text, "planted") {
			t.Errorf("%s: reading it says %s, want %q", name, text, want)
		}
		if err := os.Chmod(exposed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A truncated key is not replaced: its tenants would lose their sessions.
	if err := os.WriteFile(filepath.Join(folder, "tenants.key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := serving.TenantSecret(); err == nil || !strings.Contains(err.Error(), "has no key") {
		t.Errorf("an empty key: %v", err)
	}
}
