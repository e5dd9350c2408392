package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

var whole = flag.Bool("whole", false, "build furl itself, for all systems, instead of a small program for two")

// A release is built twice, from two copies of the source in different folders. The
// files are the same, and what they install runs.
func TestRelease(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("installs packages of Linux")
	}
	from := "../.."
	systems := []system{{"linux", runtime.GOARCH}, {"windows", "amd64"}}
	if *whole {
		systems = supported
	} else {
		from = miniature(t)
	}
	var outs []string
	for _, name := range []string{"a", "another"} {
		source, out := filepath.Join(t.TempDir(), name), filepath.Join(t.TempDir(), "out")
		command(t, "", "git", "clone", "--quiet", from, source)
		o := options{source: source, out: out, systems: systems, releaseURL: "https://example.com/furl/releases", fast: !*whole}
		if err := build(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		outs = append(outs, out)
	}
	sameFiles(t, outs[0], outs[1])
	r := &installed{dir: outs[0], version: versionOf(t, outs[0])}
	if !*whole && r.version != "v1.2.3" {
		t.Errorf("the version is %s, want the tag v1.2.3", r.version)
	}
	t.Run("sums", func(t *testing.T) { command(t, r.dir, "sha256sum", "--check", "--strict", "SHA256SUMS") })
	t.Run("archive", r.testArchive)
	t.Run("zip", r.testZip)
	t.Run("deb", r.testDeb)
	t.Run("rpm", r.testRPM)
	t.Run("npm", r.testNPM)
	t.Run("formula", r.testFormula)
	t.Run("sbom", r.testSBOM)
}

// miniature is a checkout with the tag v1.2.3 that has what a release needs, but a
// program that only prints its version.
func miniature(t *testing.T) string {
	dir := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module github.com/furlhq/furl\n\ngo 1.26.0\n")
	write("cmd/furl/main.go", `package main

import (
	"os"
	"os/exec"
	"runtime/debug"
)

func main() {
	if os.Args[1] == "sh" {
		cmd := exec.Command("sh", "-c", os.Args[2])
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		if err := cmd.Run(); err != nil {
			os.Exit(cmd.ProcessState.ExitCode())
		}
		return
	}
	info, _ := debug.ReadBuildInfo()
	os.Stdout.WriteString("furl " + info.Main.Version + "\n")
}
`)
	write("internal/dev/house/manual/main.go", `package main

import "os"

func main() {
	for _, name := range []string{"man/furl.1", "man/furl-serve.1", "completions/_furl", "completions/furl.bash", "completions/furl.fish"} {
		os.MkdirAll(os.Args[1]+"/man", 0o755)
		os.MkdirAll(os.Args[1]+"/completions", 0o755)
		if err := os.WriteFile(os.Args[1]+"/"+name, []byte(".TH FURL 1\n"), 0o644); err != nil {
			panic(err)
		}
	}
}
`)
	for _, name := range []string{"LICENSE", "README.md", "contrib/server.yaml", "contrib/furl.service", "contrib/furl-server.service"} {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		write(name, string(text))
	}
	command(t, dir, "git", "init", "--quiet")
	command(t, dir, "git", "add", ".")
	command(t, dir, "git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--message=first")
	command(t, dir, "git", "tag", "v1.2.3")
	return dir
}

// command runs a command and returns its output.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

func sameFiles(t *testing.T, a, b string) {
	t.Helper()
	names := func(dir string) (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if got, want := names(b), names(a); !slices.Equal(got, want) {
		t.Fatalf("the second build has the files %q, the first %q", got, want)
	}
	for _, name := range names(a) {
		one, err := digest(filepath.Join(a, name))
		if err != nil {
			t.Fatal(err)
		}
		two, err := digest(filepath.Join(b, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, two) {
			t.Errorf("%s differs between two builds of the same commit", name)
		}
	}
}

// installed are the files of a release, which the tests install.
type installed struct{ dir, version string }

// versionOf takes the version from the name of the archive for Linux.
func versionOf(t *testing.T, dir string) string {
	names, err := filepath.Glob(filepath.Join(dir, "furl-v*-linux-"+runtime.GOARCH+".tar.gz"))
	if err != nil || len(names) != 1 {
		t.Fatalf("archives for this machine: %q", names)
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(names[0]), "furl-"), "-linux-"+runtime.GOARCH+".tar.gz")
}

// file is the only file of the release that the pattern matches.
func (r *installed) file(t *testing.T, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(r.dir, pattern))
	if err != nil || len(names) != 1 {
		t.Fatalf("files %s: %q", pattern, names)
	}
	return names[0]
}

