package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

const (
	headerDryRun = "X-Furl-Dry-Run"
	headerPlan   = "X-Furl-Plan"
)

// begin puts a request into its session: as a dry run where the request or the
// gateway's options ask for one, and without a trace where only its size is
// asked for.
func (g *Gateway) begin(ctx context.Context, r *http.Request, rt *route, sessions *session.Sessions, req *furl.Request, hints session.Hints) (*session.Exchange, error) {
	dry, _ := strconv.ParseBool(r.Header.Get(headerDryRun))
	dry = dry || g.o.DryRun
	switch {
	case dry && rt.count:
		return sessions.PeekDry(ctx, req, hints)
	case rt.count:
		return sessions.Peek(ctx, req, hints)
	case dry:
		return sessions.BeginDry(ctx, req, hints)
	}
	return sessions.Begin(ctx, req, hints)
}

// maxTold bounds how many reductions an answer's header tells of.
const maxTold = 16

// tellPlan says in the answer's header what the plan hides, stage by stage:
// what each frees in tokens, and what it costs and saves in US dollars where
// prices are known. For a dry run it says what it would hide, or why nothing.
func tellPlan(h http.Header, x *session.Exchange) {
	if x.Dry {
		h.Set(headerDryRun, "true")
	}
	if x.Fit == nil {
		return
	}
	plan := x.Fit.Plan
	if n := len(plan.Reductions); n > 0 {
		told := make([]string, 0, min(n, maxTold))
		for _, red := range plan.Reductions[:min(n, maxTold)] {
			told = append(told, reductionWords(red))
		}
		h.Set(headerPlan, strings.Join(told, ", "))
		return
	}
	switch {
	case x.Why != "":
	case x.Fit.Budget.Window == 0:
		h.Set(headerNote, oneLine("the window of "+x.Fit.Model+" is not known: nothing is hidden for want of room until its provider, --window or a catalogue says it"))
	case x.Dry:
		h.Set(headerNote, oneLine("nothing would be hidden"+whyNothing(plan)))
	}
}

// reductionWords is one reduction in the form of Server-Timing: a name with
// numbers.
func reductionWords(red *furl.Reduction) string {
	w := fmt.Sprintf("%s;tokens=%d", token(red.Stage), red.Before-red.After)
	if c := red.Cost; c.Rewrite != 0 || c.PerRequest != 0 || c.Own != 0 {
		w += fmt.Sprintf(";rewrite=%.6f;saves=%.6f", c.Rewrite, c.PerRequest)
		if c.Own != 0 {
			w += fmt.Sprintf(";own=%.6f", c.Own)
		}
	}
	return w
}

// token makes a name fit to stand in a header's list.
func token(name string) string {
	out := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == ':' {
			return r
		}
		return '_'
	}, name)
	return out[:min(len(out), 60)]
}

// tellSession says that the session which a client asked for cannot be.
func tellSession(h http.Header, asked string) {
	if asked == "" || furl.ValidSessionID(furl.SessionID(asked)) {
		return
	}
	note := headerSession + ": no session can have that id, so it was ignored; ids are 1 to 128 letters, digits, dots, dashes and underscores"
	if furl.ReservedSessionID(furl.SessionID(asked)) {
		note = headerSession + ": that id is reserved, so it was ignored; an id cannot be latest, start with a dash, or be made of dots alone"
	}
	if was := h.Get(headerNote); was != "" {
		note = was + "; " + note
	}
	h.Set(headerNote, note)
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
