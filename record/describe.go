package record

import (
	"fmt"
	"slices"

	"github.com/furlhq/furl"
)

// alternative is one of several things that may follow.
type alternative struct {
	code    byte
	name    string
	version byte // of the format: the oldest that has it
}

// bodies are the kinds of record, in the order of indexOf.
var bodies = []alternative{
	{'m', "message", 1}, {'r', "reduction", 1}, {'t', "restoration", 1},
	{'o', "takeover", 2}, {'x', "exchange", 1}, {'h', "head", 1}, {'s', "sealed", 4},
}

// versionOf is the oldest version of the format that has everything in a body.
func versionOf(b furl.Body, kind int) byte {
	switch b := b.(type) {
	case *furl.Exchange:
		switch {
		case !b.Terms.Usual():
			return 6
		case len(b.Passes) > 0:
			return 5
		case b.Request != (furl.RequestParts{}):
			return 3
		}
	case *furl.Message:
		if slices.ContainsFunc(b.Blocks, func(b furl.Block) bool { return b.Half != 0 || b.Caller != "" }) {
			return 5
		}
	}
	return bodies[kind].version
}

// indexOf is the index of a body's kind, -1 if it is unknown.
func indexOf(b furl.Body) int {
	switch b.(type) {
	case *furl.Message:
		return 0
	case *furl.Reduction:
		return 1
	case *furl.Restoration:
		return 2
	case *furl.Takeover:
		return 3
	case *furl.Exchange:
		return 4
	case *furl.Head:
		return 5
	case *furl.Sealed:
		return 6
	}
	return -1
}

// newBody is an empty body of a kind.
func newBody(index int) furl.Body {
	switch index {
	case 0:
		return new(furl.Message)
	case 1:
		return new(furl.Reduction)
	case 2:
		return new(furl.Restoration)
	case 3:
		return new(furl.Takeover)
	case 4:
		return new(furl.Exchange)
	case 5:
		return new(furl.Head)
	}
	return new(furl.Sealed)
}

// describe is a record, but for the version of its format.
func describe(e *encoding, r *furl.Record) {
	e.seq("seq", &r.Seq)
	e.seq("parent", &r.Parent)
	e.time("at", &r.At)
	e.enum("by", (*uint8)(&r.By), actorNames)
	kind := e.union("kind", bodies, indexOf(r.Body))
	if kind < 0 {
		return
	}
	if e.reading() {
		r.Body = newBody(kind)
	}
	switch b := r.Body.(type) {
	case *furl.Message:
		e.digest("chain", &r.Chain)
		message(e, b)
	case *furl.Reduction:
		reduction(e, b)
	case *furl.Restoration:
		restoration(e, b)
	case *furl.Takeover:
		e.ref("branch", &b.Branch)
		for i := range makeList(e, "moved", &b.Moved, 3) {
			e.element()
			moved(e, &b.Moved[i])
			e.close()
		}
		e.closeList(len(b.Moved))
	case *furl.Exchange:
		exchange(e, b)
	case *furl.Head:
		e.seq("from", &b.From)
	case *furl.Sealed:
		e.digest("chain", &r.Chain)
		e.bool("message", &b.Message)
		e.count("size", &b.Size)
		e.sealed(&b.Data)
	}
}

func message(e *encoding, m *furl.Message) {
	e.string("role", (*string)(&m.Role))
	e.string("format", (*string)(&m.Format))
	e.digest("digest", &m.Digest)
	e.content(m)
}

// The flags of a block, in binary.
const (
	flagError = 1 << iota
	flagCacheMark
	flagMedia
	flagSignature
	flagOwn
	flagObservation
	flagErrorText
	flagFixed
)

func flagsOf(b *furl.Block) (flags uint8) {
	if b.Error {
		flags |= flagError
	}
	if b.CacheMark {
		flags |= flagCacheMark
	}
	if len(b.Media) > 0 {
		flags |= flagMedia
	}
	if b.Signature != 0 {
		flags |= flagSignature
	}
	if b.Own {
		flags |= flagOwn
	}
	if b.Observation {
		flags |= flagObservation
	}
	if b.ErrorText {
		flags |= flagErrorText
	}
	if b.Fixed {
		flags |= flagFixed
	}
	return flags
}

