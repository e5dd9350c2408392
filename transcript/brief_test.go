package transcript

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
)

// requestsOf describes all requests of a recording. known numbers the replies in all recordings.
func requestsOf(rec *Recording, known map[ReplyID]int) []string {
	var out []string
	for _, s := range rec.Sessions {
		out = append(out, fmt.Sprintf("session %q of %q, fork of %q, project %q, model %q, part %d", s.ID, s.Parent, s.ForkOf, s.Project, s.Model, rec.Part))
		ids := make(map[furl.Seq]int)
		for seq, id := range s.Replies() {
			if known[id] == 0 {
				known[id] = len(known) + 1
			}
			ids[seq] = known[id]
		}
		for _, r := range s.Log.Records(0) {
			switch b := r.Body.(type) {
			case *furl.Exchange:
				out = append(out, fmt.Sprint(r.At, b.Model, b.Usage, b.Passes, b.Terms, b.ResponseID, b.Stop, ids[r.Seq]))
			case *furl.Reduction:
				if b.Summary != nil {
					out = append(out, fmt.Sprint(r.At, b.Stage, b.Summary.Model, b.Summary.Usage, b.Before, b.After))
				}
			}
		}
	}
	return out
}

// A reading about usage only has the same sessions and requests as a full one, of all fixtures and recordings.
func TestUsageOnly(t *testing.T) {
	folders := append([]string{"testdata"}, filepath.SplitList(os.Getenv("FURL_RECORDINGS"))...)
	compared := 0
	inFull, inBrief := make(map[ReplyID]int), make(map[ReplyID]int)
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".want") {
				return err
			}
			for _, memory := range []int64{0, 20 << 20} { // the second one reads large files in parts
				full, brief := Reader{MaxMemory: memory}, Reader{MaxMemory: memory, UsageOnly: true}
				var want, got []string
				for rec, err := range full.Walk(path) {
					if err == nil {
						want = append(want, requestsOf(rec, inFull)...)
					}
				}
				for rec, err := range brief.Walk(path) {
					if err == nil {
						got = append(got, requestsOf(rec, inBrief)...)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s", path, diff)
				}
				compared += len(want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if compared < 500 {
		t.Errorf("compared only %d lines", compared)
	}
}

// The parts of large files have the same requests in a reading about usage only.
func TestUsageOnlyInParts(t *testing.T) {
	for name, data := range map[string][]byte{
		"claude": bytes.ReplaceAll(largeClaude(400, 10, 60_000), []byte(`"sessionId"`), []byte(`"cwd":"/work","sessionId"`)),
		"codex":  largeCodex(400, 10, 60_000),
	} {
		path := filepath.Join(t.TempDir(), name+".jsonl")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		var want, got partsTotal
		parts := 0
		for _, read := range []struct {
			Reader
			total *partsTotal
		}{{Reader{MaxMemory: 40 << 20}, &want}, {Reader{MaxMemory: 40 << 20, UsageOnly: true}, &got}} {
			for rec, err := range read.Walk(path) {
				if err != nil {
					t.Fatal(err)
				}
				parts = max(parts, rec.Part)
				read.total.add(rec)
			}
		}
		if got != want || parts < 2 || want.requests == 0 {
			t.Errorf("%s: %+v, want %+v, in %d parts", name, got, want, parts)
		}
	}
}

// Damaged files have the same requests in both readings: lines are lost, repeated, moved, cut and joined.
func TestUsageOnlyDamaged(t *testing.T) {
	for name, data := range fixtures(t) {
		if !strings.Contains(name, "claude") && !strings.Contains(name, "codex") && !strings.HasPrefix(name, "rollout") {
			continue
		}
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 1))
			lines := bytes.SplitAfter(data, []byte("\n"))
			for range 1 + r.IntN(4) {
				i, j := r.IntN(len(lines)), r.IntN(len(lines))
				switch r.IntN(5) {
				case 0:
					lines = slices.Delete(slices.Clone(lines), i, min(i+1+r.IntN(3), len(lines)-1))
				case 1:
					lines = slices.Insert(slices.Clone(lines), i, lines[j])
				case 2:
					lines[i], lines[j] = lines[j], lines[i]
				case 3:
					lines[i] = lines[i][:r.IntN(len(lines[i])+1)]
				case 4:
					lines[i] = bytes.TrimSuffix(lines[i], []byte("\n"))
				}
			}
			damaged := bytes.Join(lines, nil)
			var got [2][]string
			for i, usageOnly := range []bool{false, true} {
				rec, err := (&Reader{UsageOnly: usageOnly}).Read(name, bytes.NewReader(damaged))
				if err != nil {
					got[i] = []string{err.Error()}
					continue
				}
				got[i] = requestsOf(rec, make(map[ReplyID]int))
			}
			if diff := cmp.Diff(got[0], got[1]); diff != "" {
				t.Errorf("%s, seed %d: %s", name, seed, diff)
			}
		}
	}
}
