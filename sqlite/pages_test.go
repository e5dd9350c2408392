package sqlite_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/rawjson"
	"github.com/furlhq/furl/storage"
)

// A step of an agent, a result of 6 KB and then the reply with new metadata, writes few pages to
// the log: that is what each step costs the disk.
func TestStepWritesFewPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "furl.db")
	s := openAt(t, path, nil)
	defer closeStore(t, s)
	rnd := rand.New(rand.NewPCG(1, 2))
	text := func(size int) string {
		out := []byte{}
		for len(out) < size {
			out = fmt.Appendf(out, "%x the file %d is read again\n", rnd.Uint32(), rnd.IntN(1000))
		}
		return string(out)
	}
	said := func(role furl.Role, size int) *furl.Message {
		body := text(size)
		return &furl.Message{Role: role, Format: furl.FormatChat, Raw: fmt.Appendf(nil, `{"role":%q,"content":%s}`, role, rawjson.AppendString(nil, body)), Blocks: []furl.Block{{Text: body}}}
	}
	var seq furl.Seq
	add := func(meta *storage.Meta, bodies ...furl.Body) {
		t.Helper()
		b := storage.Batch{Meta: meta}
		for _, body := range bodies {
			seq++
			r := furl.Record{Seq: seq, Parent: seq - 1, Body: body}
			if _, ok := body.(*furl.Message); ok {
				binary.LittleEndian.PutUint64(r.Chain[:], rnd.Uint64())
			}
			b.Records = append(b.Records, r)
		}
		if err := s.Append(context.Background(), key("a"), b); err != nil {
			t.Fatal(err)
		}
	}
	step := func() {
		add(nil, said(furl.RoleTool, 6000))
		add(&storage.Meta{Title: text(40), Hint: "the client's id"}, &furl.Exchange{Model: "m"}, said(furl.RoleAssistant, 600))
	}
	for range 20 {
		step()
	}
	const steps, frame = 20, 2048 + 24
	before := logSize(t, path)
	for range steps {
		step()
	}
	// The rows of records and of the session and the chains in both transactions, and new pages
	// for the large record with what counts them.
	if pages := float64(logSize(t, path)-before) / frame / steps; pages > 11 {
		t.Errorf("a step writes %.1f pages of 2 KB, want at most 11", pages)
	}
	sound(t, s)
}

func logSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
