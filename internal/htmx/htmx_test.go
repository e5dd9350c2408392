package htmx

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// The files are those of the pinned version, unchanged.
func TestFilesArePinned(t *testing.T) {
	sums, err := os.ReadFile("SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	pinned := 0
	for line := range strings.Lines(string(sums)) {
		want, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("SHA256SUMS: invalid line %q", line)
		}
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s changed: SHA-256 is %x, want %s", name, sum, want)
		}
		pinned++
	}
	if pinned != 2 {
		t.Errorf("%d files are pinned, want 2", pinned)
	}
	if !strings.Contains(library, `version:"`+Version+`"`) {
		t.Errorf("the library is not version %s", Version)
	}
}

// The script begins with the license, which does not end the comment that it is in.
func TestScriptHasTheLicense(t *testing.T) {
	if !strings.HasPrefix(Script(), "/*\nhtmx "+Version+"\n") || strings.Contains(license, "*/") || !strings.Contains(license, "Permission to use") {
		t.Error("the license is missing, or ends its comment")
	}
}
