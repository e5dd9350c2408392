package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The marks that docs/operating.md gives for resident memory, in bytes.
const (
	gatewayMark   = 1500 << 20
	recordingMark = 500 << 20
)

// peakMemory returns the peak resident memory of a running process, in bytes.
func peakMemory(t testing.TB, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(rest, "\n")
	kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "kB")), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// provider answers every request with one word.
func provider(t testing.TB) string {
	t.Helper()
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/chat/completions") {
			_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","model":"gpt-5","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":1}}`)
	}))
	t.Cleanup(p.Close)
	return p.URL
}

// manyMessages makes a request of n one-word messages. No two of different
// first numbers share a message.
func manyMessages(first, n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"%s","content":"w%d"}`, []string{"user", "assistant"}[i%2], first+i)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// largeText makes a request with one message of n bytes.
func largeText(first, n int) []byte {
	words := strings.Repeat("the quick brown fox jumps over the lazy dog ", n/44)
	return fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"%d %s"}]}`, first, words)
}

// postAll sends bodies, so many at once, and counts the answers by status; 0
// counts clients that saw no answer.
func postAll(url, session string, atOnce int, bodies [][]byte) map[int]int {
	slots := make(chan struct{}, atOnce)
	var mu sync.Mutex
	var all sync.WaitGroup
	statuses := make(map[int]int)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, body := range bodies {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			status := 0
			req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
			if err != nil {
				panic(err) // of a URL that the server gave
			}
			if session != "" {
				req.Header.Set("X-Furl-Session", session)
			}
			resp, err := client.Do(req)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				status = resp.StatusCode
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	all.Wait()
	return statuses
}

func TestGatewayMemoryPeak(t *testing.T) {
	if testing.Short() {
		t.Skip("sends hundreds of megabytes")
	}
	for _, test := range []struct {
		name    string
		bodies  func() [][]byte
		atOnce  int    // requests
		session string // all of them ask for it; "" lets furl match
	}{
		{"12 requests of 49,000 one-word messages", func() (list [][]byte) {
			for i := range 12 {
				list = append(list, manyMessages(i*100_000, 49_000))
			}
			return list
		}, 12, ""},
		{"24 requests of 20 MB", func() (list [][]byte) {
			for i := range 24 {
				list = append(list, largeText(i, 20<<20))
			}
			return list
		}, 24, ""},
		{"60 sessions of 20,000 messages, one after the other", func() (list [][]byte) {
			for i := range 60 {
				list = append(list, manyMessages(i*100_000, 20_000))
			}
			return list
		}, 2, ""},
		{"one session with 40 branches of 20,000 messages", func() (list [][]byte) {
			for i := range 40 {
				list = append(list, manyMessages(i*100_000, 20_000))
			}
			return list
		}, 2, "branches"},
	} {
		t.Run(test.name, func(t *testing.T) {
			up := provider(t)
			p := serve(t, t.TempDir(), "--anthropic", up, "--openai", "none", "--log", "warn")
			statuses := postAll(p.url+"/v1/messages", test.session, test.atOnce, test.bodies())
			peak := peakMemory(t, p.cmd.Process.Pid)
			t.Logf("peak %d MB, statuses %v", peak>>20, statuses)
			if peak > gatewayMark {
				t.Errorf("peak resident memory is %d MB, want at most %d MB", peak>>20, gatewayMark>>20)
			}
			if statuses[0] > 0 {
				t.Errorf("%d clients saw no answer", statuses[0])
			}
		})
	}
}
