package transcript

import (
	"bytes"
	"cmp"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/furlhq/furl/internal/lazyregexp"
	"github.com/furlhq/furl/internal/rawjson"
)

// Since version 0.154 a fork has only what is new in its rollout, and so has what
// follows a revert: a second rollout of the same thread,
// rollout-TIME-THREAD_ROLLOUT.jsonl. The header's history_base names the rollout
// with the records before, and the ordinal of the first one that is not among them.
// This file joins them.

// rolloutFile is a rollout as its file's name describes it. The first rollout of a
// thread has the thread's id.
type rolloutFile struct{ path, time, thread, id string }

var rolloutName = lazyregexp.New(`^rollout-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)-([0-9a-f-]{36})(?:_([0-9a-f-]{36}))?\.jsonl(?:\.zst|\.gz)?$`)

// rolloutOf describes a file by its name. Without such a name, only the path is set.
func rolloutOf(path string) rolloutFile {
	m := rolloutName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return rolloutFile{path: path}
	}
	return rolloutFile{path: path, time: m[1], thread: m[2], id: cmp.Or(m[3], m[2])}
}

// rolloutHome lists the rollouts in a home of Codex, by their names.
type rolloutHome struct {
	roots   []string // the folders
	byID    map[string]rolloutFile
	threads map[string][]rolloutFile // oldest first
}

// rolloutHomes keeps the homes that a walk has read.
type rolloutHomes struct {
	mu   sync.Mutex
	dirs map[string]*rolloutHome
}

// of returns the home of the rollouts in a folder: what is in sessions and
// archived_sessions, or the folder itself.
func (h *rolloutHomes) of(dir string) *rolloutHome {
	roots := []string{dir}
	for up := dir; ; up = filepath.Dir(up) {
		if name := filepath.Base(up); name == "sessions" || name == "archived_sessions" {
			home := filepath.Dir(up)
			roots = []string{filepath.Join(home, "sessions"), filepath.Join(home, "archived_sessions")}
			break
		}
		if up == filepath.Dir(up) {
			break
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if found := h.dirs[roots[0]]; found != nil {
		return found
	}
	found := listRollouts(roots, len(roots) > 1)
	if h.dirs == nil {
		h.dirs = make(map[string]*rolloutHome)
	}
	h.dirs[roots[0]] = found
	return found
}

func listRollouts(roots []string, below bool) *rolloutHome {
	h := &rolloutHome{roots: roots, byID: make(map[string]rolloutFile), threads: make(map[string][]rolloutFile)}
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil: // Walk reports it
			case d.IsDir() && path != root && !below:
				return fs.SkipDir
			case d.Type().IsRegular():
				f := rolloutOf(path)
				if _, known := h.byID[f.id]; f.id == "" || known { // a copy, such as an archived one
					break
				}
				if f.id != f.thread && !beginsRollout(path) {
					break
				}
				h.byID[f.id] = f
				h.threads[f.thread] = append(h.threads[f.thread], f)
			}
			return nil
		})
	}
	for _, list := range h.threads {
		slices.SortFunc(list, func(a, b rolloutFile) int {
			return cmp.Or(strings.Compare(a.time, b.time), strings.Compare(a.id, b.id)) // ids begin with the time
		})
	}
	return h
}

// beginsRollout reports whether a file is not clearly something else than a rollout.
func beginsRollout(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 512)
	n, _ := io.ReadFull(file, head)
	return filepath.Ext(path) != ".jsonl" && n > 0 || bytes.Contains(head[:n], []byte(`"session_meta"`))
}

