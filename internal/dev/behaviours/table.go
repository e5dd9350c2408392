// Package behaviours reads docs/internals/behaviours.md, the list of furl's promises,
// and finds the tests with the promises' ids in their names.
//
// A test has an id if its name, a subtest's name or the name of a file under
// testdata contains it: TestT7Roo, "A5 a used name keeps its result",
// t1-half-of-the-rest.txtar, "preset rolling", event-context_usage.txtar.
package behaviours

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Row is one promise: "| T1 | what it says | where it is tested |".
type Row struct {
	ID    string // "T1", "preset rolling", "event context_usage"
	Text  string
	Where string // files with tests, or Untested
	line  int    // index into Table.lines
}

// Untested is the last column of a promise without a test.
const Untested = "not yet"

// Tested reports whether the table lists a test of the promise.
func (r Row) Tested() bool { return r.Where != Untested }

// Table is a parsed docs/internals/behaviours.md.
type Table struct {
	Rows []Row
	// Gaps says what is missing, by the id of the promise.
	Gaps  map[string]string
	lines []string
}

// gapsHead is the head of the section with a line "- ID: what is missing and why" for
// each gap.
const gapsHead = "## Gaps"

var rowID = regexp.MustCompile(`^([TACRMX][0-9]{1,2}|(?:preset|event) [a-z0-9_-]+)$`)

// Parse parses the rows of the document's tables.
func Parse(doc []byte) (*Table, error) {
	t := &Table{lines: strings.Split(string(doc), "\n"), Gaps: map[string]string{}}
	seen := map[string]bool{}
	gaps := false
	for i, line := range t.lines {
		if strings.HasPrefix(line, "## ") {
			gaps = line == gapsHead
		}
		if gap, ok := strings.CutPrefix(line, "- "); gaps && ok {
			ids, words, _ := strings.Cut(gap, ": ")
			for id := range strings.SplitSeq(ids, ", ") {
				switch {
				case !seen[id]:
					return nil, fmt.Errorf("line %d: gap in %q, which is not in a table above", i+1, id)
				case strings.TrimSpace(words) == "" || t.Gaps[id] != "":
					return nil, fmt.Errorf("line %d: %s: expected one gap, with what is missing and why", i+1, id)
				}
				t.Gaps[id] = words
			}
			continue
		}
		if !strings.HasPrefix(line, "|") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		id := strings.Trim(cells[0], "`")
		if id == "id" || strings.Trim(id, "-") == "" {
			continue
		}
		switch {
		case !rowID.MatchString(id):
			return nil, fmt.Errorf("line %d: invalid id %q", i+1, id)
		case len(cells) != 3 || cells[1] == "" || cells[2] == "":
			return nil, fmt.Errorf("line %d: %s: expected three cells with text", i+1, id)
		case seen[id]:
			return nil, fmt.Errorf("line %d: duplicate id %s", i+1, id)
		}
		seen[id] = true
		t.Rows = append(t.Rows, Row{ID: id, Text: cells[1], Where: cells[2], line: i})
	}
	return t, nil
}

// Update returns the document with the last column set for each row.
func (t *Table) Update(where func(Row) string) []byte {
	lines := slices.Clone(t.lines)
	for _, r := range t.Rows {
		cell, _, _ := strings.Cut(strings.TrimPrefix(lines[r.line], "|"), "|")
		lines[r.line] = fmt.Sprintf("|%s| %s | %s |", cell, r.Text, where(r))
	}
	return bytes.TrimRight([]byte(strings.Join(lines, "\n")), "\n ")
}

var (
	prefix = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)_?`)
	letter = regexp.MustCompile(`^([TACRMX][0-9]{1,2})(?:[^a-z0-9]|$)`)
	lower  = regexp.MustCompile(`^([TACRMXtacrmx][0-9]{1,2})(?:[^A-Za-z0-9]|$)`)
	named  = regexp.MustCompile(`(?i)\b(preset|event)s?[ _:-]+([a-z0-9_-]+)`)
)

// Borne lists the ids in the name of a test, whose subtests are separated by
// slashes, or of a file. It includes well-formed ids that are not in the
// table.
func (t *Table) Borne(name string) []string {
	var ids []string
	add := func(id string) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		for _, m := range named.FindAllStringSubmatch(part, -1) {
			if id := t.longest(strings.ToLower(m[1])+" ", m[2]); id != "" {
				add(id)
			}
		}
		rest := prefix.ReplaceAllString(part, "")
		// At the start ids may be in lower case, as in file names.
		for m := lower.FindStringSubmatch(rest); m != nil; m = lower.FindStringSubmatch(rest) {
			add(strings.ToUpper(m[1]))
			rest = strings.TrimLeft(rest[len(m[1]):], " _-.,:+")
		}
		// Elsewhere, and joined to a word, they are whole words in capitals.
		for at := 0; at < len(rest); at++ {
			if at > 0 && isWord(rest[at-1]) && !letter.MatchString(rest[:at]) {
				continue
			}
			if m := letter.FindStringSubmatch(rest[at:]); m != nil {
				add(m[1])
			}
		}
	}
	return ids
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// longest finds the row with the longest name that is a prefix of tail.
func (t *Table) longest(kind, tail string) string {
	best := ""
	for _, r := range t.Rows {
		name, ok := strings.CutPrefix(r.ID, kind)
		if !ok || !strings.HasPrefix(tail, name) || len(kind+name) <= len(best) {
			continue
		}
		if len(tail) == len(name) || !isWord(tail[len(name)]) {
			best = kind + name
		}
	}
	return best
}
