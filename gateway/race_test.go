//go:build race

package gateway_test

// Under the race detector long sessions take ten times as long.
const raceDetector = true
