package cli_test

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/furlhq/furl/internal/config"
)

// The configurations of the image, of the packages and of Kubernetes are valid.
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

	const server = "../../contrib/server.yaml"
	if data, err = os.ReadFile(server); err != nil {
		t.Fatal(err)
	}
	if c, err = config.Parse(server, data, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(c.Gateway.Listen, "127.0.0.1:") {
		t.Errorf("the packages' service listens on %s without keys", c.Gateway.Listen)
	}

	const kubernetes = "../../contrib/kubernetes/config.yaml"
	if data, err = os.ReadFile(kubernetes); err != nil {
		t.Fatal(err)
	}
	var object struct{ Data map[string]string }
	if err := yaml.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	if c, err = config.Parse(kubernetes, []byte(object.Data["config.yaml"]), nil); err != nil {
		t.Fatal(err)
	}
	if c.Gateway.ClientKeysFile == "" || c.Gateway.OperatorKeyFile == "" || !c.Gateway.Tenants {
		t.Errorf("the pods require no keys: %+v", c.Gateway)
	}
}
