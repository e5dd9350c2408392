package token_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/catalog"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/token"
	"github.com/furlhq/furl/transcript"
)

// The accuracy targets: on recordings of Claude Code, Codex, opencode and pi,
// the growth of a prompt since the last report is estimated within 15% in
// nine of ten cases, and a whole prompt without its last report within 5%.
// docs/internals/sizes.md defines both, and has the numbers that this test prints with
// -v.
func TestMarks(t *testing.T) {
	root := recordings.Dir(t)
	all := &errorsOf{name: "all"}
	for _, agent := range []struct{ name, folder, files string }{
		{"Claude Code", "entire-cli", "*.jsonl.gz"},
		{"Codex", "agentv", "*.codex.jsonl.gz"},
		{"opencode", "nimbus", "*.opencode.json.gz"},
		{"pi", "pi-mono", "*.jsonl.gz"},
	} {
		files, err := filepath.Glob(filepath.Join(root, agent.folder, agent.files))
		if err != nil || len(files) == 0 {
			t.Fatalf("no recordings of %s in %s", agent.name, filepath.Join(root, agent.folder))
		}
		of := &errorsOf{name: agent.name}
		for _, file := range files {
			recording, err := transcript.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			one := &errorsOf{name: filepath.Base(file)}
			for _, s := range recording.Sessions {
				one.session(t, s)
			}
			t.Log(one)
			of.join(one)
		}
		t.Log(of)
		all.join(of)
		if len(of.added) < 50 {
			t.Errorf("%s: %d requests with a report before them, want at least 50", agent.name, len(of.added))
		}
	}
	t.Log(all)
	if e := all.addedAt(0.9, addedFloor); e > 0.15 {
		t.Errorf("what was added is off by %.3f at the 90th percentile, want at most 0.15", e)
	}
	if e := percentile(all.whole, 0.9); e > 0.05 {
		t.Errorf("whole prompts are off by %.3f at the 90th percentile, want at most 0.05", e)
	}
	if e := percentile(all.blind, 0.9); e > 0.05 {
		t.Errorf("whole prompts, ten reports later, are off by %.3f at the 90th percentile, want at most 0.05", e)
	}
	if e := percentile(all.half, 0.9); e > 0.05 {
		t.Errorf("prompts as they were half as many requests ago are off by %.3f at the 90th percentile, want at most 0.05", e)
	}
}

// addedFloor limits the weight of requests that added almost nothing: below
// this number of tokens, an error is relative to addedFloor.
const addedFloor = 200

// blindness is the number of requests without reports before the fit
// estimates a whole prompt.
const blindness = 10

// errorsOf collects the errors of estimates.
type errorsOf struct {
	name    string
	added   []addition
	whole   []float64 // by the fit alone, of the whole prompt
	blind   []float64 // the same, by the fit before the last ten reports
	half    []float64 // by the fit, of the prompt half as many requests ago: about what a reduction leaves
	reduced []float64 // by the fit, first request after a recorded compaction
	next    []float64 // with the last report, of the whole prompt
}

type addition struct {
	off, reported float64
	told          bool // the output of the reply in it was reported
}

func (e *errorsOf) join(o *errorsOf) {
	e.added = append(e.added, o.added...)
	e.whole = append(e.whole, o.whole...)
	e.blind = append(e.blind, o.blind...)
	e.half = append(e.half, o.half...)
	e.reduced = append(e.reduced, o.reduced...)
	e.next = append(e.next, o.next...)
}

// addedAt returns a percentile of the errors relative to what was added, or
// to floor if less was added.
func (e *errorsOf) addedAt(p, floor float64) float64 {
	var v []float64
	for _, a := range e.added {
		v = append(v, a.off/max(math.Abs(a.reported), floor, 1))
	}
	return percentile(v, p)
}

func (e *errorsOf) String() string {
	told := &errorsOf{}
	for _, a := range e.added {
		if a.told {
			told.added = append(told.added, a)
		}
	}
	return fmt.Sprintf("%-28.28s %4d requests; added: %.3f, %.3f from 200, %.3f from 500 (median %.3f; %.3f from 200 in the %d with output reported); whole: %.4f, blind %.4f, half %.4f; with the last report %.4f; after %d compactions %.3f (median %.3f)",
		e.name, len(e.added), e.addedAt(0.9, 0), e.addedAt(0.9, 200), e.addedAt(0.9, 500), e.addedAt(0.5, 0), told.addedAt(0.9, addedFloor), len(told.added),
		percentile(e.whole, 0.9), percentile(e.blind, 0.9), percentile(e.half, 0.9), percentile(e.next, 0.9), len(e.reduced), percentile(e.reduced, 0.9), percentile(e.reduced, 0.5))
}

