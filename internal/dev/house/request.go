package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// requestPath counts the functions that one gateway request runs, and the files
// they are in. Command onerequest writes the counters.
func requestPath(root string) (functions, files int, err error) {
	counters, err := os.MkdirTemp("", "furl-house-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(counters)
	send := exec.Command("go", "run", "-cover", "-covermode=atomic", "-coverpkg=./...", "./internal/dev/house/onerequest", counters)
	send.Dir = root
	if out, err := send.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w\n%s", send, err, out)
	}
	read := exec.Command("go", "tool", "covdata", "func", "-i="+counters)
	read.Dir = root
	out, err := read.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", read, err)
	}
	seen := make(map[string]bool)
	sc := bufio.NewScanner(bytes.NewReader(out))
	for sc.Scan() { // path:line:  function  percent%
		fields := strings.Fields(sc.Text())
		if len(fields) != 3 || fields[2] == "0.0%" || fields[0] == "total" {
			continue
		}
		file, _, _ := strings.Cut(fields[0], ":")
		functions, seen[file] = functions+1, true
	}
	return functions, len(seen), sc.Err()
}