// checkVersion runs an installed program.
func (r *installed) checkVersion(t *testing.T, program string) {
	t.Helper()
	if got, want := command(t, "", program, "version"), "furl "+r.version+"\n"; got != want {
		t.Errorf("%s prints %q, want %q", program, got, want)
	}
}

func checkFiles(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("a file is missing: %v", err)
		} else if info.Size() == 0 {
			t.Errorf("%s is empty", name)
		}
	}
}

func (r *installed) testArchive(t *testing.T) {
	dir := t.TempDir()
	command(t, dir, "tar", "xzf", r.file(t, "furl-*-linux-"+runtime.GOARCH+".tar.gz"))
	top := filepath.Join(dir, "furl-"+r.version+"-linux-"+runtime.GOARCH)
	r.checkVersion(t, filepath.Join(top, "furl"))
	checkFiles(t, top, "LICENSE", "README.md", "THIRD-PARTY-LICENSES.txt", "man/furl.1", "man/furl-serve.1", "completions/_furl", "completions/furl.bash", "completions/furl.fish")
}

func (r *installed) testZip(t *testing.T) {
	z, err := zip.OpenReader(r.file(t, "furl-*-windows-amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	top := "furl-" + r.version + "-windows-amd64/"
	for _, name := range []string{"furl.exe", "LICENSE", "README.md"} {
		f, err := z.Open(top + name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		f.Close()
	}
}

// linuxFiles are what both packages install.
var linuxFiles = []string{
	"usr/bin/furl", "etc/furl/config.yaml", "usr/lib/systemd/system/furl-server.service", "usr/lib/systemd/user/furl.service",
	"usr/share/man/man1/furl.1.gz", "usr/share/man/man1/furl-serve.1.gz",
	"usr/share/bash-completion/completions/furl", "usr/share/zsh/site-functions/_furl", "usr/share/fish/vendor_completions.d/furl.fish",
}

// checkLinux checks an installed package.
func (r *installed) checkLinux(t *testing.T, root string) {
	r.checkVersion(t, filepath.Join(root, "usr/bin/furl"))
	checkFiles(t, root, linuxFiles...)
	for _, unit := range []string{"usr/lib/systemd/system/furl-server.service", "usr/lib/systemd/user/furl.service"} {
		text, err := os.ReadFile(filepath.Join(root, unit))
		if err != nil || !strings.Contains(string(text), "\nExecStart=/usr/bin/furl serve\n") {
			t.Errorf("%s does not start the installed program (%v):\n%s", unit, err, text)
		}
	}
}

func (r *installed) testDeb(t *testing.T) {
	file, root := r.file(t, "furl_*_"+runtime.GOARCH+".deb"), t.TempDir()
	if version := command(t, "", "dpkg-deb", "--field", file, "Version"); !strings.HasPrefix(version, strings.TrimPrefix(strings.SplitN(r.version, "-", 2)[0], "v")) {
		t.Errorf("the package has the version %s, furl %s", version, r.version)
	}
	admin := filepath.Join(root, "var/lib/dpkg")
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(admin, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"status", "available"} {
		if err := os.WriteFile(filepath.Join(admin, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dpkg := func(args ...string) {
		t.Helper()
		// The scripts of the package run outside of the folder: they do nothing there.
		args = append([]string{"--instdir=" + root, "--admindir=" + admin, "--force-not-root", "--force-script-chrootless", "--force-architecture", "--log=" + filepath.Join(root, "log")}, args...)
		command(t, "", "dpkg", args...)
	}
	dpkg("--install", file)
	r.checkLinux(t, root)
	checkFiles(t, root, "usr/share/doc/furl/copyright")

	// The configuration is the administrator's: it stays when the package is removed.
	config := filepath.Join(root, "etc/furl/config.yaml")
	if err := os.WriteFile(config, []byte("policy: none\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg("--remove", "furl")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/furl")); err == nil {
		t.Error("the program is still there after dpkg --remove")
	}
	if text, err := os.ReadFile(config); err != nil || string(text) != "policy: none\n" {
		t.Errorf("the configuration after dpkg --remove: %q, %v", text, err)
	}
}

func (r *installed) testRPM(t *testing.T) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	file, root := r.file(t, "furl-*."+arch+".rpm"), t.TempDir()
	command(t, "", "rpm", "--root", root, "--initdb")
	command(t, "", "rpm", "--root", root, "--install", "--nodeps", "--noscripts", file)
	r.checkLinux(t, root)
	checkFiles(t, root, "usr/share/licenses/furl/LICENSE")
	if out := command(t, "", "rpm", "--root", root, "--query", "--queryformat", "%{LICENSE} %{BUILDHOST} %{SUMMARY}", "furl"); !strings.HasPrefix(out, "Apache-2.0 localhost keeps ") {
		t.Errorf("the package says %q", out)
	}
	if out := command(t, "", "rpm", "--root", root, "--query", "--configfiles", "furl"); strings.TrimSpace(out) != "/etc/furl/config.yaml" {
		t.Errorf("configuration files are %q", out)
	}
}

func (r *installed) testFormula(t *testing.T) {
	file := r.file(t, "furl.rb")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(r.dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if !strings.HasSuffix(name, ".tar.gz") {
			continue
		}
		want := "url \"https://example.com/furl/releases/" + r.version + "/" + name + "\"\n      sha256 \"" + sum + "\"\n"
		if !strings.Contains(string(text), want) {
			t.Errorf("the formula lacks %s:\n%s", want, text)
		}
	}
	if _, err := exec.LookPath("ruby"); err == nil {
		command(t, "", "ruby", "-c", file)
	}
}

func (r *installed) testSBOM(t *testing.T) {
	f, err := os.Open(r.file(t, "furl-*-linux-"+runtime.GOARCH+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(f, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.Metadata.Component.Version != r.version {
		t.Errorf("the version is %s, want %s", bom.Metadata.Component.Version, r.version)
	}
	seen := map[string]bool{}
	for _, c := range *bom.Components {
		if seen[c.BOMRef] {
			t.Errorf("%s is listed twice", c.BOMRef)
		}
		seen[c.BOMRef] = true
	}
	if len(*bom.Components) == 0 || (*bom.Components)[0].Name != "std" {
		t.Errorf("the standard library is missing")
	}
	if *whole && !slices.ContainsFunc(*bom.Components, func(c cdx.Component) bool { return c.Name == "modernc.org/sqlite" && c.Hashes != nil }) {
		t.Errorf("modernc.org/sqlite is missing")
	}
}

// The options refuse what cannot be built.
func TestOptions(t *testing.T) {
	if got, err := parseSystems(""); err != nil || len(got) != 6 {
		t.Errorf("all systems: %v, %v", got, err)
	}
	for _, list := range []string{"plan9/amd64", "linux", "linux/amd64,darwin/arm64"} {
		if _, err := parseSystems(list); err == nil {
			t.Errorf("%q is accepted", list)
		}
	}
	for _, address := range []string{"ftp://example.com", `https://example.com/"#{1}`, "example.com"} {
		if err := checkURL(address); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := clearOut(dir); err == nil {
		t.Error("a folder with other files is deleted")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("files were deleted: %v", err)
	}
}

// packageJSON reads a field of a package.json.
func packageJSON(t *testing.T, file string) (p npmPackage) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}
