//go:build race

package main

// The race detector makes furl ten times as slow, so some tests send less. .ci/run runs
// them in full without it.
const raceDetector = true
