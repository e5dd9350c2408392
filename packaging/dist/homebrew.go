package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed files/furl.rb.tmpl
var formulaText string

var formulaTemplate = template.Must(template.New("formula").Parse(formulaText))

// download is a system's archive in the formula.
type download struct{ URL, SHA256 string }

// formula writes the Homebrew formula furl.rb. It downloads archives of this release,
// so that it needs their address, and all systems that Homebrew has.
func (r *release) formula() error {
	if r.releaseURL == "" {
		fmt.Println("no Homebrew formula: it needs the address of the releases (RELEASE_URL)")
		return nil
	}
	data := struct {
		Version                                string
		MacARM, MacIntel, LinuxARM, LinuxIntel *download
	}{Version: r.moduleVersion()}
	for _, s := range r.systems {
		target := map[system]**download{
			{"darwin", "arm64"}: &data.MacARM, {"darwin", "amd64"}: &data.MacIntel,
			{"linux", "arm64"}: &data.LinuxARM, {"linux", "amd64"}: &data.LinuxIntel,
		}[s]
		if target == nil {
			continue
		}
		file := r.archiveFile(s)
		sum, err := digest(filepath.Join(r.out, file))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		*target = &download{URL: r.releaseURL + "/" + r.version + "/" + file, SHA256: fmt.Sprintf("%x", sum)}
	}
	return create(filepath.Join(r.out, "furl.rb"), func(w io.Writer) error { return formulaTemplate.Execute(w, data) })
}
