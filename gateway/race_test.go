//go:build race

package gateway

// RaceDetector reports whether the race detector is on: long sessions take ten times as
// long, so many tests have smaller ones. .ci/run runs those in full without it.
const RaceDetector = true
