package transcript

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

// A file that unpacks to far more than the limit is refused without being
// read into memory; a file below the limit is in memory only once.
func TestUnpackHoldsNoBombs(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.Copy(z, io.LimitReader(zeros{}, 64<<20)); err != nil {
		t.Fatal(err)
	}
	z.Close()
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	n := allocated(func() {
		_, _, err := unpack("bomb.gz", bytes.NewReader(packed.Bytes()), 32<<20)
		if _, ok := errors.AsType[*TooLargeError](err); !ok {
			t.Errorf("64 MiB of zeros, limit 32 MiB: %v, want a *TooLargeError", err)
		}
	})
	if n > 4<<20 {
		t.Errorf("refusing the file allocated %d bytes, want under 4 MiB", n)
	}
	n = allocated(func() {
		data, torn, err := unpack("large.gz", bytes.NewReader(packed.Bytes()), 128<<20)
		if len(data) != 64<<20 || torn != nil || err != nil {
			t.Errorf("64 MiB of zeros: %d bytes, %v, %v", len(data), torn, err)
		}
	})
	if n > 72<<20 {
		t.Errorf("reading 64 MiB allocated %d bytes, want under 72 MiB", n)
	}
}

// Input that cannot be read twice is read once, with the same limits.
func TestUnpackOfAPipe(t *testing.T) {
	data, torn, err := unpack("pipe", io.MultiReader(strings.NewReader("words")), 5)
	if string(data) != "words" || torn != nil || err != nil {
		t.Errorf("got %q, %v, %v", data, torn, err)
	}
	_, _, err = unpack("pipe", io.MultiReader(strings.NewReader("words")), 4)
	if _, ok := errors.AsType[*TooLargeError](err); !ok {
		t.Errorf("limit 4: %v, want a *TooLargeError", err)
	}
}

func TestEmptyFilesAreCalledEmpty(t *testing.T) {
	_, err := Read("e.jsonl", strings.NewReader(" \n\n"))
	if unknown, ok := errors.AsType[*UnknownFormatError](err); !ok || err.Error() != "e.jsonl: empty file" || !unknown.Empty {
		t.Errorf("got %v, want an *UnknownFormatError that says so", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
