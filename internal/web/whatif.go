package web

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/furlhq/furl"
)

// whatIfPage is the data of the page that replays a session under other policies.
type whatIfPage struct {
	ID       furl.SessionID
	Title    string
	Path     string // of the page
	Policies []policyBox
	Chosen   []string
	// Current is the session's policy, Own that the session has a policy of its own.
	Current string
	Own     bool
	// Imported reports that the session's agent has sent its requests to another place.
	Imported bool
	// Requests is how many requests the session has; Reduced how often furl has reduced it.
	Requests, Reduced int
	Nothing           string // why there is nothing to replay, "" if there is
	Job               *whatIfJob
	Failed            string // why the replay failed
	Result            *replayed
	Newer             int    // records that are newer than the result
	Applied           string // the policy that was applied just now
	Before            string // and the session's own one before
}

// policyBox is a policy to choose.
type policyBox struct {
	Name    string
	Checked bool
	Current bool
}

// whatIfJob is a replay that computes.
type whatIfJob struct {
	Path        string
	Policies    []string
	Query       string
	Waits       bool // for others
	Done, Total int
}

// Content is the result's HTML, which package report has escaped.
func (r *replayed) Content() template.HTML { return template.HTML(r.HTML) }

// Query is the query of the page with the chosen policies.
func (d *whatIfPage) Query() string { return policyQuery(d.Chosen) }

func policyQuery(policies []string) string { return url.Values{"policy": policies}.Encode() }

// whatIfPath is the path of the page of a session.
func (v *visit) whatIfPath() string { return prefix + "/sessions/" + string(v.s.ID()) + "/whatif" }

// replayOf names the replay of the visit's session under policies.
func (v *visit) replayOf(policies []string) replayOf {
	return replayOf{v.s.Info().SessionKey, strings.Join(policies, ",")}
}

// jobOf describes a replay that computes, nil if there is none.
func (v *visit) jobOf(job *replaying) *whatIfJob {
	if job == nil || job.failure() != nil {
		return nil
	}
	policies := strings.Split(job.of.policies, ",")
	out := &whatIfJob{Path: v.whatIfPath(), Policies: policies, Query: policyQuery(policies)}
	started, done, total := job.State()
	out.Waits, out.Done, out.Total = !started, done, total
	return out
}

// whatIf shows what other policies would have done with a session.
func (p *Page) whatIf(v *visit) error {
	_, set := v.replayOptions()
	chosen, err := v.chosenPolicies(set)
	if err != nil {
		return err
	}
	info := v.s.Info()
	d := &whatIfPage{ID: v.s.ID(), Title: v.listed(info).Title, Path: v.whatIfPath(), Chosen: chosen, Imported: info.Imported > 0, Own: info.Policy != "", Current: v.policyInUse()}
	for _, r := range v.s.Records(0) {
		switch r.Body.(type) {
		case *furl.Exchange:
			d.Requests++
		case *furl.Reduction:
			if r.By == furl.Furl || r.By == furl.Person {
				d.Reduced++
			}
		}
	}
	switch d.Requests {
	case 0:
		d.Nothing = "The session has no recorded request to a model."
	case 1:
		d.Nothing = "The session has one request. Policies hide what earlier requests have sent, so there is nothing to compare yet."
	}
	for _, name := range v.policyNames(set) {
		checked := slices.Contains(chosen, name)
		if len(chosen) == 0 {
			checked = name == d.Current || slices.Contains(proposed, name)
		}
		d.Policies = append(d.Policies, policyBox{name, checked, name == d.Current})
	}
	result, job := p.replays.ask(v.replayOf(chosen))
	if d.Job = v.jobOf(job); d.Job == nil && job != nil && job.of == v.replayOf(chosen) {
		d.Failed = replayFailure(job.failure())
	}
	if len(chosen) > 0 && d.Nothing == "" && (d.Job == nil || job.of != v.replayOf(chosen)) {
		if d.Result = result; result != nil {
			d.Newer = int(info.Records) - int(result.Records)
		}
	}
	if done := v.r.FormValue("applied"); done != "" && done == d.Current {
		d.Applied, d.Before = done, v.r.FormValue("before")
	}
	v.render(http.StatusOK, "whatif.tmpl", d)
	return nil
}

// startWhatIf starts a replay and shows its page.
func (p *Page) startWhatIf(v *visit) error {
	_, set := v.replayOptions()
	chosen, err := v.chosenPolicies(set)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		return badRequest("choose at least one policy to compare with the session as recorded")
	}
	run, err := v.replaySession(chosen)
	if err != nil {
		return err
	}
	if err := p.replays.start(v.replayOf(chosen), run); errors.Is(err, errOther) {
		return &problem{http.StatusConflict, err.Error()}
	} else if err != nil {
		return &problem{http.StatusServiceUnavailable, err.Error()}
	}
	http.Redirect(v.w, v.r, v.whatIfPath()+"?"+policyQuery(chosen), http.StatusSeeOther)
	return nil
}

// whatIfProgress shows how far a replay is. When it has finished, the browser goes to
// the result.
func (p *Page) whatIfProgress(v *visit) error {
	_, set := v.replayOptions()
	chosen, err := v.chosenPolicies(set)
	if err != nil {
		return err
	}
	_, job := p.replays.ask(v.replayOf(chosen))
	if d := v.jobOf(job); d != nil {
		v.render(http.StatusOK, "whatif-figures", d)
		return nil
	}
	v.w.Header().Set("HX-Redirect", v.whatIfPath()+"?"+policyQuery(chosen))
	v.w.WriteHeader(http.StatusOK)
	return nil
}

// cancelWhatIf ends a replay.
func (p *Page) cancelWhatIf(v *visit) error {
	_, set := v.replayOptions()
	chosen, err := v.chosenPolicies(set)
	if err != nil {
		return err
	}
	p.replays.cancel(v.replayOf(chosen))
	http.Redirect(v.w, v.r, v.whatIfPath()+"?"+policyQuery(chosen), http.StatusSeeOther)
	return nil
}

// applyWhatIf sets the session's policy for its next requests. An empty name is the default
// of all sessions.
func (p *Page) applyWhatIf(v *visit) error {
	name, before := v.r.PostFormValue("apply"), v.s.Meta().Policy
	if err := v.s.Set(v.r.Context(), "policy", name); err != nil {
		return err
	}
	back := url.Values{"applied": {name}, "before": {before}}
	if name == "" {
		back = url.Values{}
	}
	for _, policy := range v.r.Form["policy"] {
		back.Add("policy", policy)
	}
	http.Redirect(v.w, v.r, v.whatIfPath()+"?"+back.Encode()+"#apply", http.StatusSeeOther)
	return nil
}

// replayFailure is the error of a replay for a person.
func replayFailure(err error) string { return "The replay failed: " + err.Error() }
