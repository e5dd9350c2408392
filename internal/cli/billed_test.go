package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/internal/cli"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/web"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sqlite"
)

// What a recording was billed is the same on all surfaces: in a replay of the file, in furl
// usage of it, and of its imported sessions in furl status, show, stats and usage, the API, the
// page, and a replay of what furl exports of them.
func TestBilledEverywhere(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FURL_CONFIG", filepath.Join(dir, "none.yaml"))
	if err := os.WriteFile(filepath.Join(dir, "none.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../transcript/testdata/*.json*")
	if err != nil || len(files) < 50 {
		t.Fatal(files, err)
	}
	if os.Getenv(recordings.Env) != "" {
		files = append(files, recordings.Files(t, "entire-cli/*.jsonl.gz", "agentv/*.jsonl.gz")...)
	}
	if testing.Short() || raceDetector { // a few of each kind
		few := files[:0:0]
		for i := 0; i < len(files); i += 9 {
			few = append(few, files[i])
		}
		files = few
	}
	run := func(file string, args ...string) []byte {
		var out, notes bytes.Buffer
		if code := cli.Main(args, nil, strings.NewReader(""), &out, &notes); code != 0 && out.Len() == 0 {
			t.Fatalf("%s: furl %s: code %d: %s", file, strings.Join(args, " "), code, &notes)
		}
		return out.Bytes()
	}
	type replayed struct{ Recordings []struct{ Billed *float64 } }
	billedIn := func(data []byte) (sum float64) {
		var r replayed
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		for _, rec := range r.Recordings {
			if rec.Billed != nil {
				sum += *rec.Billed
			}
		}
		return sum
	}
	known := 0
	for i, file := range files {
		if strings.HasSuffix(file, ".want") || strings.Contains(file, "broken") || strings.Contains(file, "furl-v1") {
			continue // furl-v1 is a fork, whose first requests its original counts
		}
		store := filepath.Join(dir, "furl"+string(rune('a'+i%26))+".db")
		for _, end := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(store + end); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		want := billedIn(run(file, "replay", file, "--policy", "none", "--json"))
		var status, stored, shown, inAPI, listed float64
		var ids []string
		dec := json.NewDecoder(bytes.NewReader(run(file, "import", "--json", "--store", store, file)))
		for {
			var lines struct{ Imported []struct{ Session string } }
			if err := dec.Decode(&lines); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, s := range lines.Imported {
				var st struct{ Billed *float64 }
				if err := json.Unmarshal(run(file, "status", "--format", "json", "--store", store, "--session", s.Session), &st); err != nil {
					t.Fatal(err)
				}
				if st.Billed != nil {
					status += *st.Billed
				}
				ids = append(ids, s.Session)
				var one struct{ Billed *float64 }
				if err := json.Unmarshal(run(file, "show", s.Session, "--json", "--store", store), &one); err != nil {
					t.Fatal(err)
				}
				if one.Billed != nil {
					shown += *one.Billed
				}
				exported := filepath.Join(dir, "exported.jsonl")
				if err := os.WriteFile(exported, run(file, "export", s.Session, "--store", store), 0o600); err != nil {
					t.Fatal(err)
				}
				stored += billedIn(run(file, "replay", exported, "--policy", "none", "--json"))
			}
		}
		if want > 0 {
			known++
		}
		get := servedBy(t, store)
		for _, id := range ids {
			var one struct{ Billed *float64 }
			if err := json.Unmarshal(get("/furl/v1/sessions/"+id), &one); err != nil {
				t.Fatal(err)
			}
			if one.Billed == nil {
				continue
			}
			inAPI += *one.Billed
			if page := get("/furl/sessions/" + id + "/money"); !showsAmount(page, *one.Billed) {
				t.Errorf("%s: the page of %s lacks $%v", file, id, *one.Billed)
			}
		}
		var list struct{ Sessions []struct{ Billed *float64 } }
		if err := json.Unmarshal(get("/furl/v1/sessions?billed=true&limit=1000"), &list); err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Sessions {
			if s.Billed != nil {
				listed += *s.Billed
			}
		}
		var stats struct{ Billed float64 }
		var used, usedStored struct{ Total struct{ Cost float64 } }
		for args, to := range map[string]any{
			"stats --json --store " + store: &stats, "usage --json --no-index " + file: &used, "usage --json --from store --store " + store: &usedStored,
		} {
			if err := json.Unmarshal(run(file, strings.Fields(args)...), to); err != nil {
				t.Fatal(err)
			}
		}
		for where, got := range map[string]float64{
			"furl status": status, "a replay of the exported sessions": stored, "furl show": shown, "the API": inAPI, "the API's list": listed,
			"furl stats": stats.Billed, "furl usage of the file": used.Total.Cost, "furl usage of the store": usedStored.Total.Cost,
		} {
			if math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: a replay says $%v were billed, %s $%v", file, want, where, got)
			}
		}
	}
	if known < 20 && !testing.Short() && !raceDetector {
		t.Errorf("only %d recordings have a usage with a price", known)
	}
}

var amounts = regexp.MustCompile(`\$[\d,]+(\.\d+)?`)

// showsAmount reports whether a page has an amount, to as many digits as it shows.
func showsAmount(page []byte, amount float64) bool {
	for _, text := range amounts.FindAllString(string(page), -1) {
		text = strings.ReplaceAll(text[1:], ",", "")
		_, digits, _ := strings.Cut(text, ".")
		shown, err := strconv.ParseFloat(text, 64)
		if err == nil && math.Abs(shown-amount) <= 0.5001*math.Pow10(-len(digits)) {
			return true
		}
	}
	return amount < 0.005 && bytes.Contains(page, []byte("less than $0.01"))
}

// servedBy returns what furl serve responds with on a store.
func servedBy(t *testing.T, place string) func(path string) []byte {
	t.Helper()
	store, err := sqlite.Open(place, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	all, err := session.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(all, gateway.Upstreams{}, &gateway.Options{Page: web.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return func(path string) []byte {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "127.0.0.1"
		g.ServeHTTP(w, r)
		if w.Code != 200 {
			t.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
		}
		return w.Body.Bytes()
	}
}
