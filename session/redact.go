package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/open"
	"github.com/furlhq/furl/record"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/wire"
)

// Redacted is what replaces a secret.
const Redacted = "[redacted]"

// Credentials returns patterns of common credentials: keys of model providers, clouds and
// code hosts, tokens, private keys, and passwords in URLs.
func Credentials() []*regexp.Regexp { return slices.Clone(credentials()) }

// The patterns are compiled when they are first used, not when a program starts.
var credentials = sync.OnceValue(func() (all []*regexp.Regexp) {
	for _, text := range []string{
		`sk-(?:ant-|proj-|or-)?[A-Za-z0-9_-]{20,}`,
		`\bAIza[A-Za-z0-9_-]{35}`,
		`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`,
		`\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{36,}`,
		`\bgithub_pat_[A-Za-z0-9_]{50,}`,
		`\bglpat-[A-Za-z0-9_-]{20,}`,
		`\bxox[abposr]-[A-Za-z0-9-]{10,}`,
		`\b[rs]k_(?:live|test)_[A-Za-z0-9]{20,}`,
		`\bnpm_[A-Za-z0-9]{36}`,
		`\bhf_[A-Za-z0-9]{30,}`,
		`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`,
		`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----`,
		`[a-z][a-z0-9+.-]{1,20}://[^\s/:@"'\\]{1,64}:[^\s/@"'\\]{3,200}@`,
	} {
		all = append(all, regexp.MustCompile(text))
	}
	return all
})

// Redaction says what to remove from what was recorded.
type Redaction struct {
	// Patterns are what to look for in all texts.
	Patterns []*regexp.Regexp
	// Blocks are blocks to remove whole. A Block of -1 is the whole message.
	Blocks []furl.Pos
	// By says on whose behalf it is done.
	By furl.Actor
	// DryRun changes nothing.
	DryRun bool
}

// RedactionReport is what was replaced, or would be.
type RedactionReport struct {
	Records []furl.Seq // that were changed
	Found   int        // texts that were replaced
	Bytes   int        // of these
	// Samples show where, with all but the first characters masked.
	Samples []RedactionSample
	// Requests is how many requests can no longer be rebuilt byte for byte.
	Requests int
	// Copies is how many files outside of the store were removed (Options.Redacted).
	Copies int
}

// RedactionSample is one replaced text.
type RedactionSample struct {
	Record furl.Seq // 0: in the metadata, or in the instructions or tools of a request
	Masked string
}

// maxSamples bounds RedactionReport.Samples.
const maxSamples = 1000

// Redact replaces secrets in what a session has recorded by "[redacted]", for good: in
// messages, reductions, summaries, titles and all other texts. The bodies of the
// session's requests can then no longer be rebuilt, because they are described by
// their differences from the messages; they are removed, and those of later requests
// of this session are not recorded. The search index is made again. The session's
// metadata says when and how much was replaced (storage.Meta.Redactions).
//
// Digests stay those of the original messages, so a client that sends them again
// continues the session, and nothing of them is recorded again. A record is appended
// after the change, so that a process with the session in memory reads it again before
// its next append. What is recorded later is not searched: run it again. A session
// under legal hold is not changed: the error is a *storage.HeldError. The caller then
// calls storage.Rewriter.Scrub. After an interruption, Redact can be repeated.
func Redact(ctx context.Context, store storage.Store, key furl.SessionKey, r Redaction) (*RedactionReport, error) {
	rewriter, ok := store.(storage.Rewriter)
	if !ok {
		return nil, errors.New("this store does not support redaction")
	}
	if !r.DryRun {
		if err := storage.CheckHeld(ctx, store, key); err != nil {
			return nil, fmt.Errorf("redact: %w", err)
		}
	}
	total := &RedactionReport{}
	for {
		p, err := prepareRedaction(ctx, store, rewriter, key, &r)
		switch {
		case err != nil:
		case r.DryRun:
			return p.report, nil
		case p.rewrite != nil:
			if err = rewriter.Rewrite(ctx, key, *p.rewrite); err == nil {
				total.add(p.report)
				r.Blocks = nil
			}
		case p.finish != nil:
			err = store.Append(ctx, key, *p.finish)
		default:
			// Nothing was found after the record that makes other processes read the
			// session again: none of them has appended from what it had in memory.
			return total, nil
		}
		if err != nil && !errors.Is(err, furl.ErrConflict) { // else it grew
			return nil, fmt.Errorf("redact session %s: %w", key.Session, err)
		}
	}
}

