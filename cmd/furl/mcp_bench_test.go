package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/furlhq/furl/internal/dev/recordings"
)

// benchQuestions is how many questions of each kind BenchmarkMCP asks.
const benchQuestions = 100

// BenchmarkMCP measures furl mcp --follow with 200 MB of recordings, or FURL_MCP_BYTES:
// the first answer and answers during the first import, the import, and then
// memory_search, for an agent without a folder and for one in the folder of some of the
// recordings.
//
// FURL_RECORDINGS names the recordings that are copied (make bench-mcp).
func BenchmarkMCP(b *testing.B) {
	size := int64(200_000_000)
	if text := os.Getenv("FURL_MCP_BYTES"); text != "" {
		var err error
		if size, err = strconv.ParseInt(text, 10, 64); err != nil {
			b.Fatal(err)
		}
	}
	from := sources(b, recordings.Dir(b))
	asked := questions(from, 2, benchQuestions)
	for b.Loop() {
		home, folder := b.TempDir(), b.TempDir()
		files, written := writeCopies(b, from, folder, size)
		b.Logf("%d files, %d bytes; load %s", files, written, load())
		importing := benchImport(b, home, folder, asked)
		for _, project := range []string{"", importing.project} {
			cs := mcpOver(b, furlCommand(home, "mcp", "--project", cmp.Or(project, home)))
			times := benchSearch(b, cs, asked)
			name := "all"
			if project != "" {
				name = "project"
			}
			b.ReportMetric(ms(quantile(times, 0.5)), name+"-p50-ms")
			b.ReportMetric(ms(quantile(times, 0.99)), name+"-p99-ms")
			cs.Close()
		}
		b.ReportMetric(ms(importing.first), "first-ms")
		b.ReportMetric(ms(quantile(importing.during, 0.99)), "during-p99-ms")
		b.ReportMetric(importing.took.Seconds(), "import-s")
	}
}

// benchImported is what was measured during the first import.
type benchImported struct {
	first, took time.Duration
	during      []time.Duration // searches while it ran
	project     string          // the folder of a session
}

// benchImport starts furl mcp on an empty store and searches until everything is
// imported.
func benchImport(b *testing.B, home, folder string, asked []question) (out benchImported) {
	begin := time.Now()
	cs := mcpOver(b, furlCommand(home, "mcp", "--follow", "--folder", folder))
	defer cs.Close()
	for i := 0; ; i++ {
		at := time.Now()
		text := mcpSays(b, cs, "memory_search", map[string]any{"query": asked[i%len(asked)].text})
		took := time.Since(at)
		if i == 0 {
			out.first = time.Since(begin)
		}
		if !strings.Contains(text, stillImporting) {
			out.took = time.Since(begin)
			break
		}
		out.during = append(out.during, took)
		time.Sleep(250 * time.Millisecond) // an agent does not search all the time
	}
	b.Logf("the first answer after %v; imported after %v; %d searches meanwhile: p50 %v, p99 %v, at most %v; load %s", out.first, out.took,
		len(out.during), quantile(out.during, 0.5), quantile(out.during, 0.99), quantile(out.during, 1), load())
	out.project = commonFolder(b, cs)
	return out
}

// aFolder matches the folder in a line of session_list.
var aFolder = regexp.MustCompile(`, (/[^,]+), \d{4}-`)

// commonFolder returns the folder of most sessions.
func commonFolder(b *testing.B, cs *mcp.ClientSession) (best string) {
	count := make(map[string]int)
	for from := 0; ; from += 50 {
		text := mcpSays(b, cs, "session_list", map[string]any{"project": "all", "limit": 50, "cursor": strconv.Itoa(from)})
		for _, m := range aFolder.FindAllStringSubmatch(text, -1) {
			if count[m[1]]++; count[m[1]] > count[best] {
				best = m[1]
			}
		}
		if !strings.Contains(text, "more: pass cursor") {
			b.Logf("%d sessions are of the folder %s", count[best], best)
			return best
		}
	}
}

// benchSearch asks the questions and returns how long the answers took, sorted.
func benchSearch(b *testing.B, cs *mcp.ClientSession, asked []question) (all []time.Duration) {
	mcpSays(b, cs, "memory_search", map[string]any{"query": "the first search opens the store"})
	of := make(map[string][]time.Duration)
	found := make(map[string]int)
	slowest, worst := time.Duration(0), question{}
	for _, q := range asked {
		at := time.Now()
		text := mcpSays(b, cs, "memory_search", map[string]any{"query": q.text})
		took := time.Since(at)
		all, of[q.kind] = append(all, took), append(of[q.kind], took)
		if took > slowest {
			slowest, worst = took, q
		}
		if strings.Contains(text, "furl:") {
			found[q.kind]++
		}
	}
	for _, kind := range []string{"rare", "common", "name", "phrase", "miss"} {
		slices.Sort(of[kind])
		b.Logf("%-7s %d questions, %d with results: p50 %v, p99 %v, at most %v", kind, len(of[kind]), found[kind], quantile(of[kind], 0.5), quantile(of[kind], 0.99), quantile(of[kind], 1))
	}
	slices.Sort(all)
	b.Logf("all     %d questions: p50 %v, p99 %v, at most %v (%s %q); load %s", len(all), quantile(all, 0.5), quantile(all, 0.99), slowest, worst.kind, worst.text, load())
	return all
}

// quantile returns a quantile of durations, which it sorts.
func quantile(times []time.Duration, share float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	at := int(share*float64(len(times))+0.5) - 1
	return times[min(max(at, 0), len(times)-1)].Round(10 * time.Microsecond)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// load returns the load averages of the machine, if it has such.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(text))
	return fmt.Sprint(fields[:min(3, len(fields))])
}
