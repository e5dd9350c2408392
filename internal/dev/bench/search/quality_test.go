package search

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/chattest"
	"github.com/furlhq/furl/internal/dev/embedtest"
	"github.com/furlhq/furl/internal/dev/recordings"
	"github.com/furlhq/furl/internal/fidelity"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/recall/embeddings"
	"github.com/furlhq/furl/storage"
	"github.com/furlhq/furl/transcript"
)

// question is a search whose answers are known: among the documents below
// below, those for which right holds.
type question struct {
	text  string
	below int
	right func(doc int) bool
}

// set is a history with questions about it.
type set struct {
	name      string
	docs      []string
	prose     []bool // which documents are what people or models say; nil: all
	questions []question
}

// meetings are QMSum's: each a history of its own, each turn a document.
func meetings(b *testing.B) []set {
	var sets []set
	for line := range bytes.Lines(recordings.Read(b, recordings.Files(b, "qmsum/val.jsonl.gz")[0])) {
		var meeting struct {
			Turns   []struct{ Speaker, Content string } `json:"meeting_transcripts"`
			Queries []struct {
				Query string
				Spans [][2]string `json:"relevant_text_span"`
			} `json:"specific_query_list"`
		}
		if err := json.Unmarshal(line, &meeting); err != nil {
			b.Fatal(err)
		}
		s := set{name: "qmsum"}
		for _, turn := range meeting.Turns {
			s.docs = append(s.docs, turn.Speaker+": "+turn.Content)
		}
		for _, q := range meeting.Queries {
			s.questions = append(s.questions, question{q.Query, len(s.docs), func(doc int) bool {
				return slices.ContainsFunc(q.Spans, func(span [2]string) bool {
					from, err1 := strconv.Atoi(span[0])
					to, err2 := strconv.Atoi(span[1])
					return err1 == nil && err2 == nil && from <= doc && doc <= to
				})
			}})
		}
		sets = append(sets, s)
	}
	return sets
}

// chats are made, like those of LoCoMo: each a history of its own, each turn a document.
func chats() (sets []set) {
	for _, c := range chattest.Chats(1, 20) {
		s := set{name: "chats", docs: c.Turns}
		for _, q := range c.Questions {
			s.questions = append(s.questions, question{q.Text, len(s.docs), func(doc int) bool { return slices.Contains(q.Evidence, doc) }})
		}
		sets = append(sets, s)
	}
	return sets
}

// shown is how many of the newest messages a question leaves out, as a view
// would show them.
const shown = 10

// quoted are the recordings of coding sessions: whenever the agent repeats a
// line of an earlier result, or uses a name again, which no shown message has,
// that line or name is a question, and the blocks that hold it the answers.
func quoted(b *testing.B) (lines, both []set) {
	for _, file := range recordings.Files(b, "entire-cli/*.jsonl.gz") {
		rec, err := transcript.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		for _, session := range rec.Sessions {
			l, n := quotedIn(session.Log)
			all := set{"later quotes", l.docs, l.prose, slices.Concat(l.questions, n.questions)}
			lines, both = append(lines, l), append(both, all)
		}
	}
	return lines, both
}

func quotedIn(log *furl.Log) (lines, names set) {
	var tracker fidelity.Tracker
	lines.name, names.name = "quoted lines", "names"
	var docs []string
	var prose []bool
	var first []int // document of each message
	for _, r := range log.Path(log.Head()) {
		m, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		last := len(first) - shown // the newest hidden message
		if m.Role == furl.RoleAssistant && last >= 0 {
			hidden := first[last+1]
			ask := func(to *set, text string, holders iter.Seq2[int, int]) {
				right := make(map[int]bool)
				for msg, block := range holders {
					if msg > last {
						return // shown
					}
					right[first[msg]+block] = true
				}
				to.questions = append(to.questions, question{text, hidden, func(doc int) bool { return right[doc] }})
			}
			reply := tracker.Reply(m)
			for _, line := range reply.Lines {
				ask(&lines, line.Text, reply.LineHolders(line))
			}
			for _, ref := range reply.Refs {
				ask(&names, ref.Name, reply.Holders(ref))
			}
		}
		first = append(first, len(docs))
		for i := range m.Blocks {
			docs = append(docs, strings.Join(slices.Collect(m.Blocks[i].Texts()), "\n"))
			prose = append(prose, m.Blocks[i].Kind == furl.KindText)
		}
		tracker.Add(m)
	}
	lines.docs, names.docs = docs, docs
	lines.prose, names.prose = prose, prose
	return lines, names
}