// Redact is the function Redact for a session of the tenant. It also removes the secrets from
// what the program keeps outside of the store (Options.Redacted), and evicts the session from
// memory. After an error of Options.Redacted, the report is that of the store.
func (a *Sessions) Redact(ctx context.Context, id furl.SessionID, r Redaction) (*RedactionReport, error) {
	key := furl.SessionKey{Tenant: a.Tenant(), Session: id}
	report, err := Redact(ctx, a.Store(), key, r)
	if err != nil {
		return nil, err
	}
	if !r.DryRun {
		a.open.For(key.Tenant).Deleted(id) // it is read again
	}
	if redacted := a.Options().Redacted; redacted != nil {
		if report.Copies, err = redacted(key, &r); err != nil {
			return report, fmt.Errorf("redact what is kept of session %s outside of the store: %w", id, err)
		}
	}
	return report, nil
}

func (r *RedactionReport) add(o *RedactionReport) {
	r.Records = append(r.Records, o.Records...)
	slices.Sort(r.Records)
	r.Records = slices.Compact(r.Records)
	r.Found, r.Bytes, r.Requests = r.Found+o.Found, r.Bytes+o.Bytes, r.Requests+o.Requests
	r.Samples = append(r.Samples, o.Samples[:min(len(o.Samples), maxSamples-len(r.Samples))]...)
}

// redactionStep is the next step of a redaction: a change, else the record that ends
// it, else neither.
type redactionStep struct {
	report  *RedactionReport
	rewrite *storage.Rewrite
	finish  *storage.Batch
}

// prepareRedaction reads a session and returns the next step.
func prepareRedaction(ctx context.Context, store storage.Store, rewriter storage.Rewriter, key furl.SessionKey, r *Redaction) (*redactionStep, error) {
	info, err := storage.Info(ctx, store, key)
	if err != nil {
		return nil, err
	}
	d := &redactor{Redaction: r, report: &RedactionReport{}}
	w := &storage.Rewrite{Records: info.Records}
	var exchanges []furl.Record
	var head furl.Seq
	for rec, err := range store.Read(ctx, key, 0) {
		if err != nil {
			return nil, err
		}
		if rec.Seq > info.Records {
			break
		}
		if head = rec.Seq; open.MovesHead(rec) {
			head = rec.Parent
		}
		x, _ := rec.Body.(*furl.Exchange)
		if x != nil && x.Request != (furl.RequestParts{}) {
			d.at = rec.Seq
			d.text(x.Request.Received)
			d.text(x.Request.Sent)
			own := *x
			own.Request = furl.RequestParts{}
			rec.Body = &own
		}
		changed, err := d.record(&rec)
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", rec.Seq, err)
		}
		switch {
		case x != nil && x.Request != (furl.RequestParts{}):
			exchanges = append(exchanges, rec)
			if changed {
				d.report.Records = append(d.report.Records, rec.Seq)
			}
		case changed:
			w.Put = append(w.Put, rec)
			d.report.Records = append(d.report.Records, rec.Seq)
		}
	}
	d.at = 0
	ids, err := rewriter.ContentIDs(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		content, err := store.(storage.ContentStore).Content(ctx, key, id)
		if err != nil {
			return nil, err
		}
		d.json(content)
	}
	meta, err := d.meta(&info.Meta)
	if err != nil {
		return nil, err
	}
	if d.report.Found == 0 {
		return &redactionStep{report: d.report, finish: finishRedaction(&info, head, r.By)}, nil
	}
	d.report.Requests = len(exchanges)
	w.Put = append(w.Put, exchanges...)
	slices.SortFunc(w.Put, func(a, b furl.Record) int { return int(a.Seq) - int(b.Seq) })
	w.DropContents = ids
	meta.Redactions = append(slices.Clone(info.Redactions), storage.Redaction{
		At: time.Now().UTC().Truncate(time.Second), By: r.By.String(), Records: d.report.Records, Texts: d.report.Found, Bytes: d.report.Bytes})
	w.Meta, w.MetaWas = meta, &info.Meta
	return &redactionStep{report: d.report, rewrite: w}, nil
}

