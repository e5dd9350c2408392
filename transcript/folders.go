package transcript

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/rawjson"
)

// Some agents store a session as a folder of many files: OpenHands one event
// each, opencode until 2026 one message or one part each. This file combines
// them into the text that a single file would contain, which is then read
// like one.

// maxPieces bounds the files of one recording.
const maxPieces = 200_000

// readFolderSessions reads the sessions that a folder stores as a whole. ok reports that it
// is such a folder; more is false if yield asked to stop.
func (rd *Reader) readFolderSessions(dir string, yield func(*Recording, error) bool) (ok, more bool) {
	switch filepath.Base(dir) {
	case "events":
		files := eventFiles(dir)
		if len(files) == 0 {
			return false, true
		}
		if rd.SkipFolder != nil && rd.SkipFolder(dir) {
			return true, true
		}
		data, err := rd.list(dir, files)
		rec, err := rd.readCombined(filepath.Dir(dir), dir, data, err)
		if _, unknown := errors.AsType[*UnknownFormatError](err); unknown {
			return false, true // events of something else
		}
		return true, yield(rec, err)
	case "storage":
		infos := opencodeInfos(dir)
		if len(infos) > 0 && rd.SkipFolder != nil && rd.SkipFolder(dir) {
			return true, true
		}
		for _, info := range infos {
			data, err := rd.opencodeSession(dir, info)
			if !yield(rd.readCombined(info, dir, data, err)) {
				return true, false
			}
		}
		return len(infos) > 0 || besideOpencode(dir), true
	}
	return false, true
}

// besideOpencode reports whether a folder has files of opencode or Kilo beside their database.
func besideOpencode(dir string) bool {
	home := filepath.Base(filepath.Dir(dir))
	return home == "opencode" || home == "kilo"
}

// readCombined reads a combined recording.
func (rd *Reader) readCombined(name, dir string, data []byte, err error) (*Recording, error) {
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return rd.read(name, dir, nil, bytes.NewReader(data))
}

var eventFile = lazyregexp.New(`^(?:event[-_])?(\d+)(?:[-_][^.]*)?\.json$`)

// eventFiles returns the files of a folder of OpenHands events in order; none
// if it is not such a folder.
func eventFiles(dir string) []string {
	type numbered struct {
		n    int
		name string
	}
	var list []numbered
	for _, name := range plainFiles(dir) {
		if m := eventFile.FindStringSubmatch(name); m != nil {
			n, _ := strconv.Atoi(m[1]) // an overlong number sorts first
			list = append(list, numbered{n, name})
		}
	}
	slices.SortStableFunc(list, func(a, b numbered) int { return cmp.Compare(a.n, b.n) })
	var names []string
	for _, f := range list {
		names = append(names, f.name)
	}
	return names
}

// plainFiles returns the sorted names of the regular files in a folder.
func plainFiles(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries[:min(len(entries), maxPieces)] {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// piece reads one of the files of a recording. It may not be larger than the
// limit for the whole.
func (rd *Reader) piece(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	limit := rd.limit()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &TooLargeError{path, limit}
	}
	return data, err
}

// list makes a JSON array of files that contain one JSON value each. The
// reader of the array handles files that are empty or truncated.
func (rd *Reader) list(dir string, names []string) ([]byte, error) {
	limit := rd.limit()
	out := []byte{'['}
	for _, name := range names {
		data, err := rd.piece(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if data = bytes.TrimSpace(data); len(data) == 0 || !isComplete(data) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		if out = append(out, data...); int64(len(out)) > limit {
			return nil, &TooLargeError{dir, limit}
		}
	}
	return append(out, ']'), nil
}

// opencodeInfos returns the session files in a storage folder of opencode:
// session/PROJECT/ID.json, in older versions session/info/ID.json.
func opencodeInfos(dir string) (paths []string) {
	projects, err := os.ReadDir(filepath.Join(dir, "session"))
	if err != nil {
		return nil
	}
	for _, p := range projects {
		if !p.IsDir() || p.Name() == "message" || p.Name() == "part" {
			continue
		}
		folder := filepath.Join(dir, "session", p.Name())
		for _, name := range plainFiles(folder) {
			if filepath.Ext(name) == ".json" {
				paths = append(paths, filepath.Join(folder, name))
			}
		}
	}
	return paths
}

// opencodeSession combines a session into the form that opencode exports. Ids
// of messages and parts sort by time.
func (rd *Reader) opencodeSession(dir, info string) ([]byte, error) {
	head, err := rd.piece(info)
	if err != nil {
		return nil, err
	}
	id := strings.TrimSuffix(filepath.Base(info), ".json")
	messages, parts := filepath.Join(dir, "message", id), filepath.Join(dir, "part")
	if filepath.Base(filepath.Dir(info)) == "info" {
		messages, parts = filepath.Join(dir, "session", "message", id), filepath.Join(dir, "session", "part", id)
	}
	limit := rd.limit()
	out := append([]byte(`{"info":`), head...)
	out = append(out, `,"messages":[`...)
	for i, name := range plainFiles(messages) {
		data, err := rd.piece(filepath.Join(messages, name))
		if err != nil {
			return nil, err
		}
		if data = bytes.TrimSpace(data); !isComplete(data) {
			continue
		}
		own := filepath.Join(parts, strings.TrimSuffix(name, ".json"))
		list, err := rd.list(own, plainFiles(own))
		if err != nil {
			return nil, err
		}
		if i > 0 && out[len(out)-1] != '[' {
			out = append(out, ',')
		}
		out = append(append(append(out, `{"info":`...), data...), `,"parts":`...)
		if out = append(append(out, list...), '}'); int64(len(out)) > limit {
			return nil, &TooLargeError{info, limit}
		}
	}
	return append(out, "]}"...), nil
}

// isComplete reports whether data is one complete JSON object: a file truncated
// by a crash would break everything after it.
func isComplete(data []byte) bool {
	return len(data) > 0 && data[0] == '{' && rawjson.Check(data) == nil
}
