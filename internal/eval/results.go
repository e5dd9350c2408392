package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Outcomes of a run.
const (
	Solved    = "solved"     // the check command exited with 0
	Failed    = "failed"     // it did not, or it ran into its time limit
	TimeLimit = "time_limit" // the agent ran into its time limit; the check did not run
)

// Result is a finished run.
type Result struct {
	Run
	Outcome string `json:"outcome"`
	// AgentExit and CheckExit are exit codes. CheckExit is -1 if the check did not
	// run or ran into its time limit.
	AgentExit int `json:"agent_exit"`
	CheckExit int `json:"check_exit"`
	// CheckOutput is the end of the check's output if the run is not solved. It has
	// been written by programs and may have control characters.
	CheckOutput string    `json:"check_output,omitempty"`
	Started     time.Time `json:"started"`
	// Seconds is how long the agent ran.
	Seconds float64 `json:"agent_seconds"`
	Version string  `json:"furl"`
	Measures
}

// Measures are what the sessions that were recorded in a run have.
type Measures struct {
	Sessions int `json:"sessions"`
	// Requests are those whose reply was recorded; Unanswered those that reached
	// furl and got an error, by status.
	Requests   int         `json:"requests"`
	Unanswered map[int]int `json:"unanswered,omitempty"`
	// Steps is the number of assistant messages with calls, Calls that of calls.
	Steps int `json:"steps"`
	Calls int `json:"calls"`
	// Again is the number of calls with the name and the arguments of an earlier
	// one; Repeated that of those whose earlier result was hidden.
	Again    int `json:"calls_made_again"`
	Repeated int `json:"repeated_calls"`
	// Edits is the number of calls that replace text of the path, Blind that of those whose
	// text was hidden. Repaired is the number of requests that showed text of files again
	// because an edit had failed for it, RepairTokens what that added to their prompts.
	Edits        int `json:"edits"`
	Blind        int `json:"blind_edits"`
	Repaired     int `json:"repaired_edits"`
	RepairTokens int `json:"repair_tokens"`
	// Tokens is the size of all prompts, TokensWithout what it would have been
	// without reductions, both with cache reads; Output are tokens of replies.
	Tokens        int `json:"tokens"`
	TokensWithout int `json:"tokens_without"`
	Output        int `json:"output_tokens"`
	Reductions    int `json:"reductions"`
	// Cost is in US dollars at list prices, with summaries. Unpriced is the number of
	// requests without a known price, which are not part of it.
	Cost     float64 `json:"cost"`
	Unpriced int     `json:"unpriced,omitempty"`
}

// Files of a results folder.
const (
	planFile    = "eval.json"
	resultsFile = "results.jsonl"
	lockName    = "lock"
	scratchFile = "scratch" // has the path of the folder for copies
	runsDir     = "runs"
)

// ErrLocked is returned for a results folder that another process uses.
var ErrLocked = errors.New("another furl eval uses this results folder")

// MismatchError is returned for a results folder of another evaluation.
type MismatchError struct {
	Dir  string
	Diff string // what differs
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("results folder %s has the results of another evaluation: %s; use another folder with --results", e.Dir, e.Diff)
}

// Results is a results folder. Only one process can have it open for writing.
type Results struct {
	Dir  string
	Plan Plan
	List []Result // in the order of their ends

	lock, file *os.File
	done       map[Run]bool
}