// isEarlierRollout reports whether below a root there is a later rollout of the same thread.
// Reading that one reads this one too.
func (h *rolloutHomes) isEarlierRollout(root, path string) bool {
	f := rolloutOf(path)
	if f.id == "" {
		return false
	}
	list := h.of(filepath.Dir(path)).threads[f.thread]
	at := slices.IndexFunc(list, func(o rolloutFile) bool { return o.id == f.id })
	return at >= 0 && slices.ContainsFunc(list[at+1:], func(o rolloutFile) bool {
		rel, err := filepath.Rel(root, o.path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// home returns the home of the file being read, an empty one if it is not known.
func (in *input) home() *rolloutHome {
	if in.dir == "" {
		return new(rolloutHome)
	}
	if in.homes == nil {
		in.homes = new(rolloutHomes)
	}
	home := in.homes.of(in.dir)
	in.use(home.roots...)
	return home
}

// earlierRollouts returns the rollouts of the same thread before this one, if this one
// follows a revert.
func (in *input) earlierRollouts(f rolloutFile) []rolloutFile {
	if f.id == f.thread || in.dir == "" {
		return nil
	}
	list := in.home().threads[f.thread]
	at := slices.IndexFunc(list, func(o rolloutFile) bool { return o.id == f.id })
	return list[:max(at, 0)]
}

// codexMark is the state after a line of a rollout, noted where it changed.
type codexMark struct {
	ordinal     int
	at          ref
	total, last codexUsage
	model       string
}

// file reads the lines of a rollout whose ordinals are below the limit.
func (c *codex) file(in *input, f rolloutFile, limit int) {
	started, next := false, 0
	own := in == c.b.in || f.thread != "" && f.thread == c.thread
	c.loading = append(c.loading, f.id)
	for n, l := range objectsAs(in, scanCodex) {
		o, p := l.fields, l.payload
		at := parseTime(o.str("timestamp"))
		if !started && l.typ == "session_meta" {
			started = true
			f.id = cmp.Or(f.id, p.str("id"))
			c.meta(p)
			if base := p.object("history_base"); base.has("thread_id") && in.parts.first() {
				next = max(0, base.num("end_ordinal_exclusive"))
				c.continueFrom(at, base.str("thread_id"), next)
			}
			next++
			c.mark(f.id, next-1)
			continue
		}
		ordinal := next
		if o.has("ordinal") {
			ordinal = o.num("ordinal")
		}
		if ordinal >= limit {
			break
		}
		next = ordinal + 1
		c.inherited = own && ordinal < c.ownFrom
		if !o.object("metadata").flag("compaction_output") && !c.oldLine(n, o, l.raw) {
			c.line(n, at, l.typ, p, o["payload"])
		}
		c.mark(f.id, ordinal)
	}
	c.inherited = false
	c.endReply()
	c.flush()
	c.mark(f.id, max(0, next-1))
	c.loading = c.loading[:len(c.loading)-1]
}

// codexLine is a line of a rollout.
type codexLine struct {
	raw             []byte
	typ             string
	fields, payload object
}

// scanCodex reads the fields of a line and those of its payload. Of most events the payload is not needed.
func scanCodex(_ int, r *rawjson.Reader, buf []byte) (l codexLine) {
	l.raw, l.fields = buf, make(object, 4)
	for key := range r.Fields() {
		switch string(key) {
		case "type":
			v := r.Value()
			l.typ = v.Text()
			l.fields["type"] = v.Raw
		case "payload":
			start := r.Offset()
			l.payload = nil
			if r.Kind() == '{' {
				l.payload = codexPayload(r, l.typ == "event_msg")
			} else {
				r.Skip()
			}
			l.fields["payload"] = buf[start:r.Pos():r.Pos()]
		default:
			if raw := r.Raw(); raw != nil && len(l.fields) < probeFields {
				l.fields[string(key)] = raw
			}
		}
	}
	return l
}

// codexPayload reads the fields of a payload, none of an event that is not needed.
func codexPayload(r *rawjson.Reader, event bool) object {
	p := object{}
	other := false
	for key := range r.Fields() {
		if other || len(p) >= probeFields {
			continue
		}
		raw := r.Raw()
		if p[string(key)] = raw; event && string(key) == "type" {
			switch string(raw) {
			case `"token_count"`, `"thread_rolled_back"`, `"thread_name_updated"`:
			default:
				other = true
			}
		}
	}
	return p
}

// mark notes the state after a line.
func (c *codex) mark(id string, ordinal int) {
	list := c.marks[id]
	m := codexMark{ordinal: ordinal, at: c.b.last, total: c.total, last: c.last, model: c.model}
	if n := len(list); n > 0 {
		if same := list[n-1]; same.at == m.at && same.total == m.total && same.last == m.last && same.model == m.model {
			return
		}
		if list[n-1].ordinal >= ordinal {
			list = list[:n-1]
		}
	}
	c.marks[id] = append(list, m)
}

// maxLineage bounds the rollouts of which each continues the one before.
const maxLineage = 200

// continueFrom continues from where a rollout has its record before an ordinal. A
// rollout that was not read yet is read up to there.
func (c *codex) continueFrom(at time.Time, id string, end int) {
	if c.marks[id] == nil {
		home := c.b.in.home()
		f, ok := home.byID[id]
		switch {
		case !ok:
			c.b.in.note("the first %s are missing: they are in rollout %s, which is not in the folder of this one", plural(end, "record"), id)
			return
		case slices.Contains(c.loading, id), len(c.loading) > maxLineage, !c.other(f, end):
			c.b.in.note("the first %s are missing: rollout %s cannot be read", plural(end, "record"), id)
			return
		}
	}
	var found codexMark
	for _, m := range c.marks[id] {
		if m.ordinal >= end {
			break
		}
		found = m
	}
	c.b.rewind(at, found.at)
	c.total, c.last, c.model = found.total, found.last, found.model
	c.dropTurns()
}

// dropTurns forgets the messages of the user that are not on the current branch.
func (c *codex) dropTurns() {
	on := make(map[ref]bool)
	for _, r := range c.b.path(c.b.last) {
		on[r] = true
	}
	c.turns = slices.DeleteFunc(c.turns, func(t codexTurn) bool { return !on[t.message] })
	c.open, c.unplaced, c.compacted = nil, nil, nil
}

// other reads the records of another rollout below an ordinal. It reports whether it could be
// read.
func (c *codex) other(f rolloutFile, limit int) bool {
	in, name := c.b.in, filepath.Base(f.path)
	return in.another != nil && in.another(f.path, func(part *input) {
		before := len(in.rec.Skipped)
		c.file(part, f, limit)
		for i := range in.rec.Skipped[before:] {
			in.rec.Skipped[before+i].Reason = name + ": " + in.rec.Skipped[before+i].Reason
		}
		for _, s := range part.rec.Skipped {
			in.skip(s.Line, "%s: %s", name, s.Reason)
		}
		if part.torn != nil {
			in.note("%s: the compressed file is truncated: %v", name, part.torn)
		}
		if in.refused == nil {
			in.refused = part.refused
		}
	}) == nil
}
