package cli_test

import (
	"os"
	"testing"

	"github.com/furlhq/furl/internal/config"
)

// The configuration of the image is valid.
func TestContainerConfiguration(t *testing.T) {
	const name = "../../contrib/container.yaml"
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(name, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Gateway.ClientKeysEnv == "" || !c.Gateway.Tenants {
		t.Errorf("the container requires no key: %+v", c.Gateway)
	}
}
