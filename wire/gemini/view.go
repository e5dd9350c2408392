package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// EncodeView implements wire.API. Recorded contents of this format that are shown as
// recorded keep their bytes.
//
// All results of a step must be in the content after the calls. Other formats have one
// message for each result, and results of furl's tools are recorded apart from those of the
// client. So such results are joined with the ones after them. A result that was built gets
// the name of its call.
func (codec) EncodeView(v *furl.View) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, 0, len(v.Messages))
	joins := false // the last content has results that must be joined with others
	names := make(map[string]string)
	for i := range v.Messages {
		s := &v.Messages[i]
		raws, err := codec{}.EncodeMessage(named(s, names))
		if err != nil {
			return nil, fmt.Errorf("encode shown message %d: %w", i, err)
		}
		results := startsWithResult(s)
		for _, raw := range raws {
			if joins && results {
				out[len(out)-1] = joinContents(out[len(out)-1], raw)
				continue
			}
			out = append(out, raw)
		}
		if len(raws) > 0 {
			joins = results && (s.Msg.Format != furl.FormatGemini || s.Msg.HasOwn())
		}
	}
	return out, nil
}

// named returns a shown message whose results have the names of their calls, if it has no
// bytes of this format. names are the names of calls by id, to which it adds.
func named(s *furl.Shown, names map[string]string) furl.Shown {
	out := *s
	for i := range s.Blocks {
		b := s.Blocks[i].Block
		switch {
		case b.Kind == furl.KindCall:
			names[b.ID] = b.Name
		case b.Kind == furl.KindResult && b.Name == "" && names[b.ID] != "" && (s.Msg.Format != furl.FormatGemini || s.Msg.Raw == nil):
			if &out.Blocks[0] == &s.Blocks[0] {
				out.Blocks = slices.Clone(s.Blocks)
			}
			with := *b
			with.Name = names[b.ID]
			out.Blocks[i].Block = &with
		}
	}
	return out
}

// joinContents returns the first content with the parts of both.
func joinContents(a, b json.RawMessage) json.RawMessage {
	parts := append(rawjson.Elements(value(a, "parts")), rawjson.Elements(value(b, "parts"))...)
	return with(a, "parts", bracketed(parts...))
}

func bracketed(items ...[]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}
