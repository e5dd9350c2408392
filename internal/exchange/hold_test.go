package exchange

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// Whatever was looked at before, and in whatever pieces it arrived, the whole body
// is read afterwards.
func TestPeekPutsBack(t *testing.T) {
	body := strings.Repeat("0123456789", 2000)
	for _, tc := range []struct {
		name string
		most int
		stop func(piece []byte) bool
	}{
		{"at once", 1 << 20, func([]byte) bool { return true }},
		{"never", 1 << 20, func([]byte) bool { return false }},
		{"at the most", 5000, func([]byte) bool { return false }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// Some readers return the last bytes together with the end.
			for _, pieces := range []func(io.Reader) io.Reader{iotest.HalfReader, iotest.DataErrReader, iotest.OneByteReader} {
				b := io.NopCloser(pieces(strings.NewReader(body)))
				var seen bytes.Buffer
				for range 2 { // it can be looked at again
					seen.Reset()
					b = holdBack(b, tc.most, time.Minute, func(piece []byte) bool { seen.Write(piece); return tc.stop(piece) })
				}
				got, err := io.ReadAll(b)
				if err != nil || string(got) != body {
					t.Errorf("%d bytes and %v, want %d", len(got), err, len(body))
				}
				if !bytes.HasPrefix(got, seen.Bytes()) || seen.Len() == 0 {
					t.Errorf("%d other bytes were seen", seen.Len())
				}
			}
		})
	}
}

// The error that cuts a body off is left for whoever reads it.
func TestPeekOfABodyThatIsCut(t *testing.T) {
	gone := errors.New("gone")
	b := holdBack(io.NopCloser(io.MultiReader(strings.NewReader("some of it"), iotest.ErrReader(gone))), 1000, time.Minute, func([]byte) bool { return false })
	if got, err := io.ReadAll(b); string(got) != "some of it" || !errors.Is(err, gone) {
		t.Errorf("%q and %v", got, err)
	}
	// Together with the last bytes, which are looked at all the same.
	seen := ""
	b = holdBack(io.NopCloser(iotest.DataErrReader(io.MultiReader(strings.NewReader("some of it"), iotest.ErrReader(gone)))), 1000, time.Minute, func(piece []byte) bool { seen += string(piece); return true })
	if got, err := io.ReadAll(b); string(got) != "some of it" || !errors.Is(err, gone) || seen != "some of it" {
		t.Errorf("%q and %v, seen %q", got, err, seen)
	}
}

// When the time is over, what has arrived so far is passed on, and then the rest,
// including what was being read just then.
func TestPeekEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		more := make(chan struct{})
		go func() {
			for _, piece := range []string{"first", " second", " third"} {
				_, _ = io.WriteString(out, piece)
				<-more
			}
			_ = out.Close()
		}()
		began := time.Now()
		b := holdBack(in, 1000, 10*time.Second, func([]byte) bool { return false })
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it was looked at for %v", took)
		}
		var got []byte
		for _, want := range []string{"first", "first second", "first second third"} {
			for len(got) < len(want) {
				buf := make([]byte, 4)
				n, err := b.Read(buf)
				if got = append(got, buf[:n]...); err != nil {
					t.Fatalf("%q and %v", got, err)
				}
			}
			if string(got) != want {
				t.Fatalf("%q, want %q", got, want)
			}
			more <- struct{}{}
		}
	})
}
