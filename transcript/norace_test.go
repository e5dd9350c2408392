//go:build !race

package transcript

const raceDetector = false
