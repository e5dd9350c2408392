//go:build !race

package recall

// RaceDetector reports whether the race detector is on: searches take ten times as long,
// so some tests make fewer. make test runs those in full.
const RaceDetector = false
