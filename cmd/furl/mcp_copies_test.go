package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// source is a recording that is copied.
type source struct {
	name string
	text []byte
}

// sources returns the recordings in a folder that furl can read, uncompressed.
func sources(t testing.TB, dir string) (all []source) {
	t.Helper()
	reader := transcript.Reader{Counter: token.O200k()}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, packed := strings.CutSuffix(path, ".gz")
		if packed {
			z, err := gzip.NewReader(bytes.NewReader(text))
			if err != nil {
				return err
			}
			if text, err = io.ReadAll(z); err != nil {
				return err
			}
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if rec, err := reader.Read(rel, bytes.NewReader(text)); err == nil && len(rec.Sessions) > 0 {
			all = append(all, source{rel, text})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no recordings", dir)
	}
	return all
}

// writeCopies writes copies of recordings into a folder until they have so many bytes.
// Each copy has other ids, and other words in place of about half of the words. The
// files are an hour old, so that they are complete.
func writeCopies(t testing.TB, from []source, to string, size int64) (files int, written int64) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	for n := 0; written < size; n++ {
		for _, s := range from {
			if written >= size {
				break
			}
			path := filepath.Join(to, fmt.Sprintf("copy%d", n), s.name)
			text := s.copy(n)
			err := os.MkdirAll(filepath.Dir(path), 0o700)
			if err == nil {
				err = os.WriteFile(path, text, 0o600)
			}
			if err == nil {
				err = os.Chtimes(path, old, old)
			}
			if err != nil {
				t.Fatal(err)
			}
			files, written = files+1, written+int64(len(text))
		}
	}
	return files, written
}

// anID matches ids of sessions, messages and calls.
var anID = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b(?:toolu|msg|call|ses|prt|req|fc|rs|resp|chatcmpl|gen)[_-][0-9A-Za-z_-]{8,}\b`)

// copy returns copy n of a recording.
func (s *source) copy(n int) []byte {
	text := anID.ReplaceAllFunc(s.text, func(id []byte) []byte {
		sum := fmt.Sprintf("%08x", hashOf(string(id), n))
		if id[8] == '-' && bytes.Count(id, []byte("-")) == 4 {
			return append([]byte(sum), id[8:]...)
		}
		return append(bytes.Clone(id[:len(id)-4]), sum[:4]...)
	})
	if filepath.Ext(s.name) == ".md" {
		var out []byte
		for line := range bytes.Lines(text) {
			if line[0] == '#' || line[0] == '>' { // what aider writes, not its model
				out = append(out, line...)
				continue
			}
			out = appendCopy(out, line, n)
		}
		return out
	}
	// In JSON, strings with spaces are prose; others may be keys, types and names.
	out := make([]byte, 0, len(text))
	for at := 0; at < len(text); {
		if text[at] != '"' {
			out = append(out, text[at])
			at++
			continue
		}
		end := at + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(text))
		if bytes.IndexByte(text[at:end], ' ') < 0 {
			out = append(out, text[at:end]...)
		} else {
			out = appendCopy(out, text[at:end], n)
		}
		at = end
	}
	return out
}

// minCopied is the length of the shortest words that are replaced.
const minCopied = 6

// appendCopy appends a text with other words in place of about half of its words.
func appendCopy(out, text []byte, n int) []byte {
	for at := 0; at < len(text); {
		c := text[at]
		if c == '\\' && at+1 < len(text) {
			out = append(out, text[at:at+2]...)
			at += 2
			continue
		}
		end := at
		for end < len(text) && isWordByte(text[end]) {
			end++
		}
		if end == at {
			out = append(out, c)
			at++
			continue
		}
		out = appendWord(out, text[at:end], n)
		at = end
	}
	return out
}

func isWordByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c >= 0x80
}

func appendWord(out, word []byte, n int) []byte {
	plain := len(word) >= minCopied
	for _, c := range word {
		plain = plain && c >= 'a' && c <= 'z'
	}
	sum := hashOf(string(word), n)
	if !plain || sum&1 == 0 {
		return append(out, word...)
	}
	out = append(out, word[:len(word)-3]...)
	for range 3 {
		sum >>= 5
		out = append(out, "abcdefghijklmnoprstuvwxyzaeiou"[sum%30])
	}
	return out
}

func hashOf(text string, n int) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%d %s", n, text)
	return h.Sum32()
}

// question is what is searched for.
type question struct{ kind, text string }

var (
	aWord = regexp.MustCompile(`\b[a-z]{4,20}\b`)
	aName = regexp.MustCompile(`\b(?:[a-z]{2,}_[a-z_]{2,}|[a-z]{2,}[A-Z][a-z][A-Za-z]+|[a-z]+(?:/[a-z]+)+\.[a-z]{2,3})\b`)
	prose = regexp.MustCompile(`"text":"([^"\\]{40,})`)
)

// questions returns different questions for the first copies of recordings, n of each
// kind: rare words, common words, names, phrases, and words that no recording has.
func questions(from []source, copies, n int) (all []question) {
	counts, names := make(map[string]int), make(map[string]bool)
	var phrases []string
	for _, s := range from {
		for c := range copies {
			text := s.copy(c)
			for _, word := range aWord.FindAll(text, -1) {
				counts[string(word)]++
			}
			for _, name := range aName.FindAll(text, -1) {
				names[string(name)] = true
			}
			for _, m := range prose.FindAllSubmatch(text, -1) {
				phrases = append(phrases, string(m[1]))
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	common := words[:min(len(words), 2*n)]
	rare := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return counts[w] > 3 })
	sorted := slices.Sorted(maps.Keys(names))
	seen := make(map[string]bool)
	add := func(kind string, next func() string) {
		for tries, k := 0, 0; k < n && tries < 100*n; tries++ {
			if text := next(); !seen[text] && text != "" {
				seen[text] = true
				all = append(all, question{kind, text})
				k++
			}
		}
	}
	pick := func(of []string) string { return of[rng.IntN(len(of))] }
	add("rare", func() string { return pick(rare) })
	add("common", func() string {
		if rng.IntN(2) == 0 {
			return pick(common)
		}
		return pick(common) + " " + pick(common) + " " + pick(common)
	})
	add("name", func() string { return pick(sorted) })
	add("phrase", func() string {
		words := strings.Fields(pick(phrases))
		size := 3 + rng.IntN(6)
		if len(words) < size {
			return ""
		}
		at := rng.IntN(len(words) - size + 1)
		return strings.Join(words[at:at+size], " ")
	})
	add("miss", func() string {
		word := []byte("qz")
		for range 5 + rng.IntN(5) {
			word = append(word, byte('a'+rng.IntN(26)))
		}
		return string(word)
	})
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
