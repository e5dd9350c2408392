package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The npm packages are installed from a registry on this machine, as users get them:
// npm downloads the binary for this platform only, and npx runs it.
func (r *installed) testNPM(t *testing.T) {
	registry := newRegistry(t, r.dir)
	home := t.TempDir()
	npm := func(name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir = home
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "npm_config_registry=" + registry.URL, "npm_config_update_notifier=false",
			"npm_config_audit=false", "npm_config_fund=false", "npm_config_ignore_scripts=true"}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if err := os.WriteFile(filepath.Join(home, "package.json"), []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := npm("npm", "install", "@furlhq/furl"); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	if out, err := npm("npx", "--no", "furl", "version"); err != nil || out != "furl "+r.version+"\n" {
		t.Errorf("npx furl version: %q, %v", out, err)
	}
	if p := packageJSON(t, filepath.Join(home, "node_modules/@furlhq/furl/package.json")); p.Version != strings.SplitN(strings.TrimPrefix(r.version, "v"), "+", 2)[0] {
		t.Errorf("the package has the version %s, furl %s", p.Version, r.version)
	}
	packages, err := os.ReadDir(filepath.Join(home, "node_modules/@furlhq"))
	if err != nil || len(packages) != 2 {
		t.Errorf("installed packages: %v, %v; want furl and the one for this platform", packages, err)
	}
	if !*whole { // the small program passes its exit code and input on
		if out, err := npm("npx", "--no", "furl", "sh", "exit 7"); err == nil || err.(*exec.ExitError).ExitCode() != 7 {
			t.Errorf("a command that exits with 7: %v\n%s", err, out)
		}
	}

	// Without the platform's package the error says what to do.
	other := t.TempDir()
	if out, err := npm("npm", "install", "--omit=optional", "--prefix", other, "@furlhq/furl"); err != nil {
		t.Fatalf("npm install --omit=optional: %v\n%s", err, out)
	}
	out, err := npm("node", filepath.Join(other, "node_modules/@furlhq/furl/bin/furl.js"), "version")
	if err == nil || !strings.Contains(out, "--omit=optional") {
		t.Errorf("without optional dependencies: %v\n%s", err, out)
	}
}

// newRegistry serves the npm packages of a release as a registry does.
func newRegistry(t *testing.T, dir string) *httptest.Server {
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) < 2 {
		t.Fatalf("npm packages: %q", files)
	}
	documents := map[string]map[string]any{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		path, err := url.PathUnescape(strings.TrimPrefix(req.URL.EscapedPath(), "/"))
		if file, ok := strings.CutPrefix(path, "files/"); ok && err == nil && filepath.IsLocal(file) {
			http.ServeFile(w, req, filepath.Join(dir, file))
			return
		}
		document, ok := documents[path]
		if !ok {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document)
	}))
	t.Cleanup(server.Close)
	for _, file := range files {
		manifest := manifestOf(t, file)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha512.Sum512(data)
		name, version := manifest["name"].(string), manifest["version"].(string)
		manifest["dist"] = map[string]any{
			"tarball":   server.URL + "/files/" + filepath.Base(file),
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}
		documents[name] = map[string]any{
			"name": name, "dist-tags": map[string]any{"latest": version}, "versions": map[string]any{version: manifest},
		}
	}
	return server
}

// manifestOf reads the package.json in an npm package.
func manifestOf(t *testing.T, file string) map[string]any {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			t.Fatalf("%s has no package.json", file)
		}
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", file, err))
		}
		if h.Name != "package/package.json" {
			continue
		}
		var manifest map[string]any
		if err := json.NewDecoder(r).Decode(&manifest); err != nil {
			t.Fatal(err)
		}
		return manifest
	}
}
