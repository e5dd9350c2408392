package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/protocol"
)

// facts are read from the body and the headers of a request.
type facts struct {
	fields []string // the names at the top level, in order
	stops  []string
	terms  furl.Terms // that the request asks for, and gets
	// Anthropic.
	betas    map[string]bool
	thinking string // its type: "", "disabled", "enabled", "adaptive"
	budget   int
	omitted  bool // thinking is signed but not shown
	drop     bool // thinking that no longer fits is dropped, not refused
	bindings bool // block_binding was given
	hasMax   bool
	// outputFormat: the answer must be in a format.
	outputFormat bool
	auto         time.Duration // the lifetime of an automatic breakpoint; 0 if there is none
	system       []byte
	tools        []byte
	toolChoice   string // its type; "" if not given
	// temperature is as given, nil if not.
	temperature []byte
	salt        []byte // what changes the cache of messages without being part of them
	management  []byte
	compaction  []byte
	thread      *thread // of the request, nil if it has none
	dropped     []transformation
	bound       binding
	preamble    prefix // tools and instructions
	edits       editing
	// OpenAI.
	includeUsage bool
	// Of Chat Completions: stream_options, and fields that require tools.
	streamOptions []byte
	wantTools     map[string]bool
	choices       int
	stored        bool // Responses stores the answer
	previous      string
	encrypted     bool              // encrypted reasoning is requested
	threshold     int               // at which Responses compacts; 0: never
	echo          map[string][]byte // fields that the answer repeats
}

// limits of what is read from a request.
const (
	maxStops  = 16
	maxFields = 200
)

// read reads the fields common to all formats and passes the others to field.
func (f *facts) read(body []byte, field func(key string, r *rawjson.Reader)) {
	r := rawjson.NewReader(body)
	if r.Kind() != '{' {
		return
	}
	for key := range r.Fields() {
		name := string(key)
		if len(f.fields) < maxFields {
			f.fields = append(f.fields, name)
		}
		switch name {
		case "stop_sequences", "stop":
			f.readStops(r)
		default:
			field(name, r)
		}
	}
}

func (f *facts) readStops(r *rawjson.Reader) {
	f.stops = nil
	switch r.Kind() {
	case '"':
		s, _ := r.String()
		f.stops = []string{s}
	case '[':
		for range r.Elements() {
			if s, ok := r.String(); ok && len(f.stops) < maxStops {
				f.stops = append(f.stops, s)
			}
		}
	}
}

// unknown returns the first field that the provider does not accept.
func (f *facts) unknown(known map[string]string) string {
	for _, name := range f.fields {
		if _, ok := known[name]; !ok {
			return clipped(name)
		}
	}
	return ""
}

// stringField returns a string field of an object, "" if it has none.
func stringField(raw []byte, name string) string {
	r := rawjson.NewReader(raw)
	if r.Kind() != '{' {
		return ""
	}
	out := ""
	for key := range r.Fields() {
		if string(key) == name {
			out, _ = r.String()
		}
	}
	return out
}

func intField(raw []byte, name string) (n int, ok bool) {
	r := rawjson.NewReader(raw)
	if r.Kind() != '{' {
		return 0, false
	}
	for key := range r.Fields() {
		if string(key) == name {
			n, ok = r.Int()
		}
	}
	return n, ok
}

// lifetime returns the lifetime of the entry at a breakpoint; 0 if there is
// none. A breakpoint on a part of a result counts as one on the result.
func lifetime(block []byte) time.Duration {
	mark := rawjson.Field(block, "cache_control")
	if mark == nil || string(mark) == "null" {
		r := rawjson.NewReader(rawjson.Field(block, "content"))
		if r.Kind() != '[' {
			return 0
		}
		var d time.Duration
		for range r.Elements() {
			d = max(d, ttl(rawjson.Field(r.Raw(), "cache_control")))
		}
		return d
	}
	return ttl(mark)
}

func ttl(mark []byte) time.Duration {
	switch {
	case len(mark) == 0 || mark[0] != '{':
		return 0
	case stringField(mark, "ttl") == "1h":
		return time.Hour
	}
	return 5 * time.Minute
}

// refused returns a refusal with status 400.
func refused(message string) *protocol.Refusal {
	return &protocol.Refusal{Status: 400, Type: "invalid_request_error", Message: message}
}

func betasOf(values []string) map[string]bool {
	betas := make(map[string]bool)
	for _, v := range values {
		for name := range strings.SplitSeq(v, ",") {
			if len(betas) < maxFields {
				betas[strings.TrimSpace(name)] = true
			}
		}
	}
	return betas
}

// readTerm reads a term that changes the price. Those named usual do not.
func (f *facts) readTerm(r *rawjson.Reader, to *string, usual ...string) {
	if s, ok := r.String(); ok && !slices.Contains(usual, s) {
		*to = s
	}
}
