package replay

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

var update = flag.Bool("update", false, "write testdata/requests.golden anew")

// golden compares the requests that a replay builds with those of an earlier
// version. A line for each recording, window and policy has the number of requests,
// a digest of the bytes of all messages, and a digest of all plans: what each
// reduction covers and how it is shown, without texts. A change of wording changes
// the first digest only.
type golden struct {
	t     *testing.T
	file  string
	want  map[string]string // by the beginning of the line
	lines []string
	mu    sync.Mutex
	runs  map[*run]*requestDigest
}

// requestDigest accumulates what one run sends.
type requestDigest struct {
	id            string // of the session
	policy        string
	window        int
	requests      int
	bodies, plans hash.Hash
	messages      map[uint64][sha256.Size]byte // by rendered.id
}

func newGolden(t *testing.T, file string) *golden {
	t.Helper()
	g := &golden{t: t, file: file, want: make(map[string]string), runs: make(map[*run]*requestDigest)}
	text, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		key, digests, _ := strings.Cut(strings.TrimSpace(line), ": ")
		g.want[key] = digests
	}
	return g
}

// sent is Options.sent.
func (g *golden) sent(r *run, plan *furl.Plan) {
	g.mu.Lock()
	d := g.runs[r]
	if d == nil {
		d = &requestDigest{
			id: r.s.id, policy: r.policy.Name(), window: r.window,
			bodies: sha256.New(), plans: sha256.New(), messages: make(map[uint64][sha256.Size]byte),
		}
		g.runs[r] = d
	}
	g.mu.Unlock()
	d.requests++
	d.request(r.list)
	d.plan(r.log.State(), plan)
}

func (d *requestDigest) request(list []rendered) {
	number(d.bodies, len(list))
	for i := range list {
		sum, ok := d.messages[list[i].id]
		if !ok {
			h := sha256.New()
			for j := range list[i].messages {
				raw := list[i].messages[j].Raw
				number(h, len(raw))
				h.Write(raw)
			}
			h.Sum(sum[:0])
			d.messages[list[i].id] = sum
		}
		d.bodies.Write(sum[:])
	}
}

func (d *requestDigest) plan(state *furl.State, plan *furl.Plan) {
	number(d.plans, len(plan.Reductions))
	place := func(p furl.Pos) {
		at, _ := state.Find(p.Msg)
		number(d.plans, at)
		number(d.plans, p.Block)
	}
	for _, red := range plan.Reductions {
		fmt.Fprintf(d.plans, "%s %d ", red.Stage, len(red.Items))
		for _, item := range red.Items {
			fmt.Fprintf(d.plans, "%T %d ", item.Show, len(item.Spans))
			for _, span := range item.Spans {
				place(span.First)
				place(span.Last)
			}
		}
	}
}

func number(h hash.Hash, n int) {
	h.Write(binary.AppendUvarint(nil, uint64(n)))
}

// compare compares the requests of a recording's runs with the golden file.
func (g *golden) compare(rec *transcript.Recording) {
	g.t.Helper()
	type key struct {
		policy string
		window int
	}
	groups := make(map[key][]*requestDigest)
	for _, d := range g.runs {
		k := key{d.policy, d.window}
		groups[k] = append(groups[k], d)
	}
	clear(g.runs)
	name := filepath.Base(filepath.Dir(rec.File)) + "/" + filepath.Base(rec.File)
	for k, list := range groups {
		slices.SortFunc(list, func(a, b *requestDigest) int {
			return cmp.Or(cmp.Compare(a.id, b.id), bytes.Compare(a.bodies.Sum(nil), b.bodies.Sum(nil)))
		})
		bodies, plans, requests := sha256.New(), sha256.New(), 0
		for _, d := range list {
			bodies.Write(d.bodies.Sum(nil))
			plans.Write(d.plans.Sum(nil))
			requests += d.requests
		}
		id := fmt.Sprintf("%s %d %s", name, k.window, k.policy)
		got := fmt.Sprintf("%d requests, bodies %x, plans %x", requests, bodies.Sum(nil)[:8], plans.Sum(nil)[:8])
		g.lines = append(g.lines, id+": "+got+"\n")
		if want, ok := g.want[id]; ok && want != got && !*update {
			g.t.Errorf("%s:\n got %s\nwant %s", id, got, want)
		}
	}
}

// finish writes the golden file with -update. Otherwise, if all windows were run, it
// checks that no line of a recording is missing.
func (g *golden) finish(all bool) {
	g.t.Helper()
	slices.Sort(g.lines)
	if *update {
		if err := os.WriteFile(g.file, []byte(strings.Join(g.lines, "")), 0o666); err != nil {
			g.t.Fatal(err)
		}
		return
	}
	got, files := make(map[string]bool), make(map[string]bool)
	for _, line := range g.lines {
		id, _, _ := strings.Cut(line, ": ")
		file, _, _ := strings.Cut(id, " ")
		got[id], files[file] = true, true
	}
	for id := range g.want {
		if file, _, _ := strings.Cut(id, " "); all && files[file] && !got[id] {
			g.t.Errorf("%s: not replayed", id)
		}
	}
}
