package doctor

import (
	"crypto/rand"
	"maps"
	"slices"
	"strings"

	"github.com/furlhq/furl/gateway"
)

// fleetDoctor compares the gateways of a fleet. nil is the one of a single gateway.
type fleetDoctor struct {
	salt      string // of the fingerprints
	gateways  []string
	prints    []map[string]string // the fingerprints of each gateway's settings, by name
	providers []string            // that were checked
}

func newFleetDoctor() *fleetDoctor { return &fleetDoctor{salt: rand.Text()} }

// query is what the request for a status needs.
func (f *fleetDoctor) query() string {
	if f == nil {
		return ""
	}
	return "?salt=" + f.salt
}

// add remembers a gateway's settings.
func (f *fleetDoctor) add(gateway string, st *gateway.Status) {
	if f != nil {
		f.gateways, f.prints = append(f.gateways, gateway), append(f.prints, st.Shared)
	}
}

// asked reports whether a provider was checked for another gateway.
func (f *fleetDoctor) asked(address string) bool {
	if f == nil {
		return false
	}
	if slices.Contains(f.providers, address) {
		return true
	}
	f.providers = append(f.providers, address)
	return false
}

// compare adds a finding for each setting in which the gateways differ.
func (d *gatewayDoctor) compare() {
	f := d.fleet
	d.url = nil // the findings are those of all
	names := make(map[string]bool)
	compared := 0
	for i, prints := range f.prints {
		if len(prints) == 0 {
			d.found("fleet", findingWarning, "send the operator key in FURL_KEY, or upgrade the gateway", "%s does not show its settings: they are for the operator, and older versions have none", f.gateways[i])
			continue
		}
		compared++
		for name := range prints {
			names[name] = true
		}
	}
	same := true
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if groups := f.groups(name); len(groups) > 1 {
			same = false
			d.found(name, findingProblem, "make it equal on all gateways; docs/operate/fleet.md says what differs otherwise", "%s", strings.Join(groups, "; "))
		}
	}
	if same && compared > 1 {
		d.found("fleet", findingFine, "", "%d gateways have the same keys and settings", compared)
	}
}

// groups says which gateways have the same value of a setting. Gateways of a version
// that does not have the setting are left out.
func (f *fleetDoctor) groups(name string) (groups []string) {
	var order []string
	having := make(map[string][]string)
	for i, prints := range f.prints {
		one, ok := prints[name]
		if !ok {
			continue
		}
		if having[one] == nil {
			order = append(order, one)
		}
		having[one] = append(having[one], f.gateways[i])
	}
	for _, one := range order {
		has, value := "has", "one value"
		if len(having[one]) > 1 {
			has = "have"
		}
		if len(groups) > 0 {
			value = "another"
		}
		groups = append(groups, strings.Join(having[one], ", ")+" "+has+" "+value)
	}
	return groups
}
