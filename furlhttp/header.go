package furlhttp

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// ownHeaders is how the names of furl's headers begin. They are not sent to the
// provider.
const ownHeaders = "X-Furl-"

// Headers of a request. A session is named by HeaderSession.
const (
	// HeaderBypass, set to true, has a request sent unchanged and not recorded.
	HeaderBypass = "X-Furl-Bypass"
	// HeaderDryRun, set to true, makes a request a dry run. The reply has it too.
	HeaderDryRun = "X-Furl-Dry-Run"
)

// Headers of a reply.
const (
	// HeaderTokensBefore and HeaderTokensAfter are the size of the prompt in
	// tokens, before and after the plan.
	HeaderTokensBefore = "X-Furl-Tokens-Before"
	HeaderTokensAfter  = "X-Furl-Tokens-After"
	// HeaderReductions counts the reductions of the plan.
	HeaderReductions = "X-Furl-Reductions"
	// HeaderPlan lists them, in the form of Server-Timing: the stage, the tokens
	// that it frees, and what it costs and saves in US dollars if prices are
	// known.
	HeaderPlan = "X-Furl-Plan"
	// HeaderThinking counts the blocks of thinking that were left out.
	HeaderThinking = "X-Furl-Thinking-Left-Out"
	// HeaderNote says what is unusual: why nothing was hidden, or why the
	// request was sent unchanged.
	HeaderNote = "X-Furl-Note"
)

// maxPlan bounds how many reductions HeaderPlan lists.
const maxPlan = 16

// Describe sets the headers that say what was done to a request. asked is the
// session that it names, "" if none.
func Describe(h http.Header, x *session.Exchange, asked string) {
	if x.Session != nil && x.Session.Info().Records > 0 {
		h.Set(HeaderSession, string(x.Session.ID()))
	}
	if x.Dry {
		h.Set(HeaderDryRun, "true")
	}
	if x.Fit != nil {
		describePlan(h, x)
	}
	if x.Why != "" {
		h.Set(HeaderNote, OneLine(x.Why))
	}
	describeSession(h, asked)
}

// describePlan says what the plan hides. For a dry run that is what it would
// hide, or why nothing.
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
		list := make([]string, 0, min(n, maxPlan))
		for _, red := range plan.Reductions[:min(n, maxPlan)] {
			list = append(list, reductionHeader(red))
		}
		h.Set(HeaderPlan, strings.Join(list, ", "))
	case x.Fit.Budget.Window == 0:
		h.Set(HeaderNote, OneLine("the window of "+x.Fit.Model+" is not known: nothing is hidden for want of room until its provider, --window or a catalogue says it"))
	case x.Dry:
		h.Set(HeaderNote, OneLine("nothing would be hidden"+whyNothing(plan)))
	}
}

// reductionHeader is a reduction in the form of Server-Timing.
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

// headerToken makes a name fit for a list in a header.
func headerToken(name string) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == ':' {
			return r
		}
		return '_'
	}, name)
	return out[:min(len(out), 60)]
}

// whyNothing is why a plan hides nothing, as its stages say.
func whyNothing(plan *furl.Plan) string {
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

// describeSession says that a request names a session that cannot exist.
func describeSession(h http.Header, asked string) {
	if asked == "" || storage.ValidID(furl.SessionID(asked)) {
		return
	}
	note := HeaderSession + ": no session can have that id, so it was ignored; ids are 1 to 128 letters, digits, dots, dashes and underscores"
	if storage.ReservedID(furl.SessionID(asked)) {
		note = HeaderSession + ": that id is reserved, so it was ignored; an id cannot be latest, start with a dash, or be made of dots alone"
	}
	if was := h.Get(HeaderNote); was != "" {
		note = was + "; " + note
	}
	h.Set(HeaderNote, note)
}

// OneLine makes a text fit for a header or a line of a log: at most 300
// printable ASCII characters.
func OneLine(s string) string {
	out := []byte(s)
	for i, c := range out {
		if c < ' ' || c > '~' {
			out[i] = ' '
		}
	}
	return string(bytes.TrimSpace(out[:min(len(out), 300)]))
}
