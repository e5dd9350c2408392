//go:build race

package sqlite_test

// With the race detector SQLite takes ten times as long, so some tests do less. .ci/run
// runs them in full without it.
const raceDetector = true
