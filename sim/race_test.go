//go:build race

package sim_test

// With the race detector long sessions take ten times as long.
const raceDetector = true
