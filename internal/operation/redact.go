package operation

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/numbers"
	"github.com/furlhq/furl/internal/visible"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/storage"
)

// RedactInput is the input of redact.
type RedactInput struct {
	Handles  []string `json:"handles,omitempty" arg:"[RECORD.BLOCK]..." help:"messages or blocks to remove as a whole, also on other branches"`
	Patterns []string `json:"patterns,omitempty" flag:"pattern" help:"redact what matches this regular 'expression', not common credentials"`
	preview
}

// Limits of a redaction: patterns, the bytes of one, and messages or blocks.
const (
	maxPatterns = 100
	maxPattern  = 10_000
	maxRedacted = 10_000
)

// Redaction returns what to redact: what the patterns match and the blocks, or common
// credentials if there are neither. An error is an Invalid.
func (in *RedactInput) Redaction() (r session.Redaction, err error) {
	r = session.Redaction{By: furl.Person, DryRun: in.DryRun}
	if len(in.Patterns) > maxPatterns {
		return r, invalid(fmt.Sprintf("%d patterns: expected at most %d", len(in.Patterns), maxPatterns))
	}
	for _, text := range in.Patterns {
		if len(text) > maxPattern {
			return r, invalid(fmt.Sprintf("a pattern has %s bytes: expected at most %s", numbers.Thousands(len(text)), numbers.Thousands(maxPattern)))
		}
		re, err := regexp.Compile(text)
		switch {
		case err != nil:
			return r, Invalid{fmt.Errorf("invalid pattern %.80q: %w", text, err)}
		case re.MatchString(""):
			return r, invalid(fmt.Sprintf("the pattern %.80q matches the empty text: expected a pattern of the secret", text))
		}
		r.Patterns = append(r.Patterns, re)
	}
	for _, name := range in.Handles {
		if first, last, ok := parseRange(name); ok && first > 0 && first <= last && last-first < maxRedacted {
			for seq := first; seq <= last; seq++ {
				r.Blocks = append(r.Blocks, furl.Pos{Msg: seq, Block: -1})
			}
			continue
		}
		h, err := recall.ParseHandle(name)
		if err != nil {
			return r, invalid(fmt.Sprintf("invalid block %.80q: expected RECORD.BLOCK, as furl show prints them, or a range of records", name))
		}
		r.Blocks = append(r.Blocks, h.Pos())
	}
	if len(r.Blocks) > maxRedacted {
		return r, invalid(fmt.Sprintf("%s messages: expected at most %s", numbers.Thousands(len(r.Blocks)), numbers.Thousands(maxRedacted)))
	}
	if len(r.Patterns)+len(r.Blocks) == 0 {
		r.Patterns = session.Credentials()
	}
	return r, nil
}

// Redacted is what was redacted in a session, or would be.
type Redacted struct {
	Records  []furl.Seq `json:"records"`
	Texts    int        `json:"texts"`
	Bytes    int        `json:"bytes"`
	Requests int        `json:"requests_removed"`
	// Copies is how many copies of files that furl chat has changed were removed.
	Copies  int      `json:"copies_removed"`
	Samples []Sample `json:"samples"`
}

// Sample shows where a text was found, with all but its first characters masked.
type Sample struct {
	Record furl.Seq `json:"record,omitempty"` // 0: in the metadata or a request
	Masked string   `json:"masked"`
}

// Where says where the text was found, and shows it masked.
func (s *Sample) Where() string {
	where := "metadata or request"
	if s.Record != 0 {
		where = fmt.Sprintf("record %d", s.Record)
	}
	return where + ": " + visible.Line(s.Masked)
}

// RedactedOf returns a report for programs.
func RedactedOf(rep *session.RedactionReport) Redacted {
	out := Redacted{append([]furl.Seq{}, rep.Records...), rep.Found, rep.Bytes, rep.Requests, rep.Copies, []Sample{}}
	for _, s := range rep.Samples {
		out.Samples = append(out.Samples, Sample{s.Record, s.Masked})
	}
	return out
}

// maxSamples is the number of texts that are listed in a result for people.
const maxSamples = 20

var redact = define(Operation{
	Name: "redact", Short: "Remove secrets from what was recorded", Audit: Change,
	Long: `Replaces secrets in what was recorded by "[redacted]", and overwrites the old bytes. It
finds common credentials, or what a pattern matches, or removes whole blocks. The session
records when and how much was redacted. This cannot be undone. Clients that send the
secret again continue their sessions, and it is not recorded again. Copies of files that
the tools of furl chat have changed are removed if they contain it. A session under legal
hold is kept as it is.`,
	Missing: map[Surface]string{
		Chat:  "a running chat has the secret in its requests and on the screen; end it, and use furl redact or the page",
		Model: "a model never changes what is recorded of it",
	},
}, func(c *Call, in *RedactInput) (*Result, error) {
	wanted, err := in.Redaction()
	if err != nil {
		return nil, err
	}
	info := c.Session.Info()
	if slices.ContainsFunc(wanted.Blocks, func(p furl.Pos) bool { return p.Msg > info.Records }) {
		return nil, &UnknownBlock{fmt.Sprintf("%s has %d records", info.Session, info.Records)}
	}
	if h, err := heldBy(c); err != nil {
		return nil, err
	} else if h != nil {
		return nil, &storage.HeldError{Session: info.SessionKey, Hold: *h}
	}
	wanted.DryRun = c.Preview
	rep, err := c.Sessions.Redact(c, info.Session, wanted)
	if err == nil && !c.Preview {
		err = scrub(c)
	}
	if err != nil {
		return nil, err
	}
	out := RedactedOf(rep)
	what := numbers.Count(out.Texts, "text") + " in session " + string(info.Session)
	r := &Result{Title: "Redact " + what, Did: "Redacted " + what, Value: out}
	if out.Texts+out.Copies == 0 {
		r.Title = "Redact session " + string(info.Session)
		r.Nothing = "No secrets found."
		return r, nil
	}
	r.Effects = []string{fmt.Sprintf("%s in %s: replaced by %s and overwritten in the store. This cannot be undone.", Size(int64(out.Bytes)), numbers.Count(len(out.Records), "record"), session.Redacted)}
	r.Notes = redactNotes(&out)
	return r, nil
})

// redactNotes say what else a redaction removes, and where texts were found.
func redactNotes(out *Redacted) (notes []string) {
	if out.Requests > 0 {
		notes = append(notes, fmt.Sprintf("The bodies of %s can no longer be shown.", numbers.Count(out.Requests, "request")))
	}
	if out.Copies > 0 {
		notes = append(notes, fmt.Sprintf("Copies of files that furl chat has changed: %d. Without them, a rewind cannot restore the files.", out.Copies))
	}
	for i := range out.Samples[:min(len(out.Samples), maxSamples)] {
		notes = append(notes, out.Samples[i].Where())
	}
	if n := out.Texts - maxSamples; n > 0 {
		notes = append(notes, fmt.Sprintf("and %s more", numbers.Thousands(n)))
	}
	return append(notes, "Only this session was searched; furl redact without a session searches forks and all others too.")
}

// scrub overwrites what redactions have left in the store.
func scrub(c *Call) error {
	if w, ok := c.Sessions.Store().(storage.Rewriter); ok {
		if err := w.Scrub(c); err != nil {
			return fmt.Errorf("the session was redacted; overwrite the old bytes: %w", err)
		}
	}
	return nil
}
