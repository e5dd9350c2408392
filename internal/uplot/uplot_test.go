package uplot

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
	if pinned != 3 {
		t.Errorf("%d files are pinned, want 3", pinned)
	}
	if !strings.Contains(library[:100], "(v"+Version+")") {
		t.Errorf("the library is not version %s: %s", Version, library[:60])
	}
}

// The license is in the script, and nothing in it can end the element or the
// comment that it is in.
func TestScriptCanBeEmbedded(t *testing.T) {
	if !strings.Contains(Script(), "Permission is hereby granted") || strings.Contains(license, "*/") {
		t.Error("the license is missing, or ends its comment")
	}
	for _, s := range []string{"</script", "<!--", "]]>"} {
		if strings.Contains(strings.ToLower(Script()), s) {
			t.Errorf("the script contains %q", s)
		}
	}
	if strings.Contains(strings.ToLower(Style), "</style") || strings.Contains(Style, "url(") {
		t.Error("the style sheet ends its element, or loads something")
	}
}
