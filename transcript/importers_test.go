package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/dev/recordings"
)

// eachRecording calls f for all recordings, under the race detector for the short ones.
func eachRecording(t *testing.T, f func(name string, rec *Recording)) {
	t.Helper()
	dir := recordings.Dir(t)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || isLarge(path) {
			return err
		}
		rec, err := ReadFile(path)
		if err != nil || raceDetector && isLong(rec) {
			return nil // not a recording, or a long one
		}
		f(strings.TrimPrefix(path, dir+"/"), rec)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isLarge reports whether it takes too long to read a file under the race detector.
func isLarge(path string) bool {
	info, err := os.Stat(path)
	return err == nil && raceDetector && info.Size() > 350_000
}

// isLong reports whether a recording is too long for tests under the race detector.
func isLong(r *Recording) bool {
	n := 0
	for _, s := range r.Sessions {
		n += s.Messages
	}
	return n > 250
}

// counted sums up the contents of a recording.
type counted struct {
	sessions, messages, calls, results, compactions, requests, peak int
}

func countRecording(rec *Recording) (c counted) {
	c.sessions = len(rec.Sessions)
	for _, s := range rec.Sessions {
		c.messages += s.Messages
		c.calls += s.Calls
		c.results += s.Results
		c.compactions += s.Compactions
		for i := 1; i <= s.Log.Len(); i++ {
			if ex, ok := s.Log.At(furl.Seq(i)).Body.(*furl.Exchange); ok {
				c.requests++
				c.peak = max(c.peak, ex.Usage.Prompt())
			}
		}
	}
	return c
}

// The counts are from the README of the recordings, except for the requests.
// For Codex these are the token counts with new totals, two replies whose
// stream was interrupted (1f), and one reply that the file ends in (33). For
// pi they are all replies except those without content and usage.
func TestRecordingCounts(t *testing.T) {
	dir := recordings.Dir(t)
	tests := []struct {
		file, format string
		wire         furl.Format
		want         counted
	}{
		{"agentv/79-6eaddfe2f9-0.codex.jsonl.gz", "codex", furl.FormatResponses, counted{1, 277, 528, 528, 3, 327, 237746}},
		{"agentv/1f-4427577930-0.codex.jsonl.gz", "codex", furl.FormatResponses, counted{1, 280, 441, 441, 1, 280, 216743}},
		{"agentv/33-5841c2d678-0.codex.jsonl.gz", "codex", furl.FormatResponses, counted{1, 173, 317, 315, 1, 173, 225384}},
		{"agentv/26-9e1b9e5502-0.copilot.jsonl.gz", "copilot-cli", furl.FormatAnthropic, counted{1, 56, 68, 68, 0, 54, 0}},
		{"nimbus/3c-ef55468ff7-0.opencode.json.gz", "opencode", furl.FormatResponses, counted{1, 82, 93, 93, 0, 73, 131908}},
		{"pi-mono/large-session.jsonl.gz", "pi", furl.FormatAnthropic, counted{1, 914, 391, 373, 0, 439, 177604}},
		{"entire-cli/ab-2b9748b105-0.gemini.json", "gemini-cli", furl.FormatChat, counted{1, 13, 9, 9, 0, 10, 14200}},
		{"swe-agent/marshmallow-1867.function_calling_replace_from_source.traj", "swe-agent", furl.FormatChat, counted{1, 28, 13, 13, 0, 13, 0}},
		{"swe-agent/marshmallow-1867.function_calling.traj", "swe-agent", furl.FormatChat, counted{1, 24, 11, 11, 0, 11, 0}},
		{"swe-agent/marshmallow-1867.default_cursors_window100.traj", "swe-agent", furl.FormatChat, counted{1, 25, 0, 0, 0, 12, 0}},
		{"swe-agent/test-repo-i1.traj", "swe-agent", furl.FormatChat, counted{1, 12, 0, 0, 0, 5, 0}},
		{"swe-agent/function_calling_simple.traj", "swe-agent", furl.FormatChat, counted{1, 12, 5, 5, 0, 5, 0}},
		{"tau-bench/gpt-4o-airline.json.gz", "openai-chat", furl.FormatChat, counted{200, 5308, 1164, 1164, 0, 2454, 0}},
		{"openhands/multi_swe_bench-examples-output.jsonl.gz", "openhands", furl.FormatChat, counted{3, 222, 105, 103, 0, 105, 33459}},
	}
	for _, tt := range tests {
		t.Run(filepath.Base(tt.file), func(t *testing.T) {
			rec, err := ReadFile(filepath.Join(dir, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			if rec.Format != tt.format {
				t.Errorf("read as %s, want %s", rec.Format, tt.format)
			}
			if got := countRecording(rec); got != tt.want {
				t.Errorf("counted %+v\nwant    %+v", got, tt.want)
			}
			for _, s := range rec.Sessions {
				if s.Wire != tt.wire {
					t.Errorf("session %s is in %s, want %s", s.ID, s.Wire, tt.wire)
				}
			}
			if len(rec.Skipped) > 0 {
				t.Errorf("skipped %v", rec.Skipped)
			}
			t.Logf("model %q, notes %q", rec.Sessions[0].Model, rec.Notes)
		})
	}
}
