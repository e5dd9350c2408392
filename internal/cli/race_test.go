//go:build race

package cli_test

// With the race detector replays take ten times as long. .ci/run runs all scripts
// without it.
const raceDetector = true
