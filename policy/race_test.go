//go:build race

package policy

// RaceDetector reports whether the race detector is on: replays take ten times as long,
// so many tests have shorter ones. .ci/run runs those in full without it.
const RaceDetector = true
