package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/furlhq/furl/internal/numbers"
)

// BrokenError is the error for a log in which a line was changed, removed or added.
type BrokenError struct {
	File string
	Line int // from 1
	Why  string
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("audit log is broken: %s, line %d: %s", filepath.Base(e.File), e.Line, e.Why)
}

// Recorded is an entry with its place in the log.
type Recorded struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
	Entry
	// Raw is the line as it is in the file, without the line break.
	Raw []byte `json:"-"`
}

// All returns the entries of a log in order, and checks the chain. The error is a
// *BrokenError if a line was changed, added or removed. Lines that were removed at the
// end leave a valid chain: compare the last hash with one that was kept elsewhere.
func All(name string) iter.Seq2[Recorded, error] {
	return func(yield func(Recorded, error) bool) {
		names, err := files(name)
		if err == nil && len(names) == 0 {
			err = fmt.Errorf("audit log %s does not exist", name)
		}
		if err != nil {
			yield(Recorded{}, err)
			return
		}
		seq, hash := uint64(0), ""
		for i, file := range names {
			for r, err := range linesOf(file, &seq, &hash, i == len(names)-1) {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// linesOf returns the entries of a file that continues a chain. The last line of the
// current file may be incomplete while it is written.
func linesOf(file string, seq *uint64, hash *string, current bool) iter.Seq2[Recorded, error] {
	return func(yield func(Recorded, error) bool) {
		f, err := os.Open(file)
		if err != nil {
			yield(Recorded{}, err)
			return
		}
		defer f.Close()
		in := bufio.NewReaderSize(f, maxLine+1)
		for n := 1; ; n++ {
			text, err := in.ReadSlice('\n')
			if err == io.EOF && (len(text) == 0 || current) {
				return
			}
			broken := func(why string) { yield(Recorded{}, &BrokenError{file, n, why}) }
			switch {
			case errors.Is(err, bufio.ErrBufferFull):
				broken("the line is too long")
				return
			case err == io.EOF:
				broken("the line is incomplete")
				return
			case err != nil:
				yield(Recorded{}, err)
				return
			}
			text = bytes.TrimSuffix(text, []byte("\n"))
			l, covered, has, err := parse(text)
			if err != nil {
				broken(err.Error())
				return
			}
			sum := sha256.Sum256(covered)
			switch {
			case has != hex.EncodeToString(sum[:]):
				broken("the line was changed: its hash does not match")
				return
			case l.Seq != *seq+1:
				broken(fmt.Sprintf("number %d follows %d: lines were removed, added or moved", l.Seq, *seq))
				return
			case l.Prev != *hash:
				broken("it does not continue the line before")
				return
			}
			*seq, *hash = l.Seq, has
			if !yield(Recorded{l.Seq, has, l.Entry, bytes.Clone(text)}, nil) {
				return
			}
		}
	}
}

// Entries says how many entries there are.
func Entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return numbers.Thousands(n) + " entries"
}
