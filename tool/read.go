package tool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/furlhq/furl/internal/numbers"
)

const (
	maxLines    = 2000    // lines of a file in one result, unless the call has a limit
	maxRead     = 60_000  // bytes of a file in one result
	maxLine     = 2000    // bytes of one line in a result
	maxImage    = 3750000 // bytes: providers take 5 MB of base64
	sniffLength = 8000    // bytes in which a zero byte marks a binary file
)

type readInput struct {
	Path    string `json:"path"`
	Offset  int    `json:"offset"`
	Limit   int    `json:"limit"`
	Numbers bool   `json:"numbers"`
}

func (f *Folder) readTool() Tool {
	return define(Tool{
		Name: "read_file",
		Description: "Read a text file or an image (PNG, JPEG, GIF, WebP). " +
			"A long file is cut; the result says at which line to continue.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"Path of the file, relative to the working folder."},` +
			`"offset":{"type":"integer","minimum":1,"description":"First line to return. Default: 1."},` +
			`"limit":{"type":"integer","minimum":1,"description":"Maximum number of lines. Default: 2000."},` +
			`"numbers":{"type":"boolean","description":"Put the line number and a tab before each line. Default: false."}` +
			`},"required":["path"],"additionalProperties":false}`),
	}, nil, f.read)
}

// read returns the lines of a file or an image.
func (f *Folder) read(ctx context.Context, in readInput) (Result, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return Result{}, fmt.Errorf("invalid offset %d or limit %d: expected positive numbers", in.Offset, in.Limit)
	}
	_, file, info, err := f.open(in.Path)
	if err != nil {
		return Result{}, err
	}
	defer file.Close()
	head := make([]byte, sniffLength)
	n, err := io.ReadFull(file, head)
	if err != nil && !isEOF(err) {
		return Result{}, fileError(in.Path, err)
	}
	head = head[:n]
	if kind := imageType(head); kind != "" {
		data, err := io.ReadAll(io.LimitReader(io.MultiReader(bytes.NewReader(head), file), maxImage+1))
		switch {
		case err != nil:
			return Result{}, fileError(in.Path, err)
		case len(data) > maxImage:
			return Result{}, fmt.Errorf("the image %q has %s bytes: the maximum is %s", in.Path, numbers.Thousands(info.Size()), numbers.Thousands(maxImage))
		}
		return Result{Parts: []Part{{Type: kind, Data: data}}}, nil
	}
	if err := textual(in.Path, head); err != nil {
		return Result{}, err
	}
	head = bytes.TrimPrefix(head, byteOrderMark)
	text, err := excerpt(ctx, io.MultiReader(bytes.NewReader(head), file), max(1, in.Offset), in.Limit, in.Numbers)
	if err != nil {
		return Result{}, fmt.Errorf("read %q: %w", in.Path, err)
	}
	return Text(text), nil
}

// excerpt returns limit lines from line first on, and how to read on.
func excerpt(ctx context.Context, file io.Reader, first, limit int, numbered bool) (string, error) {
	if limit == 0 {
		limit = maxLines
	}
	r := bufio.NewReaderSize(canceler{ctx, file}, 64<<10)
	var b strings.Builder
	cut := false
	for n := 1; ; n++ {
		line, more, err := readLine(r, maxLine)
		switch {
		case errors.Is(err, io.EOF) && n == 1:
			return "(The file is empty.)", nil
		case errors.Is(err, io.EOF) && n <= first:
			return "", fmt.Errorf("invalid offset %d: the file has %s", first, count(n-1, "line"))
		case errors.Is(err, io.EOF):
			if cut {
				fmt.Fprintf(&b, "\n[Lines of more than %s bytes are cut. search_files finds text in them.]", numbers.Thousands(maxLine))
			}
			return b.String(), nil
		case err != nil:
			return "", err
		case n < first:
			continue
		case n-first >= limit || b.Len()+len(line) > maxRead:
			fmt.Fprintf(&b, "\n[Lines %d to %d. The file continues: read it from offset %d.]", first, n-1, n)
			return b.String(), nil
		}
		if numbered {
			fmt.Fprintf(&b, "%6d\t", n)
		}
		b.WriteString(line)
		if more > 0 {
			cut = true
			fmt.Fprintf(&b, " [%s more bytes]", numbers.Thousands(more))
		}
		b.WriteByte('\n')
	}
}

// canceler is a reader that fails when a context has ended.
type canceler struct {
	ctx context.Context
	r   io.Reader
}

func (c canceler) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// readLine returns the next line as valid text, without its end, and how many bytes of
// it follow after the first limit ones.
func readLine(r *bufio.Reader, limit int) (line string, more int64, err error) {
	var text []byte
	read := false
	for {
		piece, err := r.ReadSlice('\n')
		read = read || len(piece) > 0
		ended := err == nil
		if ended {
			piece = piece[:len(piece)-1]
		}
		keep := min(len(piece), limit-len(text))
		text = append(text, piece[:keep]...)
		more += int64(len(piece) - keep)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && !read:
			return "", 0, err
		case err != nil && !errors.Is(err, io.EOF):
			return "", 0, err
		}
		if more > 0 {
			text = trimRune(text)
		} else if ended {
			text = bytes.TrimSuffix(text, []byte("\r"))
		}
		return valid(text), more, nil
	}
}

// trimRune removes an incomplete character at the end.
func trimRune(text []byte) []byte {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
}

// valid returns bytes as text that a request can have.
func valid(text []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(text), "\uFFFD"), "\x00", "\uFFFD")
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// textual returns an error if a file that starts with head is not text.
func textual(path string, head []byte) error {
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return fmt.Errorf("%q is UTF-16 text: only UTF-8 is supported; use run_command to convert it", path)
	}
	if isBinary(head) {
		return fmt.Errorf("%q is a binary file: only text and images are supported", path)
	}
	return nil
}

func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniffLength)], 0) >= 0
}

// imageType returns the media type of an image, "" for other files.
func imageType(head []byte) string {
	text := string(head[:min(len(head), 16)])
	switch {
	case strings.HasPrefix(text, "\x89PNG\r\n\x1a\n"):
		return "image/png"
	case strings.HasPrefix(text, "\xff\xd8\xff"):
		return "image/jpeg"
	case strings.HasPrefix(text, "GIF87a"), strings.HasPrefix(text, "GIF89a"):
		return "image/gif"
	case strings.HasPrefix(text, "RIFF") && len(text) >= 12 && text[8:12] == "WEBP":
		return "image/webp"
	}
	return ""
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// count returns a number with a word, "1 line" or "3 lines".
func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	if strings.HasSuffix(word, "ch") {
		word += "e"
	}
	return numbers.Thousands(int64(n)) + " " + word + "s"
}
