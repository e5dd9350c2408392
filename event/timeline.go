package event

import (
	"fmt"

	"github.com/furlhq/furl"
)

// Moment is a record with its events.
type Moment struct {
	Record furl.Record
	Events []Event
}

// Timeline returns the events of the path that ends at head, of its records after the
// record after. Records that are
// not on the path, such as a truncation before a rewind, are not in it. A head
// that is not in the log is an error wrapping furl.ErrNotOnPath.
func Timeline(log *furl.Log, after, head furl.Seq, limit int) ([]Moment, error) {
	if head > furl.Seq(log.Len()) {
		return nil, fmt.Errorf("timeline to record %d: %w", head, furl.ErrNotOnPath)
	}
	var moments []Moment
	s := new(furl.State)
	for _, r := range log.Path(head) {
		if r.Seq > after {
			if events := Of(s, r, limit); len(events) > 0 {
				moments = append(moments, Moment{r, events})
			}
		}
		if err := s.Apply(r); err != nil {
			return nil, err
		}
	}
	return moments, nil
}
