package openai

import (
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
)

// part is one element of a list of content parts, of either format: message
// content, a result's output, a reasoning summary. Spans count from the start
// of the message.
type part struct {
	span  rawjson.Span // the element
	kind  furl.Kind
	typ   string
	text  string
	words rawjson.Span // the string with the text
	mark  rawjson.Span // the value of its cache breakpoint; empty if it has none
	// markName is the field of the breakpoint: prompt_cache_breakpoint, or
	// cache_control as some compatible servers call it.
	markName string
	media    furl.Media   // of images and documents
	source   rawjson.Span // the string with a URL, data or a file's id
	isURL    bool         // source is the URL of an image
	secret   int          // encrypted or binary bytes of an opaque part
}

// The fields of a part that furl uses, and those of the objects in its
// fields.
var (
	fileFields = []string{"file_id", "file_url", "file_data", "data", "format"}
	partNames  = rawjson.NewNames(append([]string{"type", "text", "refusal", "prompt_cache_breakpoint", "cache_control",
		"image_url", "file", "input_audio"}, fileFields...)...)
	imageNames = rawjson.NewNames("url")
	fileNames  = rawjson.NewNames(fileFields...)
)

// partFields are the fields of a part that furl uses.
type partFields struct {
	text, refusal, url, data, fileURL, fileID rawjson.Span
	format                                    string
}

// readPart consumes a part. base is the start of the message in b.
func readPart(b []byte, r *rawjson.Reader, base int) part {
	p := part{span: rawjson.Span{Start: r.Offset()}}
	if r.Kind() == '"' { // not in the specification, but accepted by some servers
		p.span = r.Skip()
		p.words = p.span
		p.typ, p.text = "text", rawjson.Unquote(p.words.Of(b))
		p.rebase(base)
		return p
	}
	var f partFields
	if r.Kind() == '{' {
		p.readFields(r, &f)
	} else {
		r.Skip()
	}
	p.span.End = r.Pos()
	if r.Err() == nil {
		p.settle(b, &f)
	}
	p.rebase(base)
	return p
}

func (p *part) readFields(r *rawjson.Reader, f *partFields) {
	for key := range r.FieldsOf(partNames) {
		switch string(key) {
		case "type":
			p.typ, _ = r.String()
		case "text":
			f.text = r.Skip()
		case "refusal":
			f.refusal = r.Skip()
		case "prompt_cache_breakpoint", "cache_control":
			if r.Kind() != 'n' && r.Kind() != 'f' {
				p.markName = string(key)
				p.mark = r.Skip()
			}
		case "image_url":
			if r.Kind() != '{' {
				f.url = r.Skip()
				continue
			}
			for key := range r.FieldsOf(imageNames) {
				if string(key) == "url" {
					f.url = r.Skip()
				}
			}
		case "file", "input_audio":
			if r.Kind() != '{' {
				continue
			}
			for key := range r.FieldsOf(fileNames) {
				f.file(string(key), r)
			}
		default:
			f.file(string(key), r)
		}
	}
}

// file reads a field that identifies the file of a part.
func (f *partFields) file(key string, r *rawjson.Reader) {
	switch key {
	case "file_id":
		f.fileID = r.Skip()
	case "file_url":
		f.fileURL = r.Skip()
	case "file_data", "data":
		f.data = r.Skip()
	case "format":
		f.format, _ = r.String()
	}
}

// settle decides the kind of the part.
func (p *part) settle(b []byte, f *partFields) {
	switch p.typ {
	case "text", "input_text", "output_text", "summary_text", "reasoning_text", "":
		p.words = f.text
	case "refusal":
		if p.words = f.refusal; p.words.Len() == 0 {
			p.words = f.text
		}
	case "image_url", "input_image":
		p.kind = furl.KindImage
		p.from(b, f.url, f.fileID)
		p.isURL = p.source == f.url && p.source.Len() > 0
		return
	case "file", "input_file":
		p.kind = furl.KindDocument
		p.from(b, f.data, f.fileURL, f.fileID)
		return
	case "input_audio":
		p.kind = furl.KindDocument
		p.from(b, f.data, f.fileID)
		if p.media.Type == "" && f.format != "" {
			p.media.Type = "audio/" + f.format
		}
		return
	}
	if p.words.Len() > 0 && b[p.words.Start] == '"' {
		p.kind, p.text = furl.KindText, rawjson.Unquote(p.words.Of(b))
		return
	}
	p.kind, p.words = furl.KindOpaque, rawjson.Span{}
	var w words
	w.walk(rawjson.NewReader(p.span.Of(b)), "", 0)
	p.text, p.secret = w.text.String(), w.secret
}

// from uses the first source that exists.
func (p *part) from(b []byte, sources ...rawjson.Span) {
	for _, s := range sources {
		if s.Len() > 0 && b[s.Start] == '"' {
			p.source = s
			break
		}
	}
	p.media = mediaOf(p.kind, p.source.Of(b))
}

func (p *part) rebase(base int) {
	for _, s := range []*rawjson.Span{&p.span, &p.words, &p.mark, &p.source} {
		if s.End > 0 {
			s.Start -= base
			s.End -= base
		}
	}
}

// block returns the furl block of the part.
func (p *part) block() furl.Block {
	bl := furl.Block{
		Kind: p.kind, Text: p.text, CacheMark: p.mark.Len() > 0, Signature: p.secret,
		Start: p.span.Start, End: p.span.End,
	}
	switch p.kind {
	case furl.KindImage, furl.KindDocument:
		bl.Media = []furl.Media{p.media}
	case furl.KindOpaque:
		bl.Name, bl.Fixed = p.typ, !p.known()
	}
	return bl
}

// joinParts returns the text of a result's or a reasoning item's parts, its
// media, and whether one of them has a cache breakpoint.
func joinParts(parts []part, sep string) (text string, media []furl.Media, marked bool) {
	var words []string
	for i := range parts {
		p := &parts[i]
		if p.text != "" {
			words = append(words, p.text)
		}
		if p.kind == furl.KindImage || p.kind == furl.KindDocument {
			media = append(media, p.media)
		}
		marked = marked || p.mark.Len() > 0
	}
	return strings.Join(words, sep), media, marked
}

// readParts consumes a list of parts and appends them to parts.
func readParts(b []byte, r *rawjson.Reader, base int, parts []part) []part {
	for range r.Elements() {
		parts = append(parts, readPart(b, r, base))
	}
	return parts
}

// textPart returns a text part with the given type name.
func textPart(typ, text string) []byte {
	out := appendField([]byte{'{'}, "type", quote(typ))
	out = appendField(out, "text", quote(text))
	return append(out, '}')
}

// inPlaceOf returns a text part that replaces parts and keeps the last cache
// breakpoint among them.
func inPlaceOf(raw []byte, parts []part, typ, text string) []byte {
	out := textPart(typ, text)
	for i := len(parts) - 1; i >= 0; i-- {
		if p := &parts[i]; p.mark.Len() > 0 {
			out = appendField(out[:len(out)-1], p.markName, p.mark.Of(raw))
			return append(out, '}')
		}
	}
	return out
}
