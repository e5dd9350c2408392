package postgres

import (
	"os"
	"testing"
)

// childEnv makes the test binary a process that appends until it is killed.
const childEnv = "FURL_TEST_APPEND"

func TestMain(m *testing.M) {
	if url := os.Getenv(childEnv); url != "" {
		appendForever(url)
	}
	os.Exit(m.Run())
}