// block has its fields in another order in JSON, which is older than this
// description and is read by people: its words come first.
func block(e *encoding, b *furl.Block) {
	e.enum("kind", (*uint8)(&b.Kind), kindNames)
	if e.named() {
		blockWords(e, b)
		e.bool("error", &b.Error)
		e.bool("error_text", &b.ErrorText)
		blockMedia(e, b)
		e.int("signature", &b.Signature)
		e.bool("cache_mark", &b.CacheMark)
		e.bool("own", &b.Own)
		e.bool("observation", &b.Observation)
		e.bool("fixed", &b.Fixed)
		blockPair(e, b)
		blockPlace(e, b)
		return
	}
	flags := e.flags(flagsOf(b))
	if e.reading() { // a recorded block is never written to
		b.Error, b.CacheMark, b.Own = flags&flagError != 0, flags&flagCacheMark != 0, flags&flagOwn != 0
		b.Observation, b.ErrorText, b.Fixed = flags&flagObservation != 0, flags&flagErrorText != 0, flags&flagFixed != 0
	}
	if e.version >= 5 {
		blockPair(e, b)
	}
	blockPlace(e, b)
	blockWords(e, b)
	if flags&flagSignature != 0 {
		e.int("signature", &b.Signature)
	}
	if flags&flagMedia != 0 {
		blockMedia(e, b)
	}
}

func blockPair(e *encoding, b *furl.Block) {
	e.enum("half", (*uint8)(&b.Half), halfNames)
	e.string("caller", &b.Caller)
}

func blockPlace(e *encoding, b *furl.Block) {
	e.int("start", &b.Start)
	e.int("end", &b.End)
	e.span(b.Start, b.End)
	e.int("tokens", &b.Tokens)
}

func blockWords(e *encoding, b *furl.Block) {
	e.string("id", &b.ID)
	e.string("name", &b.Name)
	e.text("text", &b.Text)
	e.json("args", &b.Args)
}

func blockMedia(e *encoding, b *furl.Block) {
	for i := range makeList(e, "media", &b.Media, 37) {
		e.element()
		media(e, &b.Media[i])
		e.close()
	}
	e.closeList(len(b.Media))
}

func media(e *encoding, m *furl.Media) {
	e.enum("kind", (*uint8)(&m.Kind), kindNames)
	e.string("type", &m.Type)
	e.int("bytes", &m.Bytes)
	e.int("width", &m.Width)
	e.int("height", &m.Height)
	e.digest("digest", &m.Digest)
}

func reduction(e *encoding, r *furl.Reduction) {
	e.string("stage", &r.Stage)
	e.string("reason", &r.Reason)
	e.int("before", &r.Before)
	e.int("after", &r.After)
	e.float("scale", &r.Scale)
	e.open("cost")
	e.float("rewrite", &r.Cost.Rewrite)
	e.float("per_request", &r.Cost.PerRequest)
	e.float("remaining", &r.Cost.Remaining)
	e.float("own", &r.Cost.Own)
	e.close()
	e.ref("copy", &r.Copy)
	if e.openIf("summary", r.Summary != nil) {
		if e.reading() {
			r.Summary = new(furl.Summary)
		}
		summary(e, r.Summary)
		e.close()
	}
	for i := range makeList(e, "items", &r.Items, 2) {
		e.element()
		item(e, &r.Items[i])
		e.close()
	}
	e.closeList(len(r.Items))
}

func summary(e *encoding, s *furl.Summary) {
	e.int("number", &s.Number)
	e.string("text", &s.Text)
	e.int("messages", &s.Messages)
	e.string("model", &s.Model)
	usage(e, &s.Usage)
	e.string("request", &s.Request)
}

func usage(e *encoding, u *furl.Usage) {
	e.open("usage")
	e.int("input", &u.Input)
	e.int("cache_read", &u.CacheRead)
	e.int("cache_write", &u.CacheWrite)
	e.int("cache_write_1h", &u.CacheWrite1h)
	e.int("output", &u.Output)
	e.int("reasoning", &u.Reasoning)
	e.close()
}

func item(e *encoding, it *furl.Item) {
	for i := range makeList(e, "spans", &it.Spans, 4) {
		e.element()
		span(e, &it.Spans[i])
		e.close()
	}
	e.closeList(len(it.Spans))
	show(e, &it.Show)
}

func span(e *encoding, s *furl.Span) {
	e.pos("first", &s.First)
	e.pos("last", &s.Last)
}

// shows are what an item may show, in the order of show.
var shows = []alternative{{'i', "in", 1}, {'m', "mark", 1}, {'g', "gone", 1}}

