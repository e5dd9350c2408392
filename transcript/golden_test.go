package transcript

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/furlhq/furl"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// written describes everything an importer made of a file.
func written(rec *Recording) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, agent %q\n", rec.Format, rec.Agent)
	for _, s := range rec.Sessions {
		fmt.Fprintf(&b, "\nsession %q", s.ID)
		if s.Title != "" {
			fmt.Fprintf(&b, " %q", s.Title)
		}
		if s.Parent != "" {
			fmt.Fprintf(&b, " of %q", s.Parent)
		}
		fmt.Fprintf(&b, ", model %q, %s\n", s.Model, s.Wire)
		fmt.Fprintf(&b, "messages %d, calls %d, results %d, compactions %d\n", s.Messages, s.Calls, s.Results, s.Compactions)
		for i := range s.Preamble {
			fmt.Fprintf(&b, "preamble %s %q\n", s.Preamble[i].Kind, s.Preamble[i].Text)
		}
		for i := 1; i <= s.Log.Len(); i++ {
			r := s.Log.At(furl.Seq(i))
			fmt.Fprintf(&b, "%3d<%d ", r.Seq, r.Parent)
			if !r.At.IsZero() {
				fmt.Fprintf(&b, "%s ", r.At.Format("15:04:05.000"))
			}
			writeBody(&b, r.Body)
			b.WriteByte('\n')
		}
		b.WriteString("the model sees\n")
		v := s.Log.State().View(furl.Model{})
		for i := range v.Messages {
			fmt.Fprintf(&b, "    %s", v.Messages[i].Msg.Role)
			for j := range v.Messages[i].Blocks {
				sb := &v.Messages[i].Blocks[j]
				fmt.Fprintf(&b, " %s(%s)", sb.Block.Kind, sb.Words())
			}
			b.WriteByte('\n')
		}
	}
	for _, s := range rec.Skipped {
		fmt.Fprintf(&b, "skipped, line %d: %s\n", s.Line, s.Reason)
	}
	for _, n := range rec.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	return b.String()
}

func writeBody(b *strings.Builder, body furl.Body) {
	switch body := body.(type) {
	case *furl.Message:
		fmt.Fprintf(b, "%s", body.Raw)
		for i := range body.Blocks {
			if body.Blocks[i].Observation {
				b.WriteString(" observation")
			}
			if body.Blocks[i].ErrorText {
				b.WriteString(" failed by its text")
			}
			if body.Blocks[i].Error {
				b.WriteString(" failed")
			}
		}
	case *furl.Exchange:
		u := body.Usage
		fmt.Fprintf(b, "request to %q: %d fresh, %d read, %d written, %d out (%d reasoning)", body.Model, u.Input, u.CacheRead, u.CacheWrite, u.Output, u.Reasoning)
		if body.ResponseID != "" {
			fmt.Fprintf(b, ", id %s", body.ResponseID)
		}
		if body.Stop != "" {
			fmt.Fprintf(b, ", stop %s", body.Stop)
		}
		if t := &body.Terms; !t.Usual() {
			fmt.Fprintf(b, ", terms %+v", *t)
		}
	case *furl.Reduction:
		fmt.Fprintf(b, "%s, %s, %d -> %d tokens:", body.Stage, body.Reason, body.Before, body.After)
		for _, it := range body.Items {
			for _, sp := range it.Spans {
				fmt.Fprintf(b, " %d.%d-%d.%d", sp.First.Msg, sp.First.Block, sp.Last.Msg, sp.Last.Block)
			}
		}
		if s := body.Summary; s != nil {
			fmt.Fprintf(b, "; summary %d of %d messages: %q", s.Number, s.Messages, s.Text)
		}
	case *furl.Takeover:
		fmt.Fprintf(b, "takes over branch %d %v", body.Branch, body.Moved)
	case *furl.Head:
		fmt.Fprintf(b, "back from %d", body.From)
	default:
		fmt.Fprintf(b, "%T", body)
	}
}

// Each fixture is a small recording, invented for the test; NAME.want is the
// expected result. For a new fixture create an empty .want file and run
// -update.
func TestFixtures(t *testing.T) {
	wants, err := filepath.Glob("testdata/*.want")
	if err != nil {
		t.Fatal(err)
	}
	if len(wants) == 0 {
		t.Fatal("no fixtures")
	}
	for _, want := range wants {
		t.Run(strings.TrimSuffix(filepath.Base(want), ".want"), func(t *testing.T) {
			rec, err := ReadFile(strings.TrimSuffix(want, ".want"))
			if err != nil {
				t.Fatal(err)
			}
			got := written(rec)
			if *update {
				if err := os.WriteFile(want, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			data, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(data), got); diff != "" {
				t.Errorf("unexpected result (-want +got; go test -update rewrites it):\n%s", diff)
			}
			for _, s := range rec.Sessions {
				checkRequests(t, s, false)
			}
		})
	}
}
