package furl

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse gives back the record that Append wrote. Space between the tokens does
// not matter, except in what a message had on the wire. Fields that are
// unknown are passed over. It keeps nothing of data.
func (j RecordJSON) Parse(data []byte) (Record, error) {
	var in recordJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return Record{}, fmt.Errorf("read a record: %w", err)
	}
	body, err := in.body(j.Codec)
	if err != nil {
		return Record{}, fmt.Errorf("read record %d: %w", in.Seq, err)
	}
	return Record{Seq: in.Seq, Parent: in.Parent, At: time.Time(in.At), By: Actor(in.By), Body: body, Chain: Digest(in.Chain)}, nil
}

// ParseBlock gives back a block that Block wrote.
func (j RecordJSON) ParseBlock(data []byte) (Block, error) {
	var in blockJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return Block{}, fmt.Errorf("read a block: %w", err)
	}
	return in.block(0)
}

// recordJSON has the fields of all kinds of record; no two kinds use one name
// for different things.
type recordJSON struct {
	Seq    Seq        `json:"seq"`
	Parent Seq        `json:"parent"`
	At     timeJSON   `json:"at"`
	By     actorJSON  `json:"by"`
	Kind   string     `json:"kind"`
	Chain  digestJSON `json:"chain"`

	messageJSON
	reductionJSON
	restorationJSON
	takeoverJSON
	exchangeJSON

	From Seq `json:"from"`
}

type (
	messageJSON struct {
		Role   textJSON     `json:"role"`
		Format textJSON     `json:"format"`
		Digest digestJSON   `json:"digest"`
		Tokens []int        `json:"tokens"`
		Blocks *[]blockJSON `json:"blocks"`
		rawJSON
	}
	rawJSON struct {
		Raw       json.RawMessage `json:"raw"`
		RawText   *string         `json:"raw_text"`
		RawBase64 *[]byte         `json:"raw_base64"`
	}
	blockJSON struct {
		Kind       kindJSON        `json:"kind"`
		ID         textJSON        `json:"id"`
		Name       textJSON        `json:"name"`
		Text       textJSON        `json:"text"`
		Args       json.RawMessage `json:"args"`
		ArgsText   *string         `json:"args_text"`
		ArgsBase64 *[]byte         `json:"args_base64"`
		Error      bool            `json:"error"`
		Media      []mediaJSON     `json:"media"`
		Signature  int             `json:"signature"`
		CacheMark  bool            `json:"cache_mark"`
		Own        bool            `json:"own"`
		Start      int             `json:"start"`
		End        int             `json:"end"`
		Tokens     int             `json:"tokens"`
	}
	mediaJSON struct {
		Kind   kindJSON   `json:"kind"`
		Type   textJSON   `json:"type"`
		Bytes  int        `json:"bytes"`
		Width  int        `json:"width"`
		Height int        `json:"height"`
		Digest digestJSON `json:"digest"`
	}
	reductionJSON struct {
		Stage  textJSON  `json:"stage"`
		Reason textJSON  `json:"reason"`
		Before int       `json:"before"`
		After  int       `json:"after"`
		Scale  floatJSON `json:"scale"`
		Cost   struct {
			Rewrite    floatJSON `json:"rewrite"`
			PerRequest floatJSON `json:"per_request"`
			Remaining  floatJSON `json:"remaining"`
			Own        floatJSON `json:"own"`
		} `json:"cost"`
		Copy    Seq          `json:"copy"`
		Summary *summaryJSON `json:"summary"`
		Items   []itemJSON   `json:"items"`
	}
	summaryJSON struct {
		Number   int       `json:"number"`
		Text     textJSON  `json:"text"`
		Messages int       `json:"messages"`
		Model    textJSON  `json:"model"`
		Usage    usageJSON `json:"usage"`
		Request  textJSON  `json:"request"`
	}
	itemJSON struct {
		Spans    []spanJSON    `json:"spans"`
		Show     string        `json:"show"`
		Text     textJSON      `json:"text"`
		Tokens   int           `json:"tokens"`
		Note     textJSON      `json:"note"`
		At       timeJSON      `json:"at"`
		Messages []messageJSON `json:"messages"`
	}
	spanJSON struct {
		First posJSON `json:"first"`
		Last  posJSON `json:"last"`
	}
	posJSON struct {
		Msg   Seq `json:"msg"`
		Block int `json:"block"`
	}
	restorationJSON struct {
		Of    Seq        `json:"of"`
		Open  bool       `json:"open"`
		Hold  holdJSON   `json:"hold"`
		Spans []spanJSON `json:"spans"`
	}
	takeoverJSON struct {
		Branch Seq `json:"branch"`
		Moved  []struct {
			Old      Seq `json:"old"`
			New      Seq `json:"new"`
			Messages int `json:"messages"`
		} `json:"moved"`
	}
	exchangeJSON struct {
		Model      textJSON   `json:"model"`
		Preamble   digestJSON `json:"preamble"`
		View       digestJSON `json:"view"`
		Thinking   posJSON    `json:"thinking"`
		Usage      usageJSON  `json:"usage"`
		ResponseID textJSON   `json:"response_id"`
		Stop       textJSON   `json:"stop"`
		Estimated  int        `json:"estimated"`
		Plan       []struct {
			Stage   textJSON `json:"stage"`
			Skipped textJSON `json:"skipped"`
			Failed  bool     `json:"failed"`
			Before  int      `json:"before"`
			After   int      `json:"after"`
			Hidden  int      `json:"hidden"`
		} `json:"plan"`
	}
	usageJSON struct {
		Input        int `json:"input"`
		CacheRead    int `json:"cache_read"`
		CacheWrite   int `json:"cache_write"`
		CacheWrite1h int `json:"cache_write_1h"`
		Output       int `json:"output"`
		Reasoning    int `json:"reasoning"`
	}
)

