package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"sync"
)

// streamFrom is the size in bytes, uncompressed, from which files of JSON
// Lines are read line by line. Smaller files, and files in other layouts, are
// read at once.
const streamFrom = probeBytes + 4<<20

// open detects the format of r and prepares reading: whole, or line by line.
func (in *input) open(r io.Reader, limit int64) (*format, error) {
	rewind := rewinder(r)
	src, packed, err := unpacked(r)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", in.name, err)
	}
	in.source = src
	head, err := in.readUpTo(src, min(streamFrom, limit)+1, sizeOf(r))
	switch {
	case int64(len(head)) > limit:
		return nil, &TooLargeError{in.name, limit}
	case err != nil && (!packed || len(head) == 0):
		return nil, fmt.Errorf("read %s: %w", in.name, err)
	case err != nil || len(head) <= streamFrom:
		in.torn = err
		return in.whole(head)
	}
	p := newProbe(bytes.TrimPrefix(head, utf8BOM))
	if p.kind == 'l' {
		f := recognise(p)
		if f == nil {
			return nil, in.unknown(head)
		}
		in.stream = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(head), io.LimitReader(src, limit+1-int64(len(head)))), 256<<10)
		in.left = limit
		return f, nil
	}
	most := min(limit, in.maxMemory)
	var data []byte
	if rewind != nil {
		if err := rewind(); err != nil {
			return nil, fmt.Errorf("read %s: %w", in.name, err)
		}
		data, in.torn, err = unpack(in.name, r, most)
	} else {
		// The size is unknown, and the buffer grows by doubling.
		most = min(most, in.maxMemory/4)
		data, in.torn, err = unpack(in.name, io.MultiReader(bytes.NewReader(head), src), most)
	}
	if _, large := errors.AsType[*TooLargeError](err); large {
		if most < limit {
			err = &TooMuchMemoryError{in.name, in.maxMemory}
		}
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", in.name, err)
	}
	return in.whole(data)
}

// readUpTo reads at most n bytes. size is about how many there are, 0 if that is unknown: a buffer that does not grow
// takes a tenth less time for a whole file.
func (in *input) readUpTo(r io.Reader, n, size int64) ([]byte, error) {
	buf := new(bytes.Buffer)
	if in.reuse {
		in.buffer = buffers.Get().(*bytes.Buffer)
		buf = in.buffer
		buf.Reset()
	}
	buf.Grow(int(min(n, size)) + bytes.MinRead)
	_, err := buf.ReadFrom(io.LimitReader(r, n))
	return buf.Bytes(), err
}

// buffers are used again for files that are read one after the other: new memory has to be cleared.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// sizeOf returns the size of a file, 0 of what is none.
func sizeOf(r io.Reader) int64 {
	f, ok := r.(fs.File)
	if !ok {
		return 0
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// rewinder returns a function that seeks r to its current offset; nil if r
// cannot seek.
func rewinder(r io.Reader) func() error {
	s, ok := r.(io.Seeker)
	if !ok {
		return nil
	}
	start, err := s.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil // a pipe
	}
	return func() error {
		_, err := s.Seek(start, io.SeekStart)
		return err
	}
}

// whole detects the format of a file that was read at once.
func (in *input) whole(data []byte) (*format, error) {
	in.data = bytes.TrimPrefix(data, utf8BOM)
	f := recognise(newProbe(in.data))
	if f == nil {
		return nil, in.unknown(in.data)
	}
	in.useMemory(int64(len(data)))
	return f, nil
}

func (in *input) unknown(data []byte) error {
	e := &UnknownFormatError{Name: in.name, Tried: Formats(), Empty: len(bytes.TrimSpace(data)) == 0, Database: bytes.HasPrefix(data, sqliteMagic)}
	if p := newProbe(data); p.kind == 't' {
		e.near = resemblingText(string(p.text))
	} else {
		e.near = resembling(p)
	}
	return e
}

// close closes the source of the recording.
func (in *input) close() {
	if in.source != nil {
		_ = in.source.Close() // it was only read
	}
	if in.buffer != nil {
		buffers.Put(in.buffer)
	}
}

// eachLine yields the lines of the file as splitLines does. Lines that are
// read one by one have their own memory. A line that is too long is skipped
// and reported with its length.
func (in *input) eachLine() iter.Seq2[int, []byte] {
	if in.stream == nil {
		return splitLines(in.data)
	}
	return func(yield func(int, []byte) bool) {
		for in.refused == nil {
			in.line++
			line, err := in.nextLine(in.stream, in.line)
			if line = trimLine(line); len(line) > 0 && !yield(in.line, line[:len(line):len(line)]) {
				return
			}
			if err == nil {
				continue
			}
			if err != io.EOF {
				in.torn = err
			}
			return
		}
	}
}

// nextLine reads a line; nil if it is too long.
func (in *input) nextLine(lines *bufio.Reader, n int) (line []byte, err error) {
	length, most := 0, min(int64(in.maxLine), in.maxMemory/(perByte+2)) // two copies exist while it is read
	for {
		piece, err := lines.ReadSlice('\n')
		length += len(piece)
		if in.left -= int64(len(piece)); in.left < 0 && in.refused == nil {
			in.refused = &TooLargeError{in.name, in.limit}
			return nil, io.EOF
		}
		if int64(length) <= most {
			line = append(line, piece...)
		} else {
			line = nil
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		switch {
		case length > in.maxLine:
			in.skip(n, "the line has %d bytes, the limit is %d", length, in.maxLine)
		case int64(length) > most:
			in.useMemory(in.maxMemory + 1) // the recording cannot be read without it
		}
		return line, err
	}
}
