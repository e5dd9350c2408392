package deploy

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	compose "github.com/compose-spec/compose-go/v2/cli"
)

// The compose file follows the specification, requires its secrets, and gives streams
// the time to end.
func TestCompose(t *testing.T) {
	load := func(env ...string) (*compose.ProjectOptions, error) {
		return compose.NewProjectOptions([]string{filepath.Join(folder, "compose.yaml")}, compose.WithEnv(env))
	}
	options, err := load("FURL_CLIENT_KEYS=k", "FURL_OPERATOR_KEY=o", "POSTGRES_PASSWORD=p")
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	furl, postgres := project.Services["furl"], project.Services["postgres"]
	if postgres.HealthCheck == nil || furl.DependsOn["postgres"].Condition != "service_healthy" {
		t.Error("furl does not wait for the database")
	}
	if furl.StopGracePeriod == nil || time.Duration(*furl.StopGracePeriod) < 310*time.Second {
		t.Errorf("streams have %v to end", furl.StopGracePeriod)
	}
	if !furl.ReadOnly || len(furl.CapDrop) != 1 || furl.CapDrop[0] != "ALL" {
		t.Error("the container has rights that it does not need")
	}
	for _, p := range furl.Ports {
		if p.HostIP != "127.0.0.1" || p.Target != 7410 {
			t.Errorf("the port %v is published: keys would be sent without TLS", p)
		}
	}
	if len(postgres.Ports) > 0 {
		t.Error("the database can be reached from outside")
	}

	options, err = load("FURL_CLIENT_KEYS=k", "FURL_OPERATOR_KEY=o")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := options.LoadProject(context.Background()); err == nil {
		t.Error("the file loads without a password for the database")
	}
}
