package deploy

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// manifests are the objects of contrib/kubernetes.
type manifests struct {
	deployment apps.Deployment
	service    core.Service
	config     core.ConfigMap
	autoscaler autoscaling.HorizontalPodAutoscaler
	disruption policy.PodDisruptionBudget
	network    networking.NetworkPolicy
	monitor    monitoring.ServiceMonitor
}

const folder = "../../contrib"

// load decodes the files strictly: unknown fields and fields that are set twice are
// errors.
func load(t *testing.T) *manifests {
	t.Helper()
	var m manifests
	for name, object := range map[string]any{
		"deployment": &m.deployment, "service": &m.service, "config": &m.config, "autoscaler": &m.autoscaler,
		"disruption": &m.disruption, "network": &m.network, "monitor": &m.monitor,
	} {
		if err := yaml.UnmarshalStrict(read(t, "kubernetes/"+name+".yaml"), object); err != nil {
			t.Fatalf("%s.yaml: %v", name, err)
		}
	}
	return &m
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Every file is decoded, is in the kustomization, and has the kind that it should have.
func TestManifests(t *testing.T) {
	load(t)
	var list struct {
		APIVersion, Kind, Namespace string
		Resources                   []string
	}
	if err := yaml.UnmarshalStrict(read(t, "kubernetes/kustomization.yaml"), &list); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{
		"deployment.yaml": "apps/v1 Deployment", "service.yaml": "v1 Service", "config.yaml": "v1 ConfigMap",
		"autoscaler.yaml": "autoscaling/v2 HorizontalPodAutoscaler", "disruption.yaml": "policy/v1 PodDisruptionBudget",
		"network.yaml": "networking.k8s.io/v1 NetworkPolicy", "monitor.yaml": "monitoring.coreos.com/v1 ServiceMonitor",
	}
	files, err := filepath.Glob(filepath.Join(folder, "kubernetes", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(kinds)+1 || len(list.Resources) != len(kinds) {
		t.Errorf("there are %d files and %d resources in kustomization.yaml, want %d kinds", len(files), len(list.Resources), len(kinds))
	}
	for _, name := range list.Resources {
		text := read(t, "kubernetes/"+name)
		var object struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		if got := object.APIVersion + " " + object.Kind; got != kinds[name] {
			t.Errorf("%s has the kind %q, want %q", name, got, kinds[name])
		}
		if bytes.Contains(text, []byte("\n---")) {
			t.Errorf("%s has more than one document", name)
		}
	}
	if list.Namespace != "furl" {
		t.Errorf("the namespace is %q", list.Namespace)
	}
}

// What the objects say of each other is right.
func TestManifestsAgree(t *testing.T) {
	m := load(t)
	pod := m.deployment.Spec.Template
	container := pod.Spec.Containers[0]
	app := pod.Labels["app.kubernetes.io/name"]
	for what, labels := range map[string]map[string]string{
		"deployment": m.deployment.Spec.Selector.MatchLabels, "service": m.service.Spec.Selector,
		"disruption": m.disruption.Spec.Selector.MatchLabels, "network": m.network.Spec.PodSelector.MatchLabels,
	} {
		if len(labels) != 1 || labels["app.kubernetes.io/name"] != app {
			t.Errorf("%s selects %v, but the pods have %v", what, labels, pod.Labels)
		}
	}
	if got := m.monitor.Spec.Selector.MatchLabels["app.kubernetes.io/name"]; got != m.service.Labels["app.kubernetes.io/name"] {
		t.Errorf("the monitor selects services of %q", got)
	}
	port := container.Ports[0]
	if m.service.Spec.Ports[0].TargetPort.StrVal != port.Name || m.monitor.Spec.Endpoints[0].Port != m.service.Spec.Ports[0].Name ||
		m.network.Spec.Ingress[0].Ports[0].Port.StrVal != port.Name {
		t.Errorf("service, monitor and network do not use the port %q", port.Name)
	}
	if target := m.autoscaler.Spec.ScaleTargetRef; target.Kind != m.deployment.Kind || target.Name != m.deployment.Name || target.APIVersion != m.deployment.APIVersion {
		t.Errorf("the autoscaler's target is %v", target)
	}
	if m.deployment.Spec.Replicas != nil {
		t.Error("the deployment sets the replicas, which the autoscaler does: each apply would undo it")
	}
	if m.monitor.Spec.Endpoints[0].Authorization.Credentials.Key != "operator-key" {
		t.Error("the monitor does not send the operator key")
	}
	if !strings.Contains(m.config.Data["config.yaml"], fmt.Sprintf("listen: 0.0.0.0:%d\n", port.ContainerPort)) {
		t.Errorf("the configuration does not listen on the port %d", port.ContainerPort)
	}
}

// The pods are stopped so that streams end, and run without rights.
func TestPods(t *testing.T) {
	m := load(t)
	pod := m.deployment.Spec.Template.Spec
	container := pod.Containers[0]
	// The gateway waits for streams for five minutes after SIGTERM.
	if sleep := container.Lifecycle.PreStop.Sleep.Seconds; *pod.TerminationGracePeriodSeconds < sleep+300+10 {
		t.Errorf("%d seconds to end, of which %d are the sleep before SIGTERM: too few for streams of five minutes", *pod.TerminationGracePeriodSeconds, sleep)
	}
	if got := container.ReadinessProbe.HTTPGet.Path; got != "/readyz" {
		t.Errorf("the readiness probe asks %s", got)
	}
	for _, p := range []*core.Probe{container.LivenessProbe, container.StartupProbe} {
		if got := p.HTTPGet.Path; got != "/healthz" {
			t.Errorf("a probe asks %s: a store that is away would restart the pod", got)
		}
	}
	// /readyz waits up to two seconds for the store.
	if container.ReadinessProbe.TimeoutSeconds <= 2 {
		t.Errorf("the readiness probe ends after %d s", container.ReadinessProbe.TimeoutSeconds)
	}
	security := container.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || security.Capabilities.Drop[0] != "ALL" {
		t.Error("the container has rights that it does not need")
	}
	dockerfile := string(read(t, "../Dockerfile"))
	if user := fmt.Sprintf("USER %d:%d\n", *pod.SecurityContext.RunAsUser, *pod.SecurityContext.RunAsGroup); !strings.Contains(dockerfile, user) {
		t.Errorf("the image has another user than %s", user)
	}
	volumes := map[string]core.Volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
	}
	for _, mount := range container.VolumeMounts {
		volume, ok := volumes[mount.Name]
		if !ok {
			t.Errorf("%s mounts a volume %q that the pod does not have", mount.MountPath, mount.Name)
		}
		// furl refuses keys that other users can read; the group is the pod's.
		if secret := volume.Secret; secret != nil && (*secret.DefaultMode != 0o440 || *pod.SecurityContext.FSGroup != *pod.SecurityContext.RunAsGroup) {
			t.Errorf("the secret %s has the mode %o", mount.Name, *secret.DefaultMode)
		}
	}
}
