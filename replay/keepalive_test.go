package replay

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/transcript"
)

// paused is a session with a prompt of some 20,000 tokens and a pause of each length
// before a request.
func paused(t *testing.T, pauses ...string) *transcript.Recording {
	b := newTape(t, "toy", furl.FormatAnthropic)
	b.user(words(20_000))
	b.asks("0s")
	b.says("ok")
	for _, at := range pauses {
		b.user("go on")
		b.asks(at)
		b.says("ok")
	}
	return b.recording()
}

// Pings are sent when they are due, at most so many in a pause, and also after the
// last request, since nothing says that it is the last one. They are part of the cost,
// and keep the cache alive.
func TestKeepAlive(t *testing.T) {
	tests := []struct {
		name   string
		rec    *transcript.Recording
		limit  int
		pings  int
		saves  bool // compared with the same policy without pings
		breaks int
	}{
		{"no pause", paused(t, "1m", "2m"), 1, 1, false, 0},
		{"a pause that one ping bridges", paused(t, "6m", "7m"), 1, 2, true, 0},
		{"a pause that ends before the cache expires", paused(t, "4m40s"), 1, 2, false, 0},
		{"a pause that ends before the ping", paused(t, "4m29s"), 1, 1, false, 0},
		{"a pause that takes two pings", paused(t, "13m", "14m"), 2, 4, true, 0},
		{"and only one is allowed", paused(t, "13m", "14m"), 1, 2, false, 0},
		{"a pause that is too long", paused(t, "10h"), 9, 4, false, 0},
	}
	for _, tt := range tests {
		r := play(t, Options{Windows: []int{100_000}, Candidates: presets(t, "none"), KeepAlive: tt.limit}, tt.rec).Totals
		if len(r) != 2 || r[0].Policy != "none" || r[1].Policy != "none+keep-alive" {
			t.Fatalf("%s: results %+v", tt.name, r)
		}
		without, with := r[0], r[1]
		if without.Pings != 0 || with.Pings != tt.pings {
			t.Errorf("%s: %d pings, want %d, and %d without keep-alive, want 0", tt.name, with.Pings, tt.pings, without.Pings)
		}
		if saves := *with.Cost < *without.Cost; saves != tt.saves {
			t.Errorf("%s: costs $%.6f, without pings $%.6f", tt.name, *with.Cost, *without.Cost)
		}
		if math.Abs(with.PingCost-with.Split.Own) > 1e-12 || with.PingCost <= 0 || with.CacheBreaks != tt.breaks {
			t.Errorf("%s: pings cost $%.6f, own calls $%.6f, %d cache breaks", tt.name, with.PingCost, with.Split.Own, with.CacheBreaks)
		}
	}
}

// Models and formats without breakpoints get no pings, nor do recordings without
// times.
func TestKeepAliveNotSupported(t *testing.T) {
	chat := newTape(t, "toy", furl.FormatChat)
	chat.user(words(20_000))
	chat.asks("0s")
	timeless := newTape(t, "toy", furl.FormatAnthropic)
	timeless.at = time.Time{}
	timeless.user(words(20_000))
	timeless.add(&furl.Exchange{Model: "toy"})
	small := newTape(t, "toy", furl.FormatAnthropic)
	small.user(words(2_000))
	small.asks("0s")
	for name, b := range map[string]*tape{"chat": chat, "no times": timeless, "a small prompt": small} {
		r := play(t, Options{Windows: []int{100_000}, Candidates: presets(t, "none"), KeepAlive: 4}, b.recording()).Totals[1]
		if r.Pings != 0 {
			t.Errorf("%s: %d pings", name, r.Pings)
		}
	}
}

// What comes after a request does not change the pings before it.
func TestKeepAliveWithoutLookAhead(t *testing.T) {
	short := play(t, Options{Windows: []int{100_000}, Candidates: presets(t, "none"), KeepAlive: 2}, paused(t, "13m")).Totals[1]
	long := play(t, Options{Windows: []int{100_000}, Candidates: presets(t, "none"), KeepAlive: 2}, paused(t, "13m", "14m", "30m")).Totals[1]
	if short.Pings != 4 || long.Pings != 6 {
		t.Errorf("%d and %d pings, want 4 and 6", short.Pings, long.Pings)
	}
}

func TestKeepAliveNote(t *testing.T) {
	rep := play(t, Options{Windows: []int{100_000}, Candidates: presets(t, "none"), KeepAlive: 2}, paused(t, "13m"))
	if !slices.ContainsFunc(rep.Notes, func(n string) bool {
		return strings.HasPrefix(n, "Keep-alive: at most 2 pings in a pause; the cost includes them: as recorded $") && strings.HasSuffix(n, " for 4 pings.")
	}) {
		t.Errorf("notes %q", rep.Notes)
	}
	for _, n := range play(t, Options{Windows: []int{100_000}, Candidates: presets(t, "none")}, paused(t, "13m")).Notes {
		if strings.HasPrefix(n, "Keep-alive") {
			t.Errorf("a note without pings: %s", n)
		}
	}
}
