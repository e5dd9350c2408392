//go:build race

package policy_test

// Under the race detector replays take ten times as long.
const raceDetector = true
