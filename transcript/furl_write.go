package transcript

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

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
	for _, content := range x.s.Contents {
		x.put(append(appendContent(nil, content), '\n'))
	}
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

// appendContent appends a content as a line: as a text, or in base64 if it is
// not UTF-8.
func appendContent(out, content []byte) []byte {
	if utf8.Valid(content) {
		text, _ := json.Marshal(string(content)) // a string: no error
		return append(append(append(out, contentText...), text...), '}')
	}
	out = base64.StdEncoding.AppendEncode(append(append(out, contentBase64...), '"'), content)
	return append(out, `"}`...)
}

// versionOf returns the version of the format that a log needs: versions of
// furl that know only version 1 cannot read takeovers, and those that know only
// version 2 cannot read bodies of requests.
func versionOf(log *furl.Log) int {
	version := 1
	for _, r := range log.Records(0) {
		switch b := r.Body.(type) {
		case *furl.Takeover:
			version = 2
		case *furl.Exchange:
			if b.Request != (furl.RequestParts{}) {
				return 3
			}
		}
	}
	return version
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