// finishRedaction returns the record that makes other processes read a redacted
// session again, nil if it was appended already. It changes nothing else: the
// conversation continues where it was.
func finishRedaction(info *storage.SessionInfo, head furl.Seq, by furl.Actor) *storage.Batch {
	meta := info.Meta.Clone()
	seq := info.Records + 1
	open := false
	for i := range meta.Redactions {
		if x := &meta.Redactions[i]; x.Record == 0 {
			x.Record, open = seq, true
		}
	}
	if !open {
		return nil
	}
	r := furl.Record{Seq: seq, Parent: head, At: time.Now(), By: by, Body: &furl.Head{From: head}}
	return &storage.Batch{Records: []furl.Record{r}, Meta: &meta, MetaWas: &info.Meta}
}

// redactor replaces texts of a session.
type redactor struct {
	*Redaction
	at     furl.Seq
	report *RedactionReport
}

// text returns a text with the patterns replaced.
func (d *redactor) text(s string) string {
	for _, p := range d.Patterns {
		if !p.MatchString(s) {
			continue
		}
		s = p.ReplaceAllStringFunc(s, func(found string) string {
			if found == "" || found == Redacted {
				return found
			}
			d.note(found)
			return Redacted
		})
	}
	return s
}

func (d *redactor) note(found string) {
	d.report.Found++
	d.report.Bytes += len(found)
	if len(d.report.Samples) < maxSamples {
		d.report.Samples = append(d.report.Samples, RedactionSample{d.at, masked(found)})
	}
}

// masked shows the beginning of a secret: an eighth, at most four characters.
func masked(s string) string {
	shown := []rune(s)
	if n := len(shown); n > 0 {
		shown = shown[:min(4, n/8)]
	}
	return fmt.Sprintf("%s… (%d bytes)", string(shown), len(s))
}

// json returns JSON with the patterns replaced in its strings, and other bytes with
// them replaced anywhere.
func (d *redactor) json(data []byte) []byte {
	return eachString(data, d.text)
}

// eachString replaces the strings of a JSON text. What is not JSON is one string.
func eachString(data []byte, change func(string) string) []byte {
	if !json.Valid(data) {
		if s := change(string(data)); s != string(data) {
			return []byte(s)
		}
		return data
	}
	var out []byte
	done := 0
	for at := 0; at < len(data); at++ {
		if data[at] != '"' {
			continue
		}
		end := at + 1
		for data[end] != '"' {
			if data[end] == '\\' {
				end++
			}
			end++
		}
		end++
		var s string
		if json.Unmarshal(data[at:end], &s) == nil {
			if is := change(s); is != s {
				quoted, err := json.Marshal(is)
				if err == nil {
					out = append(append(out, data[done:at]...), quoted...)
					done = end
				}
			}
		}
		at = end - 1
	}
	if done == 0 {
		return data
	}
	return append(out, data[done:]...)
}

// record redacts a record, and reports whether it changed.
func (d *redactor) record(r *furl.Record) (changed bool, err error) {
	d.at = r.Seq
	was := d.report.Found
	if m, ok := r.Body.(*furl.Message); ok {
		for _, p := range d.Blocks {
			if p.Msg == r.Seq {
				if m, err = d.block(m, p.Block); err != nil {
					return false, err
				}
			}
		}
		m, err = d.message(m, d.text)
		r.Body = m
		return d.report.Found > was, err
	}
	text, err := record.JSON{}.Append(nil, *r)
	if err != nil {
		return false, err
	}
	is := d.json(text)
	if d.report.Found == was {
		return false, nil
	}
	back, err := record.JSON{}.Parse(is)
	if err != nil {
		return false, fmt.Errorf("the pattern matches parts that are not text: %w", err)
	}
	*r = back
	return true, nil
}

