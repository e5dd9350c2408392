//go:build race

package web

// RaceDetector reports whether the race detector is on: the server takes ten times as long.
const RaceDetector = true