func (in *recordJSON) body(codec func(Format) Codec) (Body, error) {
	switch in.Kind {
	case jsonMessage:
		return in.message(codec)
	case jsonReduction:
		return in.reduction(codec)
	case jsonRestoration:
		return &Restoration{Of: in.Of, Open: in.Open, Hold: Hold(in.Hold), Spans: spansOf(in.Spans)}, nil
	case jsonTakeover:
		t := &Takeover{Branch: in.Branch}
		for _, m := range in.Moved {
			t.Moved = append(t.Moved, Moved(m))
		}
		return t, nil
	case jsonExchange:
		return in.exchange(), nil
	case jsonHead:
		return &Head{From: in.From}, nil
	case "":
		return nil, errors.New("it has no kind")
	}
	return nil, fmt.Errorf("its kind %.40q is unknown", in.Kind)
}

func (in *messageJSON) message(codec func(Format) Codec) (*Message, error) {
	m := &Message{Role: Role(in.Role), Format: Format(in.Format), Digest: Digest(in.Digest)}
	m.Raw = oneOf(in.Raw, in.RawText, in.RawBase64)
	if in.Blocks == nil {
		back, err := decodeMessage(codec, m.Format, m.Raw)
		if err != nil {
			return nil, fmt.Errorf("decode the message: %w", err)
		}
		if in.Tokens != nil && len(in.Tokens) != len(back.Blocks) {
			return nil, fmt.Errorf("the message has %d blocks, and sizes of %d", len(back.Blocks), len(in.Tokens))
		}
		m.Blocks = back.Blocks
		for i, n := range in.Tokens {
			m.Blocks[i].Tokens = n
		}
		return m, nil
	}
	for i := range *in.Blocks {
		b, err := (*in.Blocks)[i].block(len(m.Raw))
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
		m.Blocks = append(m.Blocks, b)
	}
	return m, nil
}

// oneOf gives the bytes of a field in the one of its three forms that is there.
func oneOf(raw json.RawMessage, text *string, bytes *[]byte) json.RawMessage {
	switch {
	case raw != nil:
		return raw
	case text != nil:
		return append(json.RawMessage{}, *text...)
	case bytes != nil:
		return append(json.RawMessage{}, *bytes...)
	}
	return nil
}

// block gives the block of a message that has size bytes on the wire.
func (in *blockJSON) block(size int) (Block, error) {
	if in.Start < 0 || in.End < in.Start || in.End > size {
		return Block{}, fmt.Errorf("it stands at bytes %d to %d of %d", in.Start, in.End, size)
	}
	b := Block{
		Kind: Kind(in.Kind), ID: string(in.ID), Name: string(in.Name), Text: string(in.Text),
		Error: in.Error, Signature: in.Signature, CacheMark: in.CacheMark, Own: in.Own,
		Start: in.Start, End: in.End, Tokens: in.Tokens,
	}
	if args := oneOf(in.Args, in.ArgsText, in.ArgsBase64); len(args) > 0 {
		b.Args = args
	}
	for _, m := range in.Media {
		b.Media = append(b.Media, Media{
			Kind: Kind(m.Kind), Type: string(m.Type), Bytes: m.Bytes, Width: m.Width, Height: m.Height, Digest: Digest(m.Digest),
		})
	}
	return b, nil
}

func (in *recordJSON) reduction(codec func(Format) Codec) (*Reduction, error) {
	red := &Reduction{
		Stage: string(in.Stage), Reason: string(in.Reason), Before: in.Before, After: in.After,
		Scale: float64(in.Scale), Copy: in.Copy,
		Cost: Cost{
			Rewrite: float64(in.Cost.Rewrite), PerRequest: float64(in.Cost.PerRequest),
			Remaining: float64(in.Cost.Remaining), Own: float64(in.Cost.Own),
		},
	}
	if s := in.Summary; s != nil {
		red.Summary = &Summary{
			Number: s.Number, Text: string(s.Text), Messages: s.Messages, Model: string(s.Model),
			Usage: Usage(s.Usage), Request: string(s.Request),
		}
	}
	for i := range in.Items {
		show, err := in.Items[i].show(codec)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		red.Items = append(red.Items, Item{Spans: spansOf(in.Items[i].Spans), Show: show})
	}
	return red, nil
}