func percentile(v []float64, p float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v[min(int(p*float64(len(v))), len(v)-1)]
}

// point is the state after a record of a path.
type point struct {
	meter    token.Meter
	model    string
	reports  int
	fits     [blindness]token.Calibration // as of the newest reports, by number
	stretch  []sized                      // the prompts since the last reduction
	reported furl.Usage
}

type sized struct {
	part     token.Part
	reported int
}

// session estimates each request of a session before its report.
func (e *errorsOf) session(t *testing.T, s *transcript.Session) {
	t.Helper()
	preamble := token.PartOf(measured(s.Preamble))
	points := map[furl.Seq]point{}
	for i := 1; i <= s.Log.Len(); i++ {
		r := s.Log.At(furl.Seq(i))
		p, ok := points[r.Parent]
		if !ok {
			p.meter = token.NewMeter(&furl.Model{})
			p.meter.Rebase(preamble)
		}
		switch body := r.Body.(type) {
		case *furl.Message:
			body.Measure(token.O200k())
			p.meter.Message(body)
		case *furl.Exchange:
			e.request(t, &p, body)
		case *furl.Reduction:
			measureMarks(body)
			model, _ := catalog.Default().Lookup(p.model)
			part := token.PartOfView(viewAt(t, s.Log, r.Seq, model))
			p.meter.Rebase(part.Plus(preamble))
			p.stretch = nil
		}
		points[r.Seq] = p
	}
}

func (e *errorsOf) request(t *testing.T, p *point, ex *furl.Exchange) {
	t.Helper()
	reported := ex.Usage.Prompt()
	if reported == 0 || strings.HasPrefix(ex.Model, "<") {
		return
	}
	if ex.Model != p.model {
		model, ok := catalog.Default().Lookup(ex.Model)
		if !ok {
			t.Fatalf("the model %q is not in the catalogue", ex.Model)
		}
		p.meter.Switch(&model)
		p.model, p.stretch = ex.Model, nil
	}
	off := func(estimate int) float64 { return math.Abs(float64(estimate-reported)) / float64(reported) }
	fit, whole := p.meter.Calibration(), p.meter.Whole()
	since := len(p.stretch)
	if since > 0 {
		e.added = append(e.added, addition{
			off:      math.Abs(float64(p.meter.Estimate() - reported)),
			reported: float64(reported - p.reported.Prompt()),
			told:     p.meter.Reply() == p.reported.Output,
		})
		e.next = append(e.next, off(p.meter.Estimate()))
		e.whole = append(e.whole, off(fit.Estimate(whole)))
	} else if p.reports > 0 {
		e.reduced = append(e.reduced, off(fit.Estimate(whole)))
	}
	if since >= blindness {
		before := p.fits[p.reports%blindness]
		e.blind = append(e.blind, off(before.Estimate(whole)))
	}
	p.meter.Report(ex.Usage, ex.Passes)
	p.fits[p.reports%blindness] = p.meter.Calibration()
	p.reports++
	if since >= 2*blindness {
		was := p.stretch[since/2]
		e.half = append(e.half, math.Abs(float64(p.meter.Calibration().Estimate(was.part)-was.reported))/float64(was.reported))
	}
	p.stretch = append(slices.Clip(p.stretch), sized{whole, reported})
	p.reported = ex.Usage
}

func measured(blocks []furl.Block) []furl.Block {
	m := &furl.Message{Blocks: slices.Clone(blocks)}
	m.Measure(token.O200k())
	return m.Blocks
}

func measureMarks(r *furl.Reduction) {
	for _, item := range r.Items {
		if mark, ok := item.Show.(furl.Mark); ok {
			for _, m := range mark.Messages {
				m.Measure(token.O200k())
			}
		}
	}
}

// viewAt is the view of the path that ends with a record.
func viewAt(t *testing.T, log *furl.Log, seq furl.Seq, m furl.Model) *furl.View {
	t.Helper()
	s := new(furl.State)
	for _, r := range log.Path(seq) {
		if err := s.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	return s.View(m)
}
