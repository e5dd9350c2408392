package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/report"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/replay"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/transcript"
)

// recordingOf returns a session for package replay, which measures messages: they are
// copies.
func recordingOf(s *session.Session) (*transcript.Session, error) {
	meta := s.Meta()
	out := &transcript.Session{ID: string(s.ID()), Title: meta.Title, Model: meta.Model, Wire: meta.Format, Windows: make(map[string]int), Log: furl.NewLog()}
	records := slices.Clone(s.Records(0))
	for i := range records {
		switch b := records[i].Body.(type) {
		case *furl.Message:
			records[i].Body = copied(b)
			out.Messages++
		case *furl.Exchange:
			if _, known := out.Windows[b.Model]; !known {
				out.Windows[b.Model] = s.Model(b.Model).Window
			}
		case *furl.Reduction:
			c := *b
			c.Items = slices.Clone(b.Items)
			for j := range c.Items {
				if mark, ok := c.Items[j].Show.(furl.Mark); ok {
					mark.Messages = slices.Clone(mark.Messages)
					for k := range mark.Messages {
						mark.Messages[k] = copied(mark.Messages[k])
					}
					c.Items[j].Show = mark
				}
			}
			records[i].Body = &c
		}
	}
	if err := out.Log.Load(records); err != nil {
		return nil, fmt.Errorf("read session %s: %w", s.ID(), err)
	}
	return out, nil
}

// copied returns a message that can be measured without changing the original.
func copied(m *furl.Message) *furl.Message {
	c := *m
	c.Blocks = slices.Clone(m.Blocks)
	return &c
}

// replayOptions returns the options for replays of the visit's sessions. Half of the
// processors compute, so that requests of agents do not wait for them.
func (v *visit) replayOptions() (replay.Options, *policy.Set) {
	all := v.Sessions.Options()
	set := all.Policies
	if set == nil {
		set = policy.NewSet()
	}
	return replay.Options{Catalog: all.Catalog, Workers: max(1, runtime.GOMAXPROCS(0)/2)}, set
}

// replaySession replays a session under policies and renders the result.
func (v *visit) replaySession(policies []string) (func(context.Context, func(done, total int)) (*replayed, error), error) {
	opts, set := v.replayOptions()
	var err error
	if opts.Candidates, err = replay.Candidates(set, append([]string{asRecorded}, policies...)...); err != nil {
		return nil, badRequest("%v", err)
	}
	s, now := v.s, v.p.o.Now
	return func(ctx context.Context, progress func(done, total int)) (*replayed, error) {
		rec, err := recordingOf(s)
		if err != nil {
			return nil, err
		}
		opts.Progress = func(p replay.Progress) { progress(p.Done, p.Total) }
		whole := &transcript.Recording{File: cmp.Or(visible.Line(rec.Title), "session "+rec.ID), Sessions: []*transcript.Session{rec}}
		rep, err := replay.Run(ctx, func(yield func(*transcript.Recording) bool) { yield(whole) }, opts)
		if err != nil {
			return nil, err
		}
		if len(rep.Recordings) == 0 || rep.Recordings[0].Requests == 0 {
			return nil, errors.New("nothing to replay: the session has no requests")
		}
		out := &replayed{Records: furl.Seq(rec.Log.Len()), At: now(), Choices: choicesOf(rep)}
		var b bytes.Buffer
		if err := report.Part(&b, rep); err != nil {
			return nil, err
		}
		out.HTML = b.Bytes()
		return out, nil
	}, nil
}

// asRecorded is the policy that hides nothing. A replay compares all others with it.
const asRecorded = "none"

// choicesOf lists the policies of a replay that can be applied, the recommended one first.
func choicesOf(rep *replay.Report) []replayChoice {
	best, fits := replay.Recommend(rep.Totals, 0, rep.Wish)
	var list []replayChoice
	var all *replay.Result
	if i := slices.IndexFunc(rep.Totals, func(r replay.Result) bool { return r.Policy == asRecorded }); i >= 0 {
		all = &rep.Totals[i]
	}
	for i := range rep.Totals {
		if r := &rep.Totals[i]; r.Policy != asRecorded {
			list = append(list, replayChoice{r.Policy, report.Outcome(r, all), fits && i == best})
		}
	}
	slices.SortStableFunc(list, func(a, b replayChoice) int {
		if a.Best != b.Best && a.Best {
			return -1
		} else if a.Best != b.Best {
			return 1
		}
		return 0
	})
	return list
}

// proposed are the policies that are compared unless others are chosen, apart from the
// session's own.
var proposed = []string{"auto", "auto:frugal", "auto:faithful", "rolling-mask-10", "clear-100k", "rolling"}

// chosenPolicies returns the policies that the request names, in the order of the set and
// each once; none if it names none.
func (v *visit) chosenPolicies(set *policy.Set) ([]string, error) {
	if err := v.r.ParseForm(); err != nil {
		return nil, badRequest("invalid form: %v", err)
	}
	wanted := v.r.Form["policy"]
	var list []string
	for _, name := range v.policyNames(set) {
		if slices.Contains(wanted, name) {
			list = append(list, name)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(list, name) {
			return nil, badRequest("unknown policy %.40q: choose among %s", name, strings.Join(v.policyNames(set), ", "))
		}
	}
	return list, nil
}

// policyNames returns the policies to choose from: those of the set, and the session's own
// if that is a variant of one.
func (v *visit) policyNames(set *policy.Set) []string {
	names := slices.DeleteFunc(slices.Clone(set.Names()), func(name string) bool { return name == asRecorded })
	if own := v.policyInUse(); own != "" && own != asRecorded && !slices.Contains(names, own) {
		if _, err := set.Policy(own, policy.Settings{}); err == nil {
			names = append(names, own)
		}
	}
	return names
}

// policyInUse returns the name of the policy that plans the session's requests.
func (v *visit) policyInUse() string {
	for _, setting := range v.s.Settings() {
		if setting.Name == "policy" {
			return setting.Value
		}
	}
	return ""
}
