// Package quota reads what responses of providers say about the limits of an account: the
// windows of a plan, such as five hours and a week, and the rates of an API key. A Book
// keeps the newest of each account, and which sessions have used how much.
package quota

import (
	"cmp"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/furlhq/furl/storage"
)

// Snapshot is what one response says.
type Snapshot struct {
	At time.Time `json:"at"`
	// Status is allowed, allowed_warning or rejected, Claim the window that it is about,
	// such as five_hour. Both are "" if the provider does not say.
	Status string `json:"status,omitempty"`
	Claim  string `json:"claim,omitempty"`
	// Fallback reports that the provider may answer with another model at the limit, and
	// Overage whether use beyond the plan is allowed: allowed, allowed_warning or
	// rejected, with the reason.
	Fallback      bool     `json:"fallback,omitempty"`
	Overage       string   `json:"overage,omitempty"`
	OverageReason string   `json:"overage_reason,omitempty"`
	Windows       []Window `json:"windows"`
}

// Window is a limit over a time.
type Window = storage.PlanWindow

// Bounds of what headers can fill: providers may be anything.
const (
	maxWindows = 16
	maxWord    = 40
	maxUsed    = 100
)

var word = regexp.MustCompile(`^[a-z0-9_]{1,40}$`)

// wordOf returns a header's value if it is a word.
func wordOf(h http.Header, name string) string {
	if v := h.Get(name); word.MatchString(v) {
		return v
	}
	return ""
}

// number reads a number and the step between its values, by its decimals.
func number(s string) (value, step float64, ok bool) {
	s = strings.TrimSpace(s)
	if len(s) > maxWord {
		return 0, 0, false
	}
	value, err := strconv.ParseFloat(s, 64)
	if err != nil || !(value >= 0 && value <= math.MaxInt32*100) {
		return 0, 0, false
	}
	_, decimals, _ := strings.Cut(s, ".")
	return value, math.Pow10(-min(len(decimals), 6)), true
}

// at reads a time in seconds since 1970.
func at(s string) time.Time {
	if n, _, ok := number(s); ok && n > 0 {
		return time.Unix(int64(n), 0).UTC()
	}
	return time.Time{}
}

// The windows of Anthropic's plans as Claude Code 2.1.332 reads them, with their names in
// the headers.
var unified = []Window{
	{Name: "5h", Minutes: 300}, {Name: "7d", Minutes: 10080}, {Name: "7d_oi", Minutes: 10080}, {Name: "overage"},
}

// codex are headers of the backend of Codex for logins with ChatGPT, for one of several
// limits, as Codex 0.171 reads them. x-codex-primary-used-percent is the usual limit.
var codex = regexp.MustCompile(`^X-Codex-(?:([A-Za-z0-9-]{1,30})-)?(Primary|Secondary)-Used-Percent$`)

// Read returns what the header of a response says, nil if that is nothing.
func Read(h http.Header, now time.Time) *Snapshot {
	const anthropic = "Anthropic-Ratelimit-Unified-"
	s := &Snapshot{
		At: now, Status: wordOf(h, anthropic+"Status"), Claim: wordOf(h, anthropic+"Representative-Claim"), Fallback: h.Get(anthropic+"Fallback") == "available",
		Overage: wordOf(h, anthropic+"Overage-Status"), OverageReason: wordOf(h, anthropic+"Overage-Disabled-Reason"),
	}
	for _, w := range unified {
		used, step, ok := number(h.Get(anthropic + w.Name + "-Utilization"))
		if !ok || used > maxUsed {
			continue
		}
		// "0" and "0.1" have the steps of "0.11".
		w.Used, w.Step, w.Status, w.Resets = used, min(step, 0.01), wordOf(h, anthropic+w.Name+"-Status"), at(h.Get(anthropic+w.Name+"-Reset"))
		s.Windows = append(s.Windows, w)
	}
	s.Windows = append(s.Windows, codexWindows(h, now)...)
	s.Windows = append(s.Windows, rates(h, now)...)
	if len(s.Windows) == 0 && s.Status == "" {
		return nil
	}
	s.Windows = s.Windows[:min(len(s.Windows), maxWindows)]
	return s
}

func codexWindows(h http.Header, now time.Time) (list []Window) {
	for name := range h {
		m := codex.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		used, step, ok := number(h.Get(name))
		if !ok || used > 100*maxUsed {
			continue
		}
		prefix := strings.TrimSuffix(name, "Used-Percent")
		w := Window{Name: strings.ToLower(m[2]), Used: used / 100, Step: step / 100, Resets: at(h.Get(prefix + "Reset-At"))}
		if n, _, ok := number(h.Get(prefix + "Reset-After-Seconds")); ok && w.Resets.IsZero() {
			w.Resets = now.Add(time.Duration(n) * time.Second).UTC().Truncate(time.Second)
		}
		if n, _, ok := number(h.Get(prefix + "Window-Minutes")); ok && n > 0 {
			w.Minutes = int(min(n, math.MaxInt32))
			w.Name = lengthName(w.Minutes)
		}
		if m[1] != "" {
			w.Name = strings.ToLower(m[1]) + " " + w.Name
		}
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b Window) int { return cmp.Or(cmp.Compare(a.Minutes, b.Minutes), cmp.Compare(a.Name, b.Name)) })
	return list
}

// lengthName is such as 5h, 7d or 90m.
func lengthName(minutes int) string {
	switch {
	case minutes%(24*60) == 0:
		return strconv.Itoa(minutes/(24*60)) + "d"
	case minutes%60 == 0:
		return strconv.Itoa(minutes/60) + "h"
	}
	return strconv.Itoa(minutes) + "m"
}

// rates reads the limits of API keys: OpenAI's x-ratelimit-* with durations, Anthropic's
// anthropic-ratelimit-* with times.
func rates(h http.Header, now time.Time) (list []Window) {
	for _, name := range []string{"requests", "tokens", "input-tokens", "output-tokens"} {
		for _, of := range [][3]string{
			{"X-Ratelimit-Limit-" + name, "X-Ratelimit-Remaining-" + name, "X-Ratelimit-Reset-" + name},
			{"Anthropic-Ratelimit-" + name + "-Limit", "Anthropic-Ratelimit-" + name + "-Remaining", "Anthropic-Ratelimit-" + name + "-Reset"},
		} {
			limit, _, ok := number(h.Get(of[0]))
			remaining, _, known := number(h.Get(of[1]))
			if !ok || !known || limit == 0 || remaining > limit {
				continue
			}
			w := Window{Name: name, Used: 1 - remaining/limit, Step: 1 / limit}
			if reset := h.Get(of[2]); len(reset) <= maxWord {
				if d, err := time.ParseDuration(reset); err == nil && d >= 0 {
					w.Resets = now.Add(d).UTC()
				} else if t, err := time.Parse(time.RFC3339, reset); err == nil {
					w.Resets = t.UTC()
				}
			}
			list = append(list, w)
		}
	}
	return list
}
