package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/furlhq/furl"
)

// writeFurl writes a session in the furl format.
func (x *exporter) writeFurl() error {
	header, err := furlHeaderOf(x.s)
	if err != nil {
		return err
	}
	x.put(header)
	x.put([]byte{'\n'})
	records := x.s.Log.Records(0)
	var line []byte
	for i, r := range records {
		if line, err = furlForm.Append(line[:0], r); err != nil {
			return err
		}
		x.put(append(line, '\n'))
		if _, ok := r.Body.(*furl.Message); ok {
			x.done.Messages++
		}
		if err := x.progress(i+1, len(records)); err != nil {
			return err
		}
	}
	return nil
}

// versionOf returns the version of the format that a log needs: versions of
// furl that know only version 1 cannot read takeovers.
func versionOf(log *furl.Log) int {
	for _, r := range log.Records(0) {
		if _, ok := r.Body.(*furl.Takeover); ok {
			return furlVersion
		}
	}
	return 1
}

// furlHeaderOf returns the header of a session as a line without its newline.
func furlHeaderOf(s *Session) ([]byte, error) {
	h := furlHeader{Format: furlName, Version: versionOf(s.Log), ID: s.ID, Parent: s.Parent, Records: s.Log.Len(), Meta: s.Meta}
	if h.Meta.Title == "" {
		h.Meta.Title = s.Title
	}
	if h.Meta.Model == "" {
		h.Meta.Model = s.Model
	}
	if h.Meta.Format == "" {
		h.Meta.Format = s.Wire
	}
	for i := range s.Preamble {
		h.Preamble = append(h.Preamble, furlForm.AppendBlock(nil, &s.Preamble[i]))
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h); err != nil {
		return nil, fmt.Errorf("write header of session %s: %w", s.ID, err)
	}
	return []byte(strings.TrimSuffix(out.String(), "\n")), nil
}