// OpenResults opens a results folder for an evaluation, or creates it. The error is a
// *MismatchError if it has results of another evaluation, ErrLocked if another process
// has it open.
func OpenResults(dir string, plan Plan) (*Results, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, planFile)); err != nil && !isNew(entries) {
			return nil, fmt.Errorf("results folder %s has other files: use a new folder with --results", dir)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("results folder: %w", err)
	}
	lock, err := lockFile(filepath.Join(dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("results folder %s: %w", dir, err)
	}
	r := &Results{Dir: dir, Plan: plan, lock: lock}
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// open compares the plan with that of the folder, reads the results, and opens their
// file after the last complete line.
func (r *Results) open() error {
	was, err := readPlan(r.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := writePlan(r.Dir, &r.Plan); err != nil {
			return fmt.Errorf("results folder: %w", err)
		}
	case err != nil:
		return err
	default:
		if diff := r.Plan.differs(was); diff != "" {
			return &MismatchError{r.Dir, diff}
		}
		r.Plan = *was
	}
	end, err := r.read()
	if err != nil {
		return err
	}
	if r.file, err = os.OpenFile(filepath.Join(r.Dir, resultsFile), os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	if err := r.file.Truncate(end); err != nil { // a line that was not completed
		return err
	}
	_, err = r.file.Seek(end, io.SeekStart)
	return err
}

// isNew reports whether a folder has no more than an evaluation that was killed before
// its plan was written.
func isNew(entries []os.DirEntry) bool {
	for _, e := range entries {
		if e.Name() != lockName && !strings.HasPrefix(e.Name(), planFile) {
			return false
		}
	}
	return true
}

// ReadResults reads a results folder without opening it for writing.
func ReadResults(dir string) (*Results, error) {
	plan, err := readPlan(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a results folder: it has no %s", dir, planFile)
	}
	if err != nil {
		return nil, err
	}
	r := &Results{Dir: dir, Plan: *plan}
	_, err = r.read()
	return r, err
}

// Close closes the folder.
func (r *Results) Close() error {
	var errs []error
	for _, f := range []*os.File{r.file, r.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// read reads the results and returns the end of the last complete line.
func (r *Results) read() (end int64, err error) {
	r.done = make(map[Run]bool)
	name := filepath.Join(r.Dir, resultsFile)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for n := 1; ; n++ {
		line, rest, complete := bytes.Cut(data, []byte("\n"))
		if !complete {
			return end, nil
		}
		var one Result
		if err := json.Unmarshal(line, &one); err != nil {
			return 0, fmt.Errorf("%s: invalid line %d: %w", name, n, err)
		}
		if r.done[one.Run] || r.Plan.Tasks[one.Task] == "" {
			return 0, fmt.Errorf("%s: invalid line %d: run %d of %s with %s is there twice or not in %s", name, n, one.Number, one.Task, one.Policy, planFile)
		}
		r.done[one.Run] = true
		r.List = append(r.List, one)
		end += int64(len(line)) + 1
		data = rest
	}
}

// Has reports whether a run is finished.
func (r *Results) Has(run Run) bool { return r.done[run] }

// Cost returns the cost of all runs, and that of the most expensive one.
func (r *Results) Cost() (sum, most float64) {
	for i := range r.List {
		sum += r.List[i].Cost
		most = max(most, r.List[i].Cost)
	}
	return sum, most
}

// append adds the result of a run. It is on disk when append returns.
func (r *Results) append(one *Result) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("append to %s: %w", resultsFile, err)
	}
	if err := r.file.Sync(); err != nil {
		return fmt.Errorf("append to %s: %w", resultsFile, err)
	}
	r.done[one.Run] = true
	r.List = append(r.List, *one)
	return nil
}

// RunDir is the folder with the logs and the store of a run.
func (r *Results) RunDir(run Run) string {
	policy := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_':
			return c
		case c == ':':
			return '+'
		}
		return '='
	}, run.Policy)
	return filepath.Join(r.Dir, runsDir, run.Task, fmt.Sprintf("%s-%d", policy, run.Number))
}

func readPlan(dir string) (*Plan, error) {
	data, err := os.ReadFile(filepath.Join(dir, planFile))
	if err != nil {
		return nil, err
	}
	var p Plan
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, planFile), err)
	}
	return &p, nil
}

// writePlan writes the file atomically.
func writePlan(dir string, p *Plan) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	w, err := os.CreateTemp(dir, planFile+".")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	if err := errors.Join(err, w.Sync(), w.Close()); err != nil {
		return errors.Join(err, os.Remove(w.Name()))
	}
	return os.Rename(w.Name(), filepath.Join(dir, planFile))
}
