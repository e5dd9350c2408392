package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// UnknownFilesError lists the files in folders whose format is unknown.
type UnknownFilesError struct{ Files []string }

func (e *UnknownFilesError) Error() string {
	names, more := e.Files, ""
	if n := len(names) - maxNamed; n > 0 {
		names, more = names[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("skipped %s in unknown formats: %s%s", plural(len(e.Files), "file"), strings.Join(names, ", "), more)
}

// maxNamed is how many files the text of the error names.
const maxNamed = 10

// Walk reads files and whole folders with a zero Reader.
func Walk(paths ...string) iter.Seq2[*Recording, error] { return new(Reader).Walk(paths...) }

// Walk reads files and whole folders, folders in the order of names and
// recursively. Inside folders it skips hidden files and folders,
// node_modules, symbolic links, empty files, companion files of recordings,
// the folders in which Claude Code keeps long tool results, and what is not a log in a session of Kimi Code or Copilot CLI.
// Of a thread of Codex with several rollouts it reads the newest, which has all. If a folder stores a session in many files, as OpenHands and
// opencode do, each session is one recording.
//
// Walk yields each recording as soon as it is read. An error is about one
// file or folder and does not end the sequence. Files inside folders with
// unknown formats are collected and yielded last, as one *UnknownFilesError;
// for a path passed to Walk the error is an *UnknownFormatError.
func (rd *Reader) Walk(paths ...string) iter.Seq2[*Recording, error] {
	return func(yield func(*Recording, error) bool) {
		var unknown []string
		for _, path := range paths {
			st, err := os.Stat(path)
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			if !st.IsDir() && isDatabase(path) {
				if !rd.walkDatabase(path, yield) {
					return
				}
				continue
			}
			if !st.IsDir() {
				if !rd.walkFile(path, yield) {
					return
				}
				continue
			}
			if real, err := filepath.EvalSymlinks(path); err == nil && isLink(path) {
				path = real // a path passed to Walk may be a link
			}
			if !rd.folder(path, &unknown, yield) {
				return
			}
		}
		if len(unknown) > 0 {
			yield(nil, &UnknownFilesError{unknown})
		}
	}
}

func isLink(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.Mode()&fs.ModeSymlink != 0
}

// isToolResults reports whether a folder contains the long tool results of sessions: of
// Claude Code SESSION/tool-results next to SESSION.jsonl, of Gemini CLI tool-outputs next to
// chats. A result may be a copy of a recording and is not one itself.
func isToolResults(dir string) bool {
	switch filepath.Base(dir) {
	case "tool-results":
		st, err := os.Stat(filepath.Dir(dir) + ".jsonl")
		return err == nil && st.Mode().IsRegular()
	case "tool-outputs":
		st, err := os.Stat(filepath.Join(filepath.Dir(dir), "chats"))
		return err == nil && st.IsDir()
	}
	return false
}

// folder reads a folder and reports whether to continue.
func (rd *Reader) folder(root string, unknown *[]string, yield func(*Recording, error) bool) bool {
	homes := new(rolloutHomes)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if !yield(nil, err) {
				return errStop
			}
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() && isToolResults(path) {
			return fs.SkipDir
		}
		if path != root && (isBesideKimi(path) || isBesideCopilot(path)) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			if ok, more := rd.readFolderSessions(path, yield); !more {
				return errStop
			} else if ok {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || besideDatabase(path) {
			return nil
		}
		if homes.isEarlierRollout(root, path) {
			return nil
		}
		if isDatabase(path) {
			if rd.SkipFolder != nil && rd.SkipFolder(path) {
				return nil
			}
			return rd.databaseInFolder(path, unknown, yield)
		}
		if rd.Skip != nil && rd.Skip(path) {
			return nil
		}
		if !rd.inFolder(path, homes, func(rec *Recording, err error) bool {
			if _, ok := errors.AsType[*UnknownFormatError](err); ok {
				*unknown = append(*unknown, path)
				return true
			}
			if _, ok := errors.AsType[*companionError](err); ok {
				return true
			}
			return yield(rec, err)
		}) {
			return errStop
		}
		return nil
	})
	return err == nil
}

// besideDatabase reports whether SQLite writes such a file beside a database.
func besideDatabase(path string) bool {
	name := filepath.Ext(path)
	return name == ".db-wal" || name == ".db-shm" || name == ".sqlite-wal" || name == ".sqlite-shm"
}

// databaseInFolder reads a database found in a folder.
func (rd *Reader) databaseInFolder(path string, unknown *[]string, yield func(*Recording, error) bool) error {
	more := rd.walkDatabase(path, func(rec *Recording, err error) bool {
		if _, ok := errors.AsType[*UnknownFormatError](err); ok {
			*unknown = append(*unknown, path)
			return true
		}
		return yield(rec, err)
	})
	if !more {
		return errStop
	}
	return nil
}

// errStop ends a walk whose caller stopped iterating.
var errStop = errors.New("stop")

// walkFile reads a file that was named. It reports whether to continue.
func (rd *Reader) walkFile(path string, yield func(*Recording, error) bool) bool {
	f, err := os.Open(path)
	if err != nil {
		return yield(nil, err)
	}
	defer f.Close()
	return rd.readParts(path, filepath.Dir(path), nil, f, yield)
}

// inFolder reads a file found in a folder. It passes over an empty file,
// and reads only the start of files that are clearly not text. It reports whether to
// continue.
func (rd *Reader) inFolder(path string, homes *rolloutHomes, yield func(*Recording, error) bool) bool {
	f, err := os.Open(path)
	if err != nil {
		return yield(nil, err)
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := f.Read(head)
	if n == 0 {
		return true
	}
	if head = head[:n]; binary(head) {
		return yield(nil, &UnknownFormatError{Name: path, Tried: Formats()})
	}
	if _, err := f.Seek(0, 0); err != nil {
		return yield(nil, err)
	}
	return rd.readParts(path, filepath.Dir(path), homes, f, yield)
}

// binary reports whether a file with this start is neither text nor
// compressed. NULs at the very start may be the result of a crash.
func binary(head []byte) bool {
	if bytes.HasPrefix(head, gzipMagic) || bytes.HasPrefix(head, zstdMagic) {
		return false
	}
	return bytes.IndexByte(bytes.TrimLeft(head, "\x00"), 0) >= 0
}
