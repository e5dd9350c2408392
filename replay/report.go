package replay

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/price"
)

// Report is the outcome of a replay, in the form that furl replay --json prints.
// Costs are in US dollars, null if no price is known.
type Report struct {
	Recordings []RecordingReport `json:"recordings"`
	Totals     []Result          `json:"totals"`
	// Repeated is the number of requests that repeat those of another session and are not
	// counted again (transcript.Session.Repeated).
	Repeated int `json:"repeated_requests,omitempty"`
	// Unknown lists the files of folders that are in unknown formats.
	Unknown []string `json:"unknown_files,omitempty"`
	// Notes qualify the numbers: models without prices, assumptions.
	Notes []string `json:"notes,omitempty"`
	// ToolDiet says which tools were never called, and what they cost.
	ToolDiet *ToolDiet `json:"tool_diet,omitempty"`
	// Timing is set if Options.Timing is.
	Timing *Timing `json:"timing,omitempty"`
	// Wish has the limits of Recommended: the cheapest policy within them at the first
	// window, "" if there is none. See Choose.
	Wish        Wish   `json:"limits"`
	Recommended string `json:"recommended"`
	// Tuning is the recommended setting, if one was requested.
	Tuning *Tuning `json:"tuning,omitempty"`
}

// Choose sets Wish and Recommended.
func (r *Report) Choose(wish Wish) {
	r.Wish, r.Recommended = wish.complete(), ""
	if len(r.Totals) == 0 {
		return
	}
	if i, fits := Recommend(r.Totals, r.Totals[0].Window, wish); fits {
		r.Recommended = r.Totals[i].Policy
	}
}

// RecordingReport is the outcome for one file.
type RecordingReport struct {
	File string `json:"file"`
	// Part is the number of the part of a large file, 0 if it was replayed as a whole.
	Part int `json:"part,omitempty"`
	// Project is the folder that the agent worked in, "" if not known. If sessions of
	// the file have several, it is the first.
	Project  string `json:"project,omitempty"`
	Format   string `json:"format"`
	Agent    string `json:"agent"`
	Model    string `json:"model"`
	Messages int    `json:"messages"`
	Requests int    `json:"requests"`
	// SkippedRecords is the number of records that could not be read. Skipped
	// has the place and reason of each.
	SkippedRecords int      `json:"skipped_records"`
	Skipped        []string `json:"skipped,omitempty"`
	// Damage describes them in one line, "" if there are none.
	Damage string `json:"-"`
	// ReportedPeak is the largest prompt as the provider reported it, 0 if it
	// reported none. EstimatedPeak is the largest of furl's estimates, each
	// made before its request.
	ReportedPeak  int `json:"reported_peak_tokens"`
	EstimatedPeak int `json:"estimated_peak_tokens"`
	// Billed is what the recorded usage costs in US dollars (internal/billed), with all sub-agents and
	// compactions of the file; nil if no usage with a known price is recorded. BilledSubagents
	// is the part of sub-agents.
	Billed          *float64 `json:"billed"`
	BilledSubagents float64  `json:"billed_subagents"`
	// OutputRecorded is the recorded size of the replies in tokens. OutputEstimated has in
	// place of counts that are too small for the text the estimated ones. Some agents
	// record the count of an unfinished reply.
	OutputRecorded  int `json:"output_recorded_tokens"`
	OutputEstimated int `json:"output_estimated_tokens"`
	// SimulatedError is by what share the cost of the prompts, simulated with the cache hits
	// that the provider reported, differs from what was billed. Results have no such error
	// where a policy sends what was sent: these requests cost what was billed. It is null
	// if no usage was reported, or no price is known.
	SimulatedError *float64 `json:"simulated_error"`
	// PlanLimits are how far limits of a subscription rose between the requests, as the agent recorded it, with
	// those of sub-agents.
	PlanLimits []PlanLimit `json:"plan_limits,omitempty"`
	Notes      []string    `json:"notes,omitempty"`
	// Tools says which recorded tool definitions were never called. It is nil if
	// the recording has none.
	Tools   *ToolUse `json:"tools,omitempty"`
	Results []Result `json:"results"`
	// Compactions is the number of compactions that the agent itself made.
	// They apply under every policy.
	Compactions int `json:"-"`

	unknown []string // models without an entry in the catalogue
	pauses  int      // that entries of one hour outlive

	// What ToolDiet needs: the agent, the calls by the name of the tool, and what the prompts of policy none
	// cost, and of these the parts before the messages, in dollars.
	client       string
	calls        map[string]int
	input, fixed float64
}

