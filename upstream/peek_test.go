package upstream

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever was looked at before, and in whatever pieces it came, the whole
// body is read afterwards.
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
			p := provider(t, func(w http.ResponseWriter, _ *http.Request) {
				for piece := range strings.SplitSeq(body, "7") {
					io.WriteString(w, piece)
					w.(http.Flusher).Flush()
				}
			})
			resp, err := client(t, p.URL, nil).Do(t.Context(), post("{}"))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Close()
			var seen bytes.Buffer
			for range 2 { // it can be looked at again
				seen.Reset()
				resp.Peek(tc.most, time.Minute, func(piece []byte) bool { seen.Write(piece); return tc.stop(piece) })
			}
			got, err := resp.ReadAll()
			if want := strings.ReplaceAll(body, "7", ""); err != nil || string(got) != want {
				t.Errorf("%d bytes and %v, want %d", len(got), err, len(want))
			}
			if !bytes.HasPrefix(got, seen.Bytes()) || seen.Len() == 0 {
				t.Errorf("%d other bytes were seen", seen.Len())
			}
		})
	}
}

// What cuts a body off is found by who reads it.
func TestPeekOfABodyThatIsCut(t *testing.T) {
	p := provider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "some of it")
	})
	resp, err := client(t, p.URL, nil).Do(t.Context(), post("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Close()
	resp.Peek(1000, time.Minute, func([]byte) bool { return false })
	got, err := resp.ReadAll()
	if e, ok := err.(*Error); string(got) != "some of it" || !ok || e.Stage != StageBody {
		t.Errorf("%q and %v", got, err)
	}
}

// When the time is over, what has come so far goes on, and then the rest, also
// what was being read just then.
func TestPeekEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		more := make(chan struct{})
		c := piped(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "first")
			w.(http.Flusher).Flush()
			<-more
			io.WriteString(w, " second")
			w.(http.Flusher).Flush()
			<-more
			io.WriteString(w, " third")
		})
		resp, err := c.Do(t.Context(), post("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Close()
		began := time.Now()
		resp.Peek(1000, 10*time.Second, func([]byte) bool { return false })
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it was looked at for %v", took)
		}
		var got []byte
		for _, want := range []string{"first", "first second", "first second third"} {
			for len(got) < len(want) {
				buf := make([]byte, 4)
				n, err := resp.Read(buf)
				if got = append(got, buf[:n]...); err != nil && err != io.EOF {
					t.Fatalf("%q and %v", got, err)
				}
			}
			if string(got) != want {
				t.Fatalf("%q, want %q", got, want)
			}
			if want != "first second third" {
				more <- struct{}{}
			}
		}
	})
}
