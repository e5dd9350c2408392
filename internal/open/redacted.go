package open

import (
	"slices"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/storage"
)

// MovesHead reports whether a record sets the head of the path, as a rewind does and the
// record that follows a redaction.
func MovesHead(r furl.Record) bool {
	_, ok := r.Body.(*furl.Head)
	return ok
}

// redactedForm returns what is recorded for a message of the session that was redacted,
// nil for others.
func (c *Change) redactedForm(m *furl.Message) *furl.Message {
	for i := range c.Meta().Redactions {
		for _, seq := range c.Meta().Redactions[i].Records {
			if int(seq) > c.log.Len() {
				continue
			}
			if was, ok := c.log.At(seq).Body.(*furl.Message); ok && was.Digest == m.Digest && was.Format == m.Format {
				return was
			}
		}
	}
	return nil
}

// AppendRedacted appends the redacted form of a message in its place. Its digests
// are those of m. A client may send a message that was redacted
// again, as when it continues from an earlier message.
func (c *Change) AppendRedacted(m, form *furl.Message) (furl.Record, error) {
	probe := c.log.Draft()
	r, err := probe.Append(probe.Head(), c.all.o.Now(), actorOf(m), m)
	if err != nil {
		return r, err
	}
	own := *form
	r.Body = &own
	if err := c.log.Load([]furl.Record{r}); err != nil {
		return r, err
	}
	c.sizes.RecordAppended(r, c.log, c.models())
	meta := c.Meta().Clone()
	again := storage.Redaction{By: furl.Furl.String()}
	if last := len(meta.Redactions) - 1; last >= 0 && meta.Redactions[last].By == again.By {
		again, meta.Redactions = meta.Redactions[last], meta.Redactions[:last]
	}
	again.At, again.Record = r.At.UTC().Truncate(time.Second), r.Seq
	again.Records = append(slices.Clone(again.Records), r.Seq)
	meta.Redactions = append(meta.Redactions, again)
	c.SetMeta(meta)
	return r, nil
}
