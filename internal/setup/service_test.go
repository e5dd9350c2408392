package setup

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The service files have the paths of this machine, and undoing removes them.
func TestService(t *testing.T) {
	for _, c := range []struct {
		os, path string
		want     []string
	}{
		{"linux", ".config/systemd/user/furl.service", []string{
			"\nExecStart=\"/opt/my %%d & tools/furl\" serve\n", "\nEnvironment=\"FURL_DATA=/data/a b\" FURL_CONFIG=/etc/x.yaml\n", "\nReadWritePaths=\"/data/a b\"\n", "\nWantedBy=default.target\n",
		}},
		{"darwin", "Library/LaunchAgents/com.furlhq.furl.plist", []string{
			"<string>/opt/my %d &amp; tools/furl</string>", "<string>/data/a b</string>", "<key>FURL_CONFIG</key>", "<string>/data/a b/serve.log</string>",
		}},
	} {
		folder := home(t)
		p, err := Service(folder, &ServiceOptions{OS: c.os, Program: "/opt/my %d & tools/furl", Data: "/data/a b", Config: "/etc/x.yaml"})
		if err == nil {
			err = p.Apply()
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(os.Getenv("HOME"), filepath.FromSlash(c.path))
		text := string(read(t, path))
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", c.os, want, text)
			}
		}
		for _, not := range []string{"%h/.local", ">PROGRAM<", ">DATA<", ">LOG<"} {
			if strings.Contains(text, not) {
				t.Errorf("%s: %q in\n%s", c.os, not, text)
			}
		}
		undo(t, folder, ServiceName)
		if left, _ := os.ReadDir(os.Getenv("HOME")); len(left) > 1 || len(left) == 1 && left[0].Name() != "data" {
			t.Errorf("%s: after undo the home has %v", c.os, left)
		}
	}
	if _, err := Service(home(t), &ServiceOptions{OS: "plan9"}); !errors.Is(err, ErrNoService) {
		t.Errorf("plan9: %v", err)
	}
}

// A service file that the user has changed stays.
func TestServiceWasChanged(t *testing.T) {
	folder := home(t)
	p, err := Service(folder, &ServiceOptions{OS: "linux", Program: "/usr/bin/furl", Data: "/data"})
	if err == nil {
		err = p.Apply()
	}
	if err != nil {
		t.Fatal(err)
	}
	path := p.Files[0].Path
	write(t, path, []byte("[Service]\n"))
	if p := undo(t, folder, ServiceName); len(p.Notes) != 1 || string(read(t, path)) != "[Service]\n" {
		t.Errorf("notes %q, file %q", p.Notes, read(t, path))
	}
}

// The property list is well-formed, and its root has pairs of keys and values.
func TestPropertyList(t *testing.T) {
	text := launchdAgent(&ServiceOptions{Program: "/opt/<furl>", Data: "/data"})
	type element struct {
		XMLName  xml.Name
		Text     string    `xml:",chardata"`
		Children []element `xml:",any"`
	}
	var plist element
	d := xml.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&plist); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if _, err := d.Token(); err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	var keys []string
	var walk func(element)
	walk = func(dict element) {
		if len(dict.Children)%2 != 0 {
			t.Errorf("a dict has %d elements", len(dict.Children))
			return
		}
		for pair := range slices.Chunk(dict.Children, 2) {
			if pair[0].XMLName.Local != "key" {
				t.Errorf("%s is not a key", pair[0].XMLName.Local)
			}
			keys = append(keys, pair[0].Text)
			if pair[1].XMLName.Local == "dict" {
				walk(pair[1])
			}
		}
	}
	if plist.XMLName.Local != "plist" || len(plist.Children) != 1 {
		t.Fatalf("the root is %s with %d elements", plist.XMLName.Local, len(plist.Children))
	}
	walk(plist.Children[0])
	for _, want := range []string{"Label", "ProgramArguments", "RunAtLoad", "KeepAlive", "FURL_DATA"} {
		if !slices.Contains(keys, want) {
			t.Errorf("no key %s in %q", want, keys)
		}
	}
}

// systemd accepts the unit, where it is installed.
func TestSystemdVerify(t *testing.T) {
	if os.Getenv("FURL_NO_SKIP") != "" {
		return // CI need not have systemd
	}
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze")
	}
	path := filepath.Join(t.TempDir(), "furl.service")
	write(t, path, []byte(systemdUnit(&ServiceOptions{Program: "/bin/sh", Data: "/data/a b"})))
	cmd := exec.Command(verify, "--user", "verify", path)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "furl.service:") {
		t.Errorf("%v\n%s", err, out)
	}
}