// Result is the outcome of one policy and window, for one recording or all.
type Result struct {
	Policy string `json:"policy"`
	// Window is that of Options.Windows: in tokens; 0: each model's own.
	Window int `json:"-"`
	// ContextWindow is the context window of all requests in tokens; 0: some
	// differ, or it is unknown.
	ContextWindow int `json:"window,omitempty"`
	Requests      int `json:"requests"`
	// TokensSent is the sum of all prompts, Peak the largest.
	TokensSent int `json:"tokens_sent"`
	Peak       int `json:"peak_tokens"`
	// Overflows counts requests over the window that could have been reduced to
	// fit, Impossible those that could not. Backstops counts the additional
	// reductions that the window required.
	Overflows  int `json:"overflows"`
	Impossible int `json:"impossible"`
	Backstops  int `json:"backstops"`
	// Cost of all requests that fit, including output; null if no price is
	// known.
	Cost *float64 `json:"cost"`
	// CostLow and CostHigh are the limits between which the cost is with a probability of
	// 90%. They are those of the prompt cache: how often its entries were lost in the
	// recording. Requests that were sent like this cost what was billed.
	CostLow  *float64  `json:"cost_low"`
	CostHigh *float64  `json:"cost_high"`
	Split    CostSplit `json:"cost_split"`
	// Unrecorded is the part of CostSplit.Compactions that is estimated, because the agent did not
	// record the usage of its compactions. What was billed does not include it.
	Unrecorded float64 `json:"unrecorded_compactions,omitempty"`
	// OverflowCost is what the requests over the window, including their
	// output, would have cost if the provider had accepted them.
	OverflowCost float64 `json:"overflow_cost,omitempty"`
	// CostShare is Total divided by that of policy none, so that both pay for
	// the same requests. It compares tokens if no price is known, and is nil if
	// nothing was sent.
	CostShare *float64 `json:"-"`
	// PenalisedShare is CostShare with the penalty of PenalisedCostRatio.
	PenalisedShare *float64 `json:"-"`
	// CostRatio is the input cost, including the policy's own calls and the agent's compactions, divided by
	// that of policy none, over the requests that fit under both. It compares
	// tokens if no price is known, and is null if nothing could be compared.
	CostRatio *float64 `json:"cost_ratio"`
	// CacheBreaks counts requests that do not extend the previous one although
	// the cache has not expired.
	CacheBreaks int `json:"cache_breaks"`
	Reductions  int `json:"reductions"`
	// Pings is the number of requests that kept a prompt cache alive over a pause
	// (Options.KeepAlive), PingCost their cost. CostSplit.Own includes it.
	Pings    int     `json:"pings,omitempty"`
	PingCost float64 `json:"ping_cost,omitempty"`
	// HourRequests is the number of requests that asked for cache entries of one hour
	// for instructions and tools although the client did not (Options.HourCache).
	HourRequests int `json:"cache_1h_requests,omitempty"`
	// References counts identifiers in replies that were in the prompt as
	// policy none sends it: in a tool result or a user message, and in no
	// assistant message. OwnReferences counts those that were in an assistant
	// message. Kept are those still in the view. Recallable are hidden ones
	// that a search of the hidden text finds in its first five results.
	References           int `json:"references"`
	ReferencesKept       int `json:"references_kept"`
	ReferencesRecallable int `json:"references_recallable"`
	OwnReferences        int `json:"own_references"`
	OwnReferencesKept    int `json:"own_references_kept"`
	OwnRecallable        int `json:"own_references_recallable"`
	QuotedLines          int `json:"quoted_lines"`
	QuotedLinesKept      int `json:"quoted_lines_kept"`
	Refetches            int `json:"refetches"`
	// Edits counts calls that replace text of the prompt as policy none sends it.
	// An edit is blind if a line that it replaces is no longer in the view.
	Edits      int `json:"edits"`
	BlindEdits int `json:"blind_edits"`
	// EditsNotMeasured counts requests whose reply may make edits that are not in Edits: a
	// script calls tools with texts that are not in it.
	EditsNotMeasured int `json:"edits_not_measured,omitempty"`
	// PenalisedCostRatio is CostRatio if each blind edit also pays for reading the
	// text again: a request that reads the prompt from the cache, and writes the
	// result that had the line.
	PenalisedCostRatio *float64 `json:"penalised_cost_ratio"`
	InvalidRequests    int      `json:"invalid_requests"`
	// FirstRefusal is the provider's error for the first invalid request.
	FirstRefusal string `json:"first_refusal,omitempty"`

	// Series has the prompt sizes of each session, for charts.
	Series []Series `json:"-"`

	// Sums over the requests that fit under policy none too, for CostRatio.
	dollars, noneDollars float64
	tokens, noneTokens   int
	penalty              bought // of the blind edits of these requests
	// Sums over all requests, for CostShare.
	all, noneAll  bought
	allPenalty    bought
	priced        bool
	windowsDiffer bool
	summarized    bool // the policy requested summaries
	risk          risk
	reported      int  // requests with reported usage
	withoutFurl   bool // furl has hidden something in the recorded requests
}

