package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sbom writes the software bill of materials of a system's binary, in CycloneDX's JSON:
// the modules that the binary says it has.
func (r *release) sbom(s system) error {
	sum, err := digest(r.binary(s))
	if err != nil {
		return err
	}
	bom := r.bom(s, r.binaries[s], hex.EncodeToString(sum))
	return create(filepath.Join(r.out, r.archiveName(s)+".cdx.json"), func(w io.Writer) error {
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
	})
}

// bom lists the standard library and the modules of a binary with the given SHA-256.
func (r *release) bom(s system, info *buildinfo.BuildInfo, sum string) *cdx.BOM {
	main := cdx.Component{
		BOMRef: purl(info.Main.Path, r.version), PackageURL: purl(info.Main.Path, r.version),
		Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: r.version,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}},
		Properties: &[]cdx.Property{
			{Name: "cdx:gomod:build:env:GOOS", Value: s.os}, {Name: "cdx:gomod:build:env:GOARCH", Value: s.arch},
		},
	}
	version := strings.TrimPrefix(info.GoVersion, "go")
	std := "pkg:golang/std@" + version
	components := []cdx.Component{{BOMRef: std, PackageURL: std, Type: cdx.ComponentTypeLibrary, Name: "std", Version: version}}
	for _, m := range info.Deps {
		components = append(components, component(m))
	}
	refs := make([]string, 0, len(components))
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return bom
}

// component describes a module. Its hash is the one of go.sum: of the list of the
// module's files.
func component(m *debug.Module) cdx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := cdx.Component{
		BOMRef: purl(m.Path, m.Version), PackageURL: purl(m.Path, m.Version),
		Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
	}
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) == 32 {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c
}

// purl is the package URL of a module.
func purl(path, version string) string {
	return fmt.Sprintf("pkg:golang/%s@%s", path, strings.ReplaceAll(version, "+", "%2B"))
}
