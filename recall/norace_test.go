//go:build !race

package recall

// RaceDetector reports whether the race detector is on: searches take ten times as long,
// so some tests make fewer. .ci/run runs those in full without it.
const RaceDetector = false
