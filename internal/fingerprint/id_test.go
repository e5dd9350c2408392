package fingerprint

import "testing"

func TestIsRandomID(t *testing.T) {
	for id, want := range map[string]bool{
		"toolu_01A09q90qw90lq917835lq9": true, "call_9oPlX2tB7cQ": true, "D681PevKs": true,
		"call_00-8c1b2f3e-77aa-4d0a-9b1c-0a1b2c3d4e5f": true,
		"": false, "call_0": false, "call_000000012": false, "functions.read_file:0": false, "function1": false,
		"toolu_01_5_x": false, "getWeather12345": false,
	} {
		if got := IsRandomID(id); got != want {
			t.Errorf("%q: %v, want %v", id, got, want)
		}
	}
}
