//go:build race

package transcript

// With the race detector recordings take ten times as long, so most are skipped.
// .ci/run reads all of them without it.
const raceDetector = true
