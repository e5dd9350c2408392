package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
)

// launcher is the program of the main npm package. It runs the binary of the platform
// package.
//
//go:embed files/launcher.js
var launcher []byte

//go:embed files/npm-readme.md
var npmReadme []byte

// npmScope is the scope of the npm packages: @furlhq/furl and one for each platform,
// such as @furlhq/furl-linux-x64.
const npmScope = "@furlhq/"

// npmPackage is a package.json.
type npmPackage struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description"`
	License      string            `json:"license"`
	Bin          map[string]string `json:"bin,omitempty"`
	OS           []string          `json:"os,omitempty"`
	CPU          []string          `json:"cpu,omitempty"`
	Engines      map[string]string `json:"engines,omitempty"`
	PreferUnplug bool              `json:"preferUnplugged,omitempty"`
	Optional     map[string]string `json:"optionalDependencies,omitempty"`
}

// npmVersion is the version without build metadata, which npm ignores.
func (r *release) npmVersion() string {
	version, _, _ := strings.Cut(r.moduleVersion(), "+")
	return version
}

// node returns a system's platform and architecture by node's names.
func (s system) node() (platform, arch string) {
	platform, arch = s.os, s.arch
	if platform == "windows" {
		platform = "win32"
	}
	if arch == "amd64" {
		arch = "x64"
	}
	return platform, arch
}

func (s system) npmName() string {
	platform, arch := s.node()
	return npmScope + "furl-" + platform + "-" + arch
}

// npmFile is the name of a package's file, as npm pack names it.
func (r *release) npmFile(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-") + "-" + r.npmVersion() + ".tgz"
}

// npmPlatform writes the npm package with the binary for a system.
func (r *release) npmPlatform(s system) error {
	platform, arch := s.node()
	return r.npm(npmPackage{
		Name: s.npmName(), Version: r.npmVersion(), License: "Apache-2.0",
		Description: "The furl binary for " + platform + " " + arch + ". Install " + npmScope + "furl instead.",
		OS:          []string{platform}, CPU: []string{arch}, PreferUnplug: true,
	}, []entry{
		{name: "bin/" + s.program(), source: r.binary(s), executable: true},
		{name: "THIRD-PARTY-LICENSES.txt", source: filepath.Join(r.stage, "shared", "THIRD-PARTY-LICENSES.txt")},
	})
}

// npmMain writes the npm package that users install. npm installs the one of its
// optional dependencies that fits the machine.
func (r *release) npmMain() error {
	optional := map[string]string{}
	for _, s := range r.systems {
		optional[s.npmName()] = r.npmVersion()
	}
	return r.npm(npmPackage{
		Name: npmScope + "furl", Version: r.npmVersion(), License: "Apache-2.0",
		Description: "Keep long-running LLM agents inside their context window without losing anything",
		Bin:         map[string]string{"furl": "bin/furl.js"},
		Engines:     map[string]string{"node": ">=18"}, Optional: optional,
	}, []entry{
		{name: "bin/furl.js", text: launcher, executable: true},
		{name: "README.md", text: npmReadme},
	})
}

// npm writes a package. Its entries are relative to the package's folder.
func (r *release) npm(p npmPackage, entries []entry) error {
	var manifest bytes.Buffer
	enc := json.NewEncoder(&manifest)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(p); err != nil {
		return err
	}
	entries = append(entries,
		entry{name: "package.json", text: manifest.Bytes()},
		entry{name: "LICENSE", source: filepath.Join(r.stage, "shared", "LICENSE")})
	for i := range entries {
		entries[i].name = "package/" + entries[i].name
	}
	return create(filepath.Join(r.out, r.npmFile(p.Name)), func(w io.Writer) error {
		return writeTar(w, entries, r.time, r.level())
	})
}
