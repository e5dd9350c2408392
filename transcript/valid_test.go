package transcript

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/wire/anthropic"
)

// requestBody is the body of a request with the messages of a view.
func requestBody(codec protocol.Codec, v *furl.View) ([]byte, error) {
	list := []json.RawMessage{}
	if codec.Format() == furl.FormatAnthropic {
		var err error
		if list, err = anthropic.EncodeMessages(v); err != nil {
			return nil, err
		}
	} else if all, ok := codec.(interface {
		EncodeMessages(v *furl.View) ([]json.RawMessage, error)
	}); ok {
		var err error
		if list, err = all.EncodeMessages(v); err != nil {
			return nil, err
		}
	} else {
		for i := range v.Messages {
			raws, err := codec.EncodeMessage(v.Messages[i])
			if err != nil {
				return nil, fmt.Errorf("message %d: %w", i, err)
			}
			list = append(list, raws...)
		}
	}
	field := "messages"
	if codec.Format() == furl.FormatResponses {
		field = "input"
	}
	return json.Marshal(map[string]any{"model": "m", "max_tokens": 1, field: list})
}

// checkRequests checks that the provider accepts the view at every request,
// with prefill also a view that ends with the model's message. It returns the
// number of requests checked.
func checkRequests(t *testing.T, s *Session, prefill bool) int {
	t.Helper()
	codec := codecOf(s.Wire)
	path := s.Log.Path(s.Log.Head())
	// For a long session about twenty requests, and those directly after a reduction.
	every, reduced := 1+len(path)/60, false
	n, failed := 0, 0
	st := new(furl.State)
	for i, r := range path {
		if _, ok := r.Body.(*furl.Reduction); ok {
			reduced = true
		}
		if _, ok := r.Body.(*furl.Exchange); ok && (reduced || i%every == 0) {
			reduced = false
			body, err := requestBody(codec, st.View(furl.Model{}))
			if err == nil {
				var req *protocol.Request
				if req, err = codec.DecodeRequest(body); err == nil {
					err = codec.Validate(req, furl.Model{Format: s.Wire, Prefill: prefill, SystemInside: true})
				}
			}
			if n++; err != nil {
				if failed++; failed <= 3 {
					t.Errorf("session %s, request at record %d: %v", s.ID, r.Seq, err)
				}
			}
		}
		if err := st.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	if failed > 3 {
		t.Errorf("session %s: %d of %d requests are refused", s.ID, failed, n)
	}
	return n
}

// Every request of every recording is one that its provider would accept.
func TestRecordingsAreValid(t *testing.T) {
	eachRecording(t, func(name string, rec *Recording) {
		t.Run(name, func(t *testing.T) {
			n := 0
			for _, s := range rec.Sessions {
				n += checkRequests(t, s, rec.Format == claudeCode.name) // its oldest models accept it
			}
			t.Logf("%s: %d requests", rec.Format, n)
		})
	})
}