func show(e *encoding, s *furl.Show) {
	var in furl.In
	var mark furl.Mark
	kind := 2
	switch s := (*s).(type) {
	case furl.In:
		kind, in = 0, s
	case furl.Mark:
		kind, mark = 1, s
	}
	kind = e.union("show", shows, kind)
	switch kind {
	case 0:
		e.string("text", &in.Text)
		e.int("tokens", &in.Tokens)
		e.string("note", &in.Note)
	case 1:
		e.time("at", &mark.At)
		for i := range makeList(e, "messages", &mark.Messages, 2) {
			e.element()
			messageInside(e, &mark.Messages[i])
			e.close()
		}
		e.closeList(len(mark.Messages))
	}
	switch {
	case !e.reading():
	case kind == 0:
		*s = in
	case kind == 1:
		*s = mark
	default:
		*s = furl.Gone{}
	}
}

func messageInside(e *encoding, m **furl.Message) {
	if e.reading() {
		*m = new(furl.Message)
	}
	e.inside(*m)
	message(e, *m)
}

// restoration has its spans last in JSON.
func restoration(e *encoding, r *furl.Restoration) {
	e.ref("of", &r.Of)
	e.bool("open", &r.Open)
	if e.named() {
		e.enum("hold", (*uint8)(&r.Hold), holdNames)
	}
	for i := range makeList(e, "spans", &r.Spans, 4) {
		e.element()
		span(e, &r.Spans[i])
		e.close()
	}
	e.closeList(len(r.Spans))
	if !e.named() {
		e.enum("hold", (*uint8)(&r.Hold), holdNames)
	}
}

func moved(e *encoding, m *furl.Moved) {
	e.ref("old", &m.Old)
	e.ref("new", &m.New)
	e.count("messages", &m.Messages)
}

func exchange(e *encoding, x *furl.Exchange) {
	e.string("model", &x.Model)
	e.digest("preamble", &x.Preamble)
	e.digest("view", &x.View)
	e.pos("thinking", &x.Thinking)
	usage(e, &x.Usage)
	e.string("response_id", &x.ResponseID)
	e.string("stop", &x.Stop)
	e.int("estimated", &x.Estimated)
	for i := range makeList(e, "plan", &x.Plan, 6) {
		e.element()
		planStep(e, &x.Plan[i])
		e.close()
	}
	e.closeList(len(x.Plan))
	if e.named() || e.version >= 3 {
		requestParts(e, &x.Request)
	}
	if e.named() || e.version >= 5 {
		for i := range makeList(e, "passes", &x.Passes, 8) {
			e.element()
			pass(e, &x.Passes[i])
			e.close()
		}
		e.closeList(len(x.Passes))
	}
	if e.named() || e.version >= 6 {
		terms(e, &x.Terms)
	}
}

func terms(e *encoding, t *furl.Terms) {
	e.open("terms")
	e.string("speed", &t.Speed)
	e.string("geo", &t.Geo)
	e.string("tier", &t.Tier)
	for i := range makeList(e, "tools", &t.Tools, 2) {
		e.element()
		e.string("name", &t.Tools[i].Name)
		e.count("uses", &t.Tools[i].Uses)
		e.close()
	}
	e.closeList(len(t.Tools))
	e.close()
}

func pass(e *encoding, p *furl.Pass) {
	e.string("kind", &p.Kind)
	e.string("model", &p.Model)
	usage(e, &p.Usage)
}

func requestParts(e *encoding, p *furl.RequestParts) {
	e.open("request")
	e.optionalDigest("frame", &p.Frame)
	e.optionalDigest("system", &p.System)
	e.optionalDigest("tools", &p.Tools)
	e.string("received", &p.Received)
	e.string("sent", &p.Sent)
	e.close()
}

func planStep(e *encoding, p *furl.PlanStep) {
	e.string("stage", &p.Stage)
	e.string("skipped", &p.Skipped)
	e.bool("failed", &p.Failed)
	e.int("before", &p.Before)
	e.int("after", &p.After)
	e.int("hidden", &p.Hidden)
}

// makeList begins a list and, when reading, makes room for its elements.
func makeList[S ~[]T, T any](e *encoding, name string, v *S, size int) S {
	n := e.list(name, len(*v), size)
	if e.reading() && n > 0 {
		*v = make(S, n)
	}
	return *v
}

// The names of enumerations.
var (
	kindNames  = namesOf(furl.KindText, furl.KindOpaque)
	actorNames = namesOf(furl.Client, furl.Import)
	holdNames  = []string{"none", "release", "keep", "pin"}
	halfNames  = []string{"none", "call", "answer"}
)

// namesOf lists the names of an enumeration's values, which have no gaps.
func namesOf[T interface {
	~uint8
	fmt.Stringer
}](first, last T) (names []string) {
	for v := first; v <= last; v++ {
		names = append(names, v.String())
	}
	return names
}