func (in *itemJSON) show(codec func(Format) Codec) (Show, error) {
	switch in.Show {
	case jsonIn:
		return In{Text: string(in.Text), Tokens: in.Tokens, Note: string(in.Note)}, nil
	case jsonMark:
		mark := Mark{At: time.Time(in.At)}
		for i := range in.Messages {
			m, err := in.Messages[i].message(codec)
			if err != nil {
				return nil, fmt.Errorf("message %d of the mark: %w", i, err)
			}
			mark.Messages = append(mark.Messages, m)
		}
		return mark, nil
	case jsonGone:
		return Gone{}, nil
	}
	return nil, fmt.Errorf("what it shows, %.40q, is unknown", in.Show)
}

func (in *recordJSON) exchange() *Exchange {
	x := &Exchange{
		Model: string(in.Model), Preamble: Digest(in.Preamble), View: Digest(in.View), Thinking: Pos(in.Thinking),
		Usage: Usage(in.Usage), ResponseID: string(in.ResponseID), Stop: string(in.Stop), Estimated: in.Estimated,
	}
	for _, p := range in.Plan {
		x.Plan = append(x.Plan, PlanStep{
			Stage: string(p.Stage), Skipped: string(p.Skipped), Failed: p.Failed,
			Before: p.Before, After: p.After, Hidden: p.Hidden,
		})
	}
	return x
}

func spansOf(in []spanJSON) []Span {
	var spans []Span
	for _, s := range in {
		spans = append(spans, Span{First: Pos(s.First), Last: Pos(s.Last)})
	}
	return spans
}

// textJSON is a string, or {"base64": …} of what is no UTF-8.
type textJSON string

func (t *textJSON) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var in struct {
			Base64 []byte `json:"base64"`
		}
		err := json.Unmarshal(data, &in)
		*t = textJSON(in.Base64)
		return err
	}
	return json.Unmarshal(data, (*string)(t))
}

// digestJSON is a digest in hexadecimal.
type digestJSON Digest

func (d *digestJSON) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(d) {
		return fmt.Errorf("%.80q is no digest", text)
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// floatJSON is a number, or the bits of one that JSON does not have.
type floatJSON float64

func (f *floatJSON) UnmarshalJSON(data []byte) error {
	var text string
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, (*float64)(f))
	}
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	hexadecimal, ok := strings.CutPrefix(text, "0x")
	bits, err := strconv.ParseUint(hexadecimal, 16, 64)
	if !ok || err != nil {
		return fmt.Errorf("%.40q is no number", text)
	}
	*f = floatJSON(math.Float64frombits(bits))
	return nil
}

// timeJSON is a time as RFC 3339 writes it, or a jsonTime.
type timeJSON time.Time

func (t *timeJSON) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var in jsonTime
		if err := json.Unmarshal(data, &in); err != nil {
			return err
		}
		if in.Nanos < 0 || in.Nanos > 999_999_999 {
			return fmt.Errorf("a time with %d nanoseconds", in.Nanos)
		}
		*t = timeJSON(inZone(time.Unix(in.Unix, in.Nanos), in.Offset))
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil || text == "" {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return err
	}
	_, offset := at.Zone()
	*t = timeJSON(inZone(at, offset))
	return nil
}

// inZone gives a time in a zone that depends on nothing but its offset, not on
// where the program runs.
func inZone(t time.Time, offset int) time.Time {
	if offset == 0 {
		return t.UTC()
	}
	return t.In(time.FixedZone("", offset))
}

type (
	actorJSON uint8
	kindJSON  uint8
	holdJSON  uint8
)

func (a *actorJSON) UnmarshalJSON(data []byte) error {
	return unmarshalEnum((*uint8)(a), data, actorNames[:])
}
func (k *kindJSON) UnmarshalJSON(data []byte) error {
	return unmarshalEnum((*uint8)(k), data, kindNames[:])
}
func (h *holdJSON) UnmarshalJSON(data []byte) error {
	return unmarshalEnum((*uint8)(h), data, holdNames)
}

// unmarshalEnum reads one of the names, or the number of what has none.
func unmarshalEnum(n *uint8, data []byte, names []string) error {
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, n)
	}
	var name string
	if err := json.Unmarshal(data, &name); err != nil {
		return err
	}
	i := slices.Index(names, name)
	if i < 0 {
		return fmt.Errorf("%.40q is none of %s", name, strings.Join(names, ", "))
	}
	*n = uint8(i)
	return nil
}