// inWindow notes the context window of some of the requests.
func (r *Result) inWindow(tokens int, differ bool) {
	if differ || r.ContextWindow != 0 && r.ContextWindow != tokens {
		r.windowsDiffer = true
	}
	if r.ContextWindow = tokens; r.windowsDiffer {
		r.ContextWindow = 0
	}
}

// Total is the cost of all requests, including those over the window, as if the
// provider had accepted these; nil if no price is known.
func (r *Result) Total() *float64 {
	if r.Cost == nil {
		return nil
	}
	total := *r.Cost + r.OverflowCost
	return &total
}

// Recorded is Total without what is estimated because the agent did not record it: of policy none, what
// was billed. It is nil if no price is known.
func (r *Result) Recorded() *float64 {
	total := r.Total()
	if total != nil {
		*total -= r.Unrecorded
	}
	return total
}

// Unsent is the number of requests over the window.
func (r *Result) Unsent() int { return r.Overflows + r.Impossible }

// CostSplit is a cost by class, in US dollars. What the provider did in other passes for
// a request, such as an advisor's or a compaction of its own, costs the same under each
// policy: as recorded.
type CostSplit struct {
	CacheWrite float64 `json:"cache_write"`
	CacheRead  float64 `json:"cache_read"`
	Fresh      float64 `json:"fresh"`
	// Output includes the provider's own tools that a reply used, as recorded.
	Output float64 `json:"output"`
	// Own is the cost of the policy's own model calls, input and output.
	Own float64 `json:"own"`
	// Compactions is the cost of the agent's own compactions, input and output. A policy
	// whose prompt was so small that the agent would not have compacted does not pay.
	Compactions float64 `json:"compactions"`
}

// Input is the part of the cost that policies change.
func (c CostSplit) Input() float64 {
	return c.CacheWrite + c.CacheRead + c.Fresh + c.Own + c.Compactions
}

// Series is the prompt sizes of one session under one policy.
type Series struct {
	Session string
	Window  int // the largest context window of the requests, in tokens; 0: unknown
	Points  []Point
}

// Point is one request.
type Point struct {
	At     time.Time
	Tokens int // prompt size
	Read   int // tokens of the prompt that were read from the cache
	// Reduced names the stages of the reductions before this request.
	Reduced []string
	// Freed is the tokens that they removed.
	Freed int
	// Refused: the request is over the window.
	Refused bool
}

// bill returns the input cost of a prompt at a time.
func bill(m *furl.Model, s split, at time.Time) CostSplit {
	return splitOf(m, price.For(m, s.prompt(), at), furl.Usage{Input: s.Fresh, CacheRead: s.Read, CacheWrite: s.Write, CacheWrite1h: s.WriteLong})
}

// usageCost returns the cost of a reported usage at a time.
func usageCost(m *furl.Model, u furl.Usage, at time.Time) CostSplit {
	return splitOf(m, price.For(m, u.Prompt(), at), u)
}

// splitOf returns what a usage costs at these prices. With automatic caches, writing often
// costs the same as uncached input and then counts as such.
func splitOf(m *furl.Model, p furl.Prices, u furl.Usage) CostSplit {
	p = price.Complete(p)
	c := price.Split(p, u)
	if p.CacheWrite == p.Input && !m.Caching.Explicit {
		c.Fresh, c.CacheWrite = c.Fresh+c.CacheWrite, 0
	}
	return CostSplit{CacheWrite: c.CacheWrite + c.CacheWrite1h, CacheRead: c.CacheRead, Fresh: c.Fresh, Output: c.Output}
}

func (c *CostSplit) add(d CostSplit) {
	c.CacheWrite += d.CacheWrite
	c.CacheRead += d.CacheRead
	c.Fresh += d.Fresh
	c.Output += d.Output
	c.Own += d.Own
	c.Compactions += d.Compactions
}

func (c CostSplit) minus(d CostSplit) CostSplit {
	c.add(d.times(-1))
	return c
}

func (c CostSplit) times(f float64) CostSplit {
	return CostSplit{CacheWrite: f * c.CacheWrite, CacheRead: f * c.CacheRead, Fresh: f * c.Fresh, Output: f * c.Output, Own: f * c.Own, Compactions: f * c.Compactions}
}
