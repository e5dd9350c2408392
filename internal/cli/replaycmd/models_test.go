package replaycmd

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/models"
	"github.com/furlhq/furl/session"
)

// Names of models come from requests.
func TestModelsHostileName(t *testing.T) {
	all, err := session.New(inmem.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	m := models.Describe(all, "claude-9\x1b[31m\nmodels: []", furl.FormatAnthropic)
	printModel(&m, &b)
	if strings.Contains(b.String(), "\x1b") || strings.Contains(b.String(), "\nmodels: []") {
		t.Errorf("printed as it is:\n%q", b.String())
	}
}
