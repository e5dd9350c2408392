package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// The limits of resident memory in docs/operate/gateway.md, in bytes.
const (
	gatewayMark   = 1500 << 20
	recordingMark = 500 << 20
)

// builtFurl is the command that users run, built once. The test binary may have the race
// detector, which takes several times the memory.
func builtFurl(t *testing.T) string {
	t.Helper()
	dir, err := buildFurl()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "furl")
}

// buildFurl builds the command in a folder that TestMain deletes.
var buildFurl = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "furl")
	if err != nil {
		return "", err
	}
	atExit = append(atExit, func() { _ = os.RemoveAll(dir) }) // a temporary folder
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "furl"), ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build furl: %v\n%s", err, out)
	}
	return dir, nil
})

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

// manyMessages returns a request of n one-word messages. Requests with different first
// numbers share no message.
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

// largeText returns a request with one message of n bytes.
func largeText(first, n int) []byte {
	words := strings.Repeat("the quick brown fox jumps over the lazy dog ", n/44)
	return fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"%d %s"}]}`, first, words)
}

// postAll sends bodies concurrently and counts the responses by status. 0 counts clients
// without a response.
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
				panic(err) // the URL is the server's
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
	furl := builtFurl(t)
	for _, test := range quick([]struct {
		name    string
		bodies  func() [][]byte
		atOnce  int    // requests
		session string // session id of all requests; "": furl matches them
	}{
		{"16 requests of 20 MB", func() (list [][]byte) {
			for i := range 16 {
				list = append(list, largeText(i, 20<<20))
			}
			return list
		}, 16, ""},
		{"12 requests of 49,000 one-word messages", func() (list [][]byte) {
			for i := range 12 {
				list = append(list, manyMessages(i*100_000, 49_000))
			}
			return list
		}, 12, ""},
		{"20 sessions of 20,000 messages", func() (list [][]byte) {
			for i := range 20 {
				list = append(list, manyMessages(i*100_000, 20_000))
			}
			return list
		}, 2, ""},
		{"one session with branches of 20,000 messages", func() (list [][]byte) {
			for i := range 12 {
				list = append(list, manyMessages(i*100_000, 20_000))
			}
			return list
		}, 2, "branches"},
	}, 1) {
		t.Run(test.name, func(t *testing.T) {
			up := provider(t)
			cmd := furlCommand(t.TempDir(), "serve", "--listen", "127.0.0.1:0", "--anthropic", up, "--openai", "none", "--log", "warn")
			cmd.Path = furl
			p := start(t, cmd)
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

// records writes a compressed recording of n one-word messages in a format.
func records(t *testing.T, format, name string, n int) {
	t.Helper()
	begin, end, each := "", "", func(i int) string { return "" }
	role := func(i int) string { return []string{"user", "assistant"}[i%2] }
	switch format {
	case "claude-code":
		each = func(i int) string {
			return fmt.Sprintf(`{"type":%q,"sessionId":"s","uuid":"u%d","parentUuid":"u%d","message":{"role":%[1]q,"id":"m%d","content":[{"type":"text","text":"hi"}]}}`+"\n", role(i), i, i-1, i)
		}
	case "codex":
		begin = `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"a","timestamp":"2026-01-01T00:00:00Z"}}` + "\n"
		each = func(i int) string {
			return fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":%q,"content":[{"type":%q,"text":"hi"}]}}`+"\n", role(i), []string{"input_text", "output_text"}[i%2])
		}
	case "chat lines":
		each = func(i int) string { return fmt.Sprintf(`{"role":%q,"content":"hi"}`+"\n", role(i)) }
	case "chat array":
		begin, end = `[{"role":"user","content":"hi"}`, "]"
		each = func(i int) string { return fmt.Sprintf(`,{"role":%q,"content":"hi"}`, role(i+1)) }
	}

	// The file is a series of gzip streams. Compressing takes longest, so the last
	// block is compressed once and repeated. All limits are reached before.
	const block, distinct = 100_000, 3
	packed := packedText(t, begin)
	var last []byte
	for i := range min(n/block, distinct) {
		var text strings.Builder
		for k := range block {
			text.WriteString(each(i*block + k))
		}
		last = packedText(t, text.String())
		packed = append(packed, last...)
	}
	packed = append(packed, bytes.Repeat(last, max(0, n/block-distinct))...)
	packed = append(packed, packedText(t, end)...)
	if err := os.WriteFile(name, packed, 0o600); err != nil {
		t.Fatal(err)
	}
}