// block replaces a whole block of a message, all of them for -1.
func (d *redactor) block(m *furl.Message, index int) (*furl.Message, error) {
	if index >= len(m.Blocks) {
		return nil, fmt.Errorf("it has %d blocks: no block %d", len(m.Blocks), index)
	}
	texts := make(map[string]bool)
	var whole strings.Builder
	for i := range m.Blocks {
		if b := &m.Blocks[i]; index < 0 || i == index {
			texts[b.Text], texts[string(b.Args)] = true, len(b.Args) > 0
			whole.WriteString(b.Text)
			eachString(b.Args, func(s string) string { texts[s] = true; return s })
		}
	}
	delete(texts, "")
	all := whole.String()
	n := d.report.Found
	out, err := d.message(m, func(s string) string {
		switch {
		case s == Redacted:
		case texts[s] && json.Valid([]byte(s)) && strings.HasPrefix(s, "{"): // arguments as text
			d.note(s)
			return `{"redacted":"` + Redacted + `"}`
		case texts[s], len(s) >= 8 && strings.Contains(all, s): // a part of a result
			d.note(s)
			return Redacted
		}
		return s
	})
	if err == nil && d.report.Found == n && !texts[Redacted] {
		err = fmt.Errorf("block %d has no text to redact", index)
	}
	return out, err
}

// message returns a message with its strings changed. Its digest stays.
func (d *redactor) message(m *furl.Message, change func(string) string) (*furl.Message, error) {
	was := d.report.Found
	out := *m
	out.Raw = eachString(m.Raw, change)
	counted := *d.report // the blocks have the same texts once more
	counted.Samples = slices.Clip(counted.Samples)
	inRaw := m.Raw != nil
	out.Blocks = slices.Clone(m.Blocks)
	for i := range out.Blocks {
		b := &out.Blocks[i]
		if b.Text != "" {
			b.Text = change(b.Text)
		}
		if len(b.Args) > 0 {
			b.Args = eachString(b.Args, change)
		}
	}
	if inRaw && counted.Found > was {
		*d.report = counted
	}
	if d.report.Found == was {
		return m, nil
	}
	codec := wire.For(m.Format)
	if codec == nil || m.Raw == nil {
		return &out, nil
	}
	again, err := codec.DecodeMessage(out.Raw)
	if err != nil || len(again.Blocks) != len(out.Blocks) {
		return nil, fmt.Errorf("the pattern matches parts of a message that are not text: %w", errors.Join(err, errors.ErrUnsupported))
	}
	for i := range out.Blocks {
		b, a := &out.Blocks[i], &again.Blocks[i]
		b.Text, b.Args, b.Start, b.End = a.Text, a.Args, a.Start, a.End
	}
	return &out, nil
}

// meta returns redacted metadata.
func (d *redactor) meta(m *storage.Meta) (_ *storage.Meta, err error) {
	own := m.Clone()
	own.Redactions, own.Awaited = nil, nil
	if own.Waiting, err = d.waiting(m.Waiting); err != nil {
		return nil, err
	}
	text, err := json.Marshal(&own)
	if err != nil {
		return nil, err
	}
	out := &storage.Meta{}
	if err := json.Unmarshal(d.json(text), out); err != nil {
		return nil, fmt.Errorf("the pattern matches parts of the metadata that are not text: %w", err)
	}
	return out, nil
}

// waiting redacts a summary that waits for approval. Its record is encoded, so its
// texts cannot be found in its JSON.
func (d *redactor) waiting(data json.RawMessage) (json.RawMessage, error) {
	w, err := open.DecodeWaiting(data)
	if err != nil || w == nil {
		return data, err
	}
	was := d.report.Found
	r := furl.Record{Seq: w.At + 1, Parent: w.At, At: w.Since, By: furl.Furl, Body: w.Red}
	if _, err := d.record(&r); err != nil {
		return nil, fmt.Errorf("summary that waits for approval: %w", err)
	}
	d.at = 0
	w.Edited = d.text(w.Edited)
	if d.report.Found == was {
		return data, nil
	}
	w.Red = r.Body.(*furl.Reduction)
	return open.EncodeWaiting(w, w.Since)
}
