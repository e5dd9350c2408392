//go:build race

package replay

// Under the race detector replays take ten times as long.
const raceDetector = true
