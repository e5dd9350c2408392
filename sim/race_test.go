//go:build race

package sim_test

// Under the race detector long sessions take ten times as long.
const raceDetector = true
