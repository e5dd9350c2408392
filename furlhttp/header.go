package furlhttp

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// headerPrefix is the prefix of furl's headers. They are not sent to the provider.
const headerPrefix = "X-Furl-"

// Headers of a request; see also HeaderSession.
const (
	// HeaderBypass, set to true, sends a request unchanged without recording it.
	HeaderBypass = "X-Furl-Bypass"
	// HeaderDryRun, set to true, makes a request a dry run. The response has it
	// too.
	HeaderDryRun = "X-Furl-Dry-Run"
)

// Headers of a response.
const (
	// HeaderTokensBefore and HeaderTokensAfter are the size of the prompt in
	// tokens before and after the plan.
	HeaderTokensBefore = "X-Furl-Tokens-Before"
	HeaderTokensAfter  = "X-Furl-Tokens-After"
	// HeaderReductions is the number of reductions in the plan.
	HeaderReductions = "X-Furl-Reductions"
	// HeaderPlan lists the reductions in the format of Server-Timing: the stage,
	// the tokens that it frees, and its costs and savings in US dollars if prices
	// are known.
	HeaderPlan = "X-Furl-Plan"
	// HeaderThinking is the number of thinking blocks that were removed.
	HeaderThinking = "X-Furl-Thinking-Left-Out"
	// HeaderNote is a note on a special case: why nothing was hidden, or why the
	// request was sent unchanged.
	HeaderNote = "X-Furl-Note"
)

// refusedImages starts the note on images that are too large for the provider.
const refusedImages = "the provider may refuse this request: "

// maxPlan is the largest number of reductions that HeaderPlan lists.
const maxPlan = 16

// Describe sets the headers that say what furl changed in a request, and removes those
// that the provider has set: only furl says what furl did. asked is the value of
// HeaderSession in the request, "" if none.
func Describe(h http.Header, x *session.Exchange, asked string) {
	for name := range h {
		if strings.HasPrefix(name, headerPrefix) {
			delete(h, name)
		}
	}
	if x.Session != nil && x.Session.Info().Records > 0 {
		h.Set(HeaderSession, string(x.Session.ID()))
	}
	if x.Dry {
		h.Set(HeaderDryRun, "true")
	}
	if x.Fit != nil {
		describePlan(h, x)
	}
	if x.Fit != nil && (x.Dry || len(x.Fit.Plan.Reductions) == 0) {
		if large := policy.LargeImages(x.Fit.View, x.Fit.Budget); large != "" {
			h.Set(HeaderNote, OneLine(refusedImages+large))
		}
	}
	if x.ThinkingLeftOut {
		addNote(h, "the provider refused thinking of earlier replies; the request was sent without it")
	}
	if x.Why != "" {
		h.Set(HeaderNote, OneLine(x.Why))
	}
	describeSession(h, asked)
}

// describePlan sets the headers about the plan. For a dry run they are about what
// it would hide, or why it would hide nothing.
func describePlan(h http.Header, x *session.Exchange) {
	plan := x.Fit.Plan
	h.Set(HeaderTokensBefore, strconv.Itoa(plan.Before))
	h.Set(HeaderTokensAfter, strconv.Itoa(plan.After))
	h.Set(HeaderReductions, strconv.Itoa(len(plan.Reductions)))
	if n := x.Fit.View.Dropped; n > 0 {
		h.Set(HeaderThinking, strconv.Itoa(n))
	}
	switch n := len(plan.Reductions); {
	case n > 0:
		if types := x.Fit.UnknownTypes; len(types) > 0 {
			h.Set(HeaderNote, unknownTypesNote(types))
		}
		list := make([]string, 0, min(n, maxPlan))
		for _, red := range plan.Reductions[:min(n, maxPlan)] {
			list = append(list, reductionHeader(red))
		}
		h.Set(HeaderPlan, strings.Join(list, ", "))
	case x.Fit.Budget.Window == 0:
		h.Set(HeaderNote, OneLine("unknown context window of "+x.Fit.Model+": nothing is hidden to make room; set it with --window or in a catalog"))
	case x.Dry:
		h.Set(HeaderNote, OneLine("nothing would be hidden"+reasonNothing(plan)))
	case len(x.Fit.UnknownTypes) > 0:
		h.Set(HeaderNote, unknownTypesNote(x.Fit.UnknownTypes))
	}
	if x.Fit.Assumed != "" {
		addNote(h, x.Fit.Assumed)
	}
}

// addNote adds a note after the others.
func addNote(h http.Header, note string) {
	if was := h.Get(HeaderNote); was != "" {
		note = was + "; " + note
	}
	h.Set(HeaderNote, OneLine(note))
}

// unknownTypesNote says what furl sends unchanged because it does not know the types.
func unknownTypesNote(types []string) string {
	return OneLine("furl does not know these types and never hides their steps: " + strings.Join(types, ", "))
}

// reductionHeader returns a reduction in the format of Server-Timing.
func reductionHeader(red *furl.Reduction) string {
	w := fmt.Sprintf("%s;tokens=%d", headerToken(red.Stage), red.Before-red.After)
	if c := red.Cost; c.Rewrite != 0 || c.PerRequest != 0 || c.Own != 0 {
		w += fmt.Sprintf(";rewrite=%.6f;saves=%.6f", c.Rewrite, c.PerRequest)
		if c.Own != 0 {
			w += fmt.Sprintf(";own=%.6f", c.Own)
		}
	}
	return w
}

// headerToken returns a name as a token of a header list: at most 60 letters,
// digits and the characters "-", "_" and ":".
func headerToken(name string) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == ':' {
			return r
		}
		return '_'
	}, name)
	return out[:min(len(out), 60)]
}

// reasonNothing returns the reason of a plan for hiding nothing, "" if it has none.
func reasonNothing(plan *furl.Plan) string {
	if plan.Reason != "" {
		return ": " + plan.Reason
	}
	for _, step := range plan.Steps {
		if step.Skipped != "" {
			return ": " + step.Skipped
		}
	}
	return ""
}

// describeSession adds a note if the session id of a request is invalid.
func describeSession(h http.Header, asked string) {
	if asked == "" || storage.ValidID(furl.SessionID(asked)) {
		return
	}
	note := HeaderSession + ": invalid session id ignored; ids are 1 to 128 letters, digits, dots, dashes and underscores"
	if storage.ReservedID(furl.SessionID(asked)) {
		note = HeaderSession + ": reserved session id ignored; an id cannot be latest, start with a dash, or consist of dots only"
	}
	addNote(h, note)
}

// OneLine returns a text for a header or a log line: at most 300 printable ASCII
// characters.
func OneLine(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c < ' ' || c > '~' {
			out[i] = ' '
		}
	}
	return string(bytes.TrimSpace(out[:min(len(out), 300)]))
}
