package deploy

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	compose "github.com/compose-spec/compose-go/v2/cli"
	"sigs.k8s.io/yaml"
)

// Units, services of Compose, and objects of Kubernetes that documents for operators name
// in commands are in the files of contrib, and a program that runs in a container is in its
// image.
func TestNamesInCommands(t *testing.T) {
	m := load(t)
	var kustomization struct{ Namespace string }
	if err := yaml.Unmarshal(read(t, "kubernetes/kustomization.yaml"), &kustomization); err != nil {
		t.Fatal(err)
	}
	options, err := compose.NewProjectOptions([]string{filepath.Join(folder, "compose.yaml")},
		compose.WithEnv([]string{"FURL_CLIENT_KEYS=k", "FURL_OPERATOR_KEY=o", "POSTGRES_PASSWORD=p"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for name, value := range m.deployment.Spec.Template.Labels {
		labels = append(labels, name+"="+value)
	}
	var secrets []string
	for _, v := range m.deployment.Spec.Template.Spec.Volumes {
		if v.Secret != nil {
			secrets = append(secrets, v.Secret.SecretName)
		}
	}
	program := regexp.MustCompile(`ENTRYPOINT \["(.*?)"\]`).FindStringSubmatch(string(image))[1]
	units := func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, strings.TrimSuffix(name, ".service")+".service"))
		return err == nil
	}
	among := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	kinds := []struct {
		what    string
		pattern *regexp.Regexp // its group is the name
		known   func(string) bool
		found   int
	}{
		{"unit", regexp.MustCompile(`systemctl (?:--user )?(?:status|enable|start|stop|restart|reload)(?: --now)? ([\w.@-]+)`), units, 0},
		{"unit", regexp.MustCompile(`journalctl (?:--user )?-u ([\w.@-]+)`), units, 0},
		{"service", regexp.MustCompile(`docker compose (?:exec|logs|restart|stop) ([\w-]+)`), among(project.ServiceNames()...), 0},
		{"program", regexp.MustCompile(`docker compose exec [\w-]+ ([\w/.-]+)`), among(program), 0},
		{"program", regexp.MustCompile(`kubectl .*?\bexec [\w/-]+ -- ([\w/.-]+)`), among(program), 0},
		{"namespace", regexp.MustCompile(`kubectl -n ([\w-]+)`), among(kustomization.Namespace), 0},
		{"namespace", regexp.MustCompile(`kubectl create namespace ([\w-]+)`), among(kustomization.Namespace), 0},
		{"namespace", regexp.MustCompile(`/namespaces/([\w-]+)/`), among(kustomization.Namespace), 0},
		{"deployment", regexp.MustCompile(`kubectl [^\n` + "`" + `]*\bdeploy(?:ment)?/([\w-]+)`), among(m.deployment.Name), 0},
		{"autoscaler", regexp.MustCompile(`kubectl [^\n` + "`" + `]*\bhpa ([\w-]+)`), among(m.autoscaler.Name), 0},
		{"label", regexp.MustCompile(`kubectl [^\n` + "`" + `]*-l ([\w./=-]+)`), among(labels...), 0},
		{"secret", regexp.MustCompile(`kubectl [^\n` + "`" + `]*\bsecret generic ([\w-]+)`), among(secrets...), 0},
		{"folder", regexp.MustCompile(`kubectl apply -k ([\w/]+)`), among("contrib/kubernetes"), 0},
	}
	files, err := filepath.Glob("../../docs/operate/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, kind := range kinds {
			for _, match := range kind.pattern.FindAllStringSubmatch(string(text), -1) {
				if kinds[i].found++; !kind.known(match[1]) {
					t.Errorf("%s: %q: there is no %s %s", filepath.Base(file), match[0], kind.what, match[1])
				}
			}
		}
	}
	for _, kind := range kinds {
		if kind.found == 0 {
			t.Errorf("no document has a command with a %s: %s", kind.what, kind.pattern)
		}
	}
}