// finder is something that searches the documents of a set: those below
// below, the best limit of them.
type finder func(query string, below, limit int) []int

// finders are what is compared.
var finders = []struct {
	name string
	open func(b *testing.B, s *set) finder
}{
	{"furl", func(b *testing.B, s *set) finder { return furlFinder(b, s, nil) }},
	{"furl + vectors", func(b *testing.B, s *set) finder {
		return furlFinder(b, s, embeddings.New(embedtest.New(b).URL, "hashed", nil))
	}},
	{"FTS5 unicode61", func(b *testing.B, s *set) finder { return ftsFinder(b, s.docs, "unicode61") }},
	{"FTS5 trigram", func(b *testing.B, s *set) finder { return ftsFinder(b, s.docs, "trigram") }},
}

func ftsFinder(b *testing.B, docs []string, tokenizer string) finder {
	f := newFTS(b, tokenizer)
	for i, text := range docs {
		f.add(b, i, text)
	}
	return func(query string, below, limit int) []int { return f.search(b, query, below, limit) }
}

func furlFinder(b *testing.B, s *set, e recall.Embedder) finder {
	store := inmem.New()
	key := furl.SessionKey{Session: "s"}
	var batch storage.Batch
	for i, text := range s.docs {
		m := furl.TextMessage(furl.RoleUser, text)
		if s.prose != nil && !s.prose[i] {
			m.Blocks[0].Kind = furl.KindResult
		}
		batch.Records = append(batch.Records, furl.Record{Seq: furl.Seq(i + 1), Parent: furl.Seq(i), Body: m})
	}
	if err := store.Append(b.Context(), key, batch); err != nil {
		b.Fatal(err)
	}
	if err := recall.NewIndexer(store, nil).Catchup(b.Context(), key); err != nil {
		b.Fatal(err)
	}
	var o recall.SearcherOptions
	if e != nil {
		v, err := recall.NewVectors(store, e, nil)
		if err == nil {
			err = v.Catchup(b.Context(), key)
		}
		if err != nil {
			b.Fatal(err)
		}
		o.Vectors = v
	}
	searcher := recall.NewSearcher(store, &o)
	return func(query string, below, limit int) []int {
		res, err := searcher.Search(b.Context(), recall.Request{Session: "s", Text: query, Limit: limit, Excerpt: -1,
			Only: func(_ furl.SessionID, p furl.Pos) bool { return int(p.Msg) <= below }})
		if err != nil || len(res.Warnings) > 0 {
			b.Fatalf("%q: %v %v", query, err, res)
		}
		var found []int
		for _, h := range res.Hits {
			found = append(found, int(h.Pos.Msg)-1)
		}
		return found
	}
}

// BenchmarkRecallQuality says how often an answer is among the first five and
// ten, its mean reciprocal rank, and how long a search takes.
func BenchmarkRecallQuality(b *testing.B) {
	lines, both := quoted(b)
	for _, sets := range [][]set{meetings(b), chats(), both, lines} {
		for _, f := range finders {
			b.Run(sets[0].name+"/"+f.name, func(b *testing.B) {
				for b.Loop() {
					evaluate(b, sets, f.open)
				}
			})
		}
	}
}

func evaluate(b *testing.B, sets []set, open func(*testing.B, *set) finder) {
	var five, ten, asked int
	var reciprocal float64
	var times []time.Duration
	for _, s := range sets {
		if len(s.questions) == 0 {
			continue
		}
		find := open(b, &s)
		for _, q := range s.questions {
			begun := time.Now()
			found := find(q.text, q.below, 20)
			times = append(times, time.Since(begun))
			asked++
			at := slices.IndexFunc(found, q.right)
			if at < 0 {
				continue
			}
			reciprocal += 1 / float64(at+1)
			if at < 5 {
				five++
			}
			if at < 10 {
				ten++
			}
		}
	}
	report(b, times)
	b.ReportMetric(float64(asked), "queries")
	b.ReportMetric(100*float64(five)/float64(asked), "hit@5-%")
	b.ReportMetric(100*float64(ten)/float64(asked), "hit@10-%")
	b.ReportMetric(reciprocal/float64(asked), "MRR")
}

// report gives the median and the 99th percentile.
func report(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	at := func(q float64) float64 { return float64(times[int(q*float64(len(times)-1))].Microseconds()) / 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}
