// Package racetest makes tests smaller under the race detector, which makes them about ten
// times as slow. .ci/run runs what is smaller in full without it.
package racetest

import (
	"flag"
	"strconv"
	"testing"
)

// FewerChecks limits the random checks of a test (rapid.Check) under the race detector,
// unless the flag -rapid.checks sets their number.
func FewerChecks(t *testing.T, n int) {
	t.Helper()
	if Enabled {
		Checks(t, n)
	}
}

// Checks sets the number of rapid's random runs in a test, unless the command line has set it.
func Checks(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != checks.DefValue {
		return
	}
	if err := flag.Set(checks.Name, strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set(checks.Name, checks.DefValue) }) // it is valid
}
