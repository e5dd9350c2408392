package replay

import (
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/transcript"
)

// Instructions and tools get entries of one hour from the first request after a pause
// on. The next pause finds them in the cache, and the pings of a pause pay less.
func TestHourCache(t *testing.T) {
	session := func(format furl.Format, pauses ...string) *transcript.Recording {
		b := newTape(t, "toy-hour", format)
		b.user("go")
		b.asks("0s", furl.Usage{CacheWrite: 30_000}) // most of it instructions
		b.says("ok")
		for _, at := range pauses {
			b.user("go on")
			b.asks(at)
			b.says("ok")
		}
		return b.recording()
	}
	for _, tt := range []struct {
		name  string
		rec   *transcript.Recording
		saves int // 1: they save, -1: they cost, 0: there are none
	}{
		{"no pause", session(furl.FormatAnthropic, "1m", "4m"), 0},
		{"a long pause", session(furl.FormatAnthropic, "2h", "2h1m"), 0},
		{"one pause", session(furl.FormatAnthropic, "10m", "11m"), -1},
		{"two pauses", session(furl.FormatAnthropic, "10m", "11m", "1h1m"), 1},
		{"a format without lifetimes of parts", session(furl.FormatChat, "10m", "20m"), 0},
	} {
		r := play(t, Options{Windows: []int{100_000}, Candidates: presets(t, "none"), HourCache: protocol.HourAlways}, tt.rec).Totals
		if len(r) != 2 || r[1].Policy != "none+cache-1h" {
			t.Fatalf("%s: results %+v", tt.name, r)
		}
		if saved := *r[0].Cost - *r[1].Cost; saved > 0 != (tt.saves > 0) || saved < 0 != (tt.saves < 0) {
			t.Errorf("%s: costs $%.6f, without $%.6f", tt.name, *r[1].Cost, *r[0].Cost)
		}
	}
	r := play(t, Options{Windows: []int{100_000}, Candidates: presets(t, "none"), HourCache: protocol.HourAlways, KeepAlive: 4}, session(furl.FormatAnthropic, "6m", "12m", "18m")).Totals
	var names []string
	for i := range r {
		names = append(names, r[i].Policy)
	}
	if want := []string{"none", "none+keep-alive", "none+cache-1h", "none+cache-1h+keep-alive"}; !slices.Equal(names, want) {
		t.Fatalf("policies %q, want %q", names, want)
	}
	if r[2].Pings != 0 || r[3].Pings >= r[1].Pings {
		t.Errorf("%d pings with entries of one hour, %d without", r[3].Pings, r[1].Pings)
	}
}

// A report names the settings that keep the cache if there are pauses and no row has them.
func TestPauseNote(t *testing.T) {
	b := newTape(t, "toy-hour", furl.FormatAnthropic)
	b.user("go")
	b.asks("0s")
	b.says("ok")
	for _, at := range []string{"6m", "7m", "2h7m", "2h57m"} {
		b.user("go on")
		b.asks(at)
		b.says("ok")
	}
	rec := b.recording()
	o := Options{Windows: []int{100_000}, Candidates: presets(t, "none")}
	const want = "2 pauses of 5 to 60 minutes, "
	noted := func(o Options) bool {
		return slices.ContainsFunc(play(t, o, rec).Notes, func(n string) bool { return strings.HasPrefix(n, want) })
	}
	if !noted(o) {
		t.Errorf("notes %q, want %q", play(t, o, rec).Notes, want)
	}
	if o.HourCache = protocol.HourAlways; noted(o) {
		t.Error("a note although a row has the setting")
	}
}
