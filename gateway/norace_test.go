//go:build !race

package gateway

// RaceDetector reports whether the race detector is on: long sessions take ten times as
// long, so many tests have smaller ones. make test runs those in full.
const RaceDetector = false