// packedText returns a text as a gzip stream.
func packedText(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// beMeasure is the variable with the file to which the test binary writes the peak
// resident memory of a command that it runs. A process inherits the peak of its parent,
// so the parent must not be the test itself.
const beMeasure = "FURL_TEST_BE_MEASURE"

func init() {
	name := os.Getenv(beMeasure)
	if name == "" {
		return
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		panic(err)
	}
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	if err := os.WriteFile(name, strconv.AppendInt(nil, peak, 10), 0o600); err != nil {
		panic(err)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// runMeasured runs furl and returns its peak resident memory in bytes, its exit code and
// its standard error.
func runMeasured(t *testing.T, furl string, args ...string) (peak int64, exit int, said string) {
	t.Helper()
	home := t.TempDir()
	result := filepath.Join(home, "peak")
	cmd := furlCommand(home, append([]string{furl}, args...)...)
	cmd.Env = append(cmd.Env, beMeasure+"="+result)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(result)
	if err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	if peak, err = strconv.ParseInt(string(text), 10, 64); err != nil {
		t.Fatal(err)
	}
	return peak, cmd.ProcessState.ExitCode(), errs.String()
}

func TestRecordingMemoryPeak(t *testing.T) {
	furl, dir := builtFurl(t), t.TempDir()
	small, large := filepath.Join(dir, "small.gz"), filepath.Join(dir, "large.gz")
	for _, format := range quick([]string{"chat lines", "claude-code", "codex", "chat array"}, 1) {
		t.Run(format, func(t *testing.T) {
			records(t, format, small, 100_000)
			records(t, format, large, 1_000_000)
			commands := [][]string{{"show"}, {"context"}, {"import"}, {"replay", "--quiet", "--policy", "none"}}
			if format != "claude-code" { // the commands read all formats alike
				commands = commands[:1]
			}
			for _, args := range commands {
				if args[0] != "replay" { // which takes minutes for so many requests
					peak, exit, said := runMeasured(t, furl, append(args, small)...)
					t.Logf("%s of 100,000 records: peak %d MB", args[0], peak>>20)
					if exit != 0 || peak > recordingMark {
						t.Errorf("%s of 100,000 records: exit %d, peak %d MB, want 0 and at most %d MB\n%s", args[0], exit, peak>>20, recordingMark>>20, said)
					}
				}
				want, say := 1, "more than 320 MB of memory"
				if args[0] == "import" || args[0] == "replay" { // in parts
					want, say = 0, ""
				}
				peak, exit, said := runMeasured(t, furl, append(args, large)...)
				t.Logf("%s of 1,000,000 records: peak %d MB", args[0], peak>>20)
				if exit != want || peak > recordingMark || !strings.Contains(said, say) {
					t.Errorf("%s of 1,000,000 records: exit %d, peak %d MB, want %d and at most %d MB\n%s", args[0], exit, peak>>20, want, recordingMark>>20, said)
				}
			}
		})
	}
}

// One line or one message may have as many records or blocks as a whole file.
func TestDenseRecordingMemoryPeak(t *testing.T) {
	furl, dir := builtFurl(t), t.TempDir()
	const message, text = `,{"role":"user","content":"a"}`, `,{"type":"text","text":"a"}`
	for _, tt := range quick([]struct {
		name, begin, each string
		n                 int
		end               string
	}{
		{"messages of one chat request", `{"messages":[{"role":"user","content":"a"}`, message, 2_000_000, "]}"},
		{"objects on one line", `{"type":"user","message":{"role":"user","content":"w"},"uuid":"1","sessionId":"s"}` + "\n", "{}", 25_000_000, "\n"},
		{"blocks of one Responses item", `{"model":"gpt-5","input":[{"role":"user","content":[{"type":"input_text","text":"a"}`, `,{"type":"input_text","text":"a"}`, 1_500_000, "]}]}"},
		{"blocks of one Anthropic message", `{"model":"claude-sonnet-4-5","max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"a"}`, text, 2_000_000, "]}]}"},
		{"blocks of one Roo message", `[{"role":"user","ts":1,"content":[{"type":"text","text":"a"}`, text, 2_000_000, "]}]"},
		{"messages of Roo", `[{"role":"user","content":"a","ts":1}`, `,{"role":"user","content":"a","ts":1}`, 1_500_000, "]"},
		{"numbers for messages", `{"messages":[1`, ",1", 45_000_000, "]}"},
	}, 2) {
		t.Run(tt.name, func(t *testing.T) {
			packed := packedText(t, tt.begin)
			packed = append(packed, bytes.Repeat(packedText(t, strings.Repeat(tt.each, 10_000)), tt.n/10_000)...)
			packed = append(packed, packedText(t, tt.end)...)
			name := filepath.Join(dir, "dense.gz")
			if err := os.WriteFile(name, packed, 0o600); err != nil {
				t.Fatal(err)
			}
			peak, exit, said := runMeasured(t, furl, "show", name)
			t.Logf("%d bytes: peak %d MB", len(packed), peak>>20)
			if exit != 1 || peak > recordingMark {
				t.Errorf("exit %d, peak %d MB, want 1 and at most %d MB\n%s", exit, peak>>20, recordingMark>>20, said)
			}
		})
	}
}

// A recording of large results, in a file of 90 MB, is read and replayed.
func TestLargeRecordingMemoryPeak(t *testing.T) {
	furl, name := builtFurl(t), filepath.Join(t.TempDir(), "large.jsonl")
	var b bytes.Buffer
	for i := 0; b.Len() < 90<<20; i++ {
		fmt.Fprintf(&b, `{"type":"user","sessionId":"s","uuid":"u%d","parentUuid":"a%d","message":{"role":"user","content":"%d %s"}}`+"\n", i, i-1, i, strings.Repeat("the quick brown fox jumps over the lazy dog\\n", 2000))
		fmt.Fprintf(&b, `{"type":"assistant","sessionId":"s","uuid":"a%d","parentUuid":"u%d","message":{"role":"assistant","id":"m%d","model":"claude-sonnet-4-5","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":100,"output_tokens":1}}}`+"\n", i, i, i)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range quick([][]string{{"show"}, {"import"}, {"replay", "--quiet", "--policy", "none"}}, 1) {
		peak, exit, said := runMeasured(t, furl, append(args, name)...)
		t.Logf("%s: peak %d MB", args[0], peak>>20)
		if exit != 0 || peak > recordingMark {
			t.Errorf("%s: exit %d, peak %d MB, want 0 and at most %d MB\n%s", args[0], exit, peak>>20, recordingMark>>20, said)
		}
	}
}
