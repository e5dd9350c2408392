package replay

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
)

// Report is the outcome of a replay. Its JSON form is what `furl replay
// --json` prints; money is in US dollars, null where no price is known.
type Report struct {
	Recordings []RecordingReport `json:"recordings"`
	Totals     []Result          `json:"totals"`
	// Unknown are the files of a folder that no format was recognised in.
	Unknown []string `json:"unknown_files,omitempty"`
	// Notes say what a reader must know to trust the numbers: models
	// without prices, assumptions made.
	Notes []string `json:"notes,omitempty"`
	// Tuning is set where a setting was to be chosen.
	Tuning *Tuning `json:"tuning,omitempty"`
}

// RecordingReport is what one file gave.
type RecordingReport struct {
	File     string `json:"file"`
	Format   string `json:"format"`
	Agent    string `json:"agent"`
	Model    string `json:"model"`
	Messages int    `json:"messages"`
	Requests int    `json:"requests"`
	// SkippedRecords could not be read; Skipped says where and why.
	SkippedRecords int      `json:"skipped_records"`
	Skipped        []string `json:"skipped,omitempty"`
	// ReportedPeak is the provider's own count of the largest prompt, 0 if
	// none was recorded; EstimatedPeak is furl's, made before each request.
	ReportedPeak  int      `json:"reported_peak_tokens"`
	EstimatedPeak int      `json:"estimated_peak_tokens"`
	Notes         []string `json:"notes,omitempty"`
	Results       []Result `json:"results"`

	unknown []string // models
	asked   bool     // for a summary
}

// Result is what one policy made of one recording at one window, or of all.
type Result struct {
	Policy string `json:"policy"`
	// Window in tokens; 0: each model's own.
	Window   int `json:"window"`
	Requests int `json:"requests"`
	// TokensSent sums the prompts of all requests, Peak is the largest.
	TokensSent int `json:"tokens_sent"`
	Peak       int `json:"peak_tokens"`
	// Overflows counts requests above the window that could have been made
	// to fit; Impossible those that could not: what must be sent is larger.
	// Backstops counts reductions beyond a policy's own keeps.
	Overflows  int `json:"overflows"`
	Impossible int `json:"impossible"`
	Backstops  int `json:"backstops"`
	// Cost of all requests that could be sent, output included; null where
	// no price is known.
	Cost  *float64  `json:"cost"`
	Split CostSplit `json:"cost_split"`
	// CostRatio is input cost, own calls included, over that of policy
	// none, on the requests that none could have sent. In tokens where no
	// price is known, null where nothing could be compared.
	CostRatio *float64 `json:"cost_ratio"`
	// CacheBreaks counts requests that did not go on where the one before
	// ended, while the cache was warm.
	CacheBreaks int `json:"cache_breaks"`
	Reductions  int `json:"reductions"`
	// References are names in a reply that stood in the request's prompt,
	// as sent by policy none, in a tool result or in words of the user and
	// nowhere in the assistant's own; Own are the others. Kept are those
	// still in the view; Recallable those that are not, and that a search
	// of what is hidden finds among its first five.
	References           int `json:"references"`
	ReferencesKept       int `json:"references_kept"`
	ReferencesRecallable int `json:"references_recallable"`
	OwnReferences        int `json:"own_references"`
	OwnReferencesKept    int `json:"own_references_kept"`
	OwnRecallable        int `json:"own_references_recallable"`
	QuotedLines          int `json:"quoted_lines"`
	QuotedLinesKept      int `json:"quoted_lines_kept"`
	Refetches            int `json:"refetches"`
	InvalidRequests      int `json:"invalid_requests"`
	// FirstRefusal is the provider's text for the first invalid request.
	FirstRefusal string `json:"first_refusal,omitempty"`

	// Series is the context over time, for pictures; one per session.
	Series []Series `json:"-"`

	// Sums over the requests that policy none could have sent, for ratios.
	dollars, noneDollars float64
	tokens, noneTokens   int
	priced               bool
}

// CostSplit splits a bill by class, in US dollars.
type CostSplit struct {
	CacheWrite float64 `json:"cache_write"`
	CacheRead  float64 `json:"cache_read"`
	Fresh      float64 `json:"fresh"`
	Output     float64 `json:"output"`
	// Own is what the policy's own model calls cost, input and output.
	Own float64 `json:"own"`
}

// Input is the part of the bill that policies change.
func (c CostSplit) Input() float64 { return c.CacheWrite + c.CacheRead + c.Fresh + c.Own }

// Series is one session's context over time under one policy.
type Series struct {
	Session string
	Window  int // the largest the requests had to fit, in tokens; 0: unknown
	Points  []Point
}

// Point is one request.
type Point struct {
	At     time.Time
	Tokens int // prompt size
	Read   int // of it, read from the cache
	// Reduced names the stages that acted before this request.
	Reduced []string
	// Freed is what they freed, in tokens.
	Freed int
	// Refused: the provider would not have taken it.
	Refused bool
}

// bill is the input price of a prompt of a model, by class. Where writing to
// the cache costs what fresh input does, as with caches that fill by
// themselves, what was not read is fresh.
func bill(m *furl.Model, s split) CostSplit {
	p := price.For(m, s.prompt())
	if p.CacheWrite == 0 || p.CacheWrite == p.Input && !m.Caching.Explicit {
		s.Fresh, s.Write = s.Fresh+s.Write, 0
	}
	const million = 1e6
	return CostSplit{
		CacheWrite: float64(s.Write) * p.CacheWrite / million,
		CacheRead:  float64(s.Read) * p.CacheRead / million,
		Fresh:      float64(s.Fresh) * p.Input / million,
	}
}

func (c *CostSplit) add(d CostSplit) {
	c.CacheWrite += d.CacheWrite
	c.CacheRead += d.CacheRead
	c.Fresh += d.Fresh
	c.Output += d.Output
	c.Own += d.Own
}
