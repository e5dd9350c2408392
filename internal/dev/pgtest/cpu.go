package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tick is the unit of processor times in /proc: USER_HZ is 100 on all of Linux.
const tick = 10 * time.Millisecond

// CPU returns the processor time that the running processes of all nodes have used. It
// needs Linux; elsewhere it is 0.
func (c *Cluster) CPU(t testing.TB) (used time.Duration) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		// The working folder of each process of a server is its data folder.
		if folder, err := os.Readlink(filepath.Join(p, "cwd")); err != nil || !strings.HasPrefix(folder, c.dir) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p, "stat"))
		if err != nil {
			continue // it has ended
		}
		one, err := cpuOf(string(text))
		if err != nil {
			t.Fatal(err)
		}
		used += one
	}
	return used
}

// cpuOf returns the processor time in a text of /proc/PID/stat: the fields 14 and 15. Field
// 2 is a name in parentheses.
func cpuOf(stat string) (used time.Duration, err error) {
	_, rest, _ := strings.Cut(stat, ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("read processor time: unexpected %q", stat)
	}
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, fmt.Errorf("read processor time: %w", err)
		}
		used += time.Duration(n) * tick
	}
	return used, nil
}
