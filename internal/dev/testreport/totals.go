package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// totalsFile is the variable with the file to which each run appends its counts, for the
// total of several runs.
const totalsFile = "FURL_TEST_TOTALS"

// totals are the counts of a run.
type totals struct {
	Passed, Failed, Skipped int
	Skips                   map[string]int `json:",omitempty"` // by reason
}

// keepTotals appends the counts of the run to the file, if there is one.
func (r *report) keepTotals(name string) error {
	if name == "" {
		return nil
	}
	sum := totals{Passed: r.passed, Failed: r.failed, Skipped: r.skipped, Skips: map[string]int{}}
	for reason, names := range r.skips {
		sum.Skips[reason] = len(names)
	}
	line, err := json.Marshal(sum)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// printTotals prints the sum of the runs in a file: the reasons of skipped tests, and the
// counts as the last line.
func printTotals(out io.Writer, name string) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintln(out, "total: no tests")
		return err
	}
	if err != nil {
		return err
	}
	defer f.Close() // it is only read
	sum := totals{Skips: map[string]int{}}
	for in := json.NewDecoder(f); ; {
		var run totals
		if err := in.Decode(&run); err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		sum.Passed, sum.Failed, sum.Skipped = sum.Passed+run.Passed, sum.Failed+run.Failed, sum.Skipped+run.Skipped
		for reason, n := range run.Skips {
			sum.Skips[reason] += n
		}
	}
	for _, reason := range sortedKeys(sum.Skips) {
		if _, err := fmt.Fprintf(out, "skipped %5d  %s\n", sum.Skips[reason], reason); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "total: %d passed, %d failed, %d skipped\n", sum.Passed, sum.Failed, sum.Skipped)
	return err
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
