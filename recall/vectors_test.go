package recall_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/internal/dev/embedtest"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/recall/embeddings"
	"github.com/furlhq/furl/storage"
)

func say(t *testing.T, s storage.Store, key furl.SessionKey, first furl.Seq, texts ...string) {
	t.Helper()
	var b storage.Batch
	for i, text := range texts {
		seq := first + furl.Seq(i)
		m := furl.TextMessage(furl.RoleUser, text)
		b.Records = append(b.Records, furl.Record{Seq: seq, Parent: seq - 1, At: time.Unix(int64(seq), 0), Body: m})
	}
	if err := s.Append(t.Context(), key, b); err != nil {
		t.Fatal(err)
	}
}

// R4: what was hidden is found by its meaning too.
func TestVectorsR4(t *testing.T) {
	server := embedtest.New(t)
	store := inmem.New()
	key, other := furl.SessionKey{Session: "a"}, furl.SessionKey{Session: "b"}
	texts := []string{
		"The deployment pipeline needs credentials for the registry.",
		"We had soup for lunch and talked about the weather.",
		"Deploying without a pipelined build is slow on Mondays.",
		"See config_loader.go for credentials.",
	}
	say(t, store, key, 1, texts...)
	say(t, store, other, 1, texts[:2]...)
	client := embeddings.New(server.URL, "test", &embeddings.Options{Wait: time.Microsecond})
	vectors, err := recall.NewVectors(store, client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := vectors.CatchupTenant(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	_, asked, _ := server.Asked()
	if slices.Sort(asked); len(asked) != len(texts) {
		t.Errorf("embedded %q", asked)
	}
	s := recall.NewSearcher(store, &recall.SearcherOptions{Vectors: vectors})
	search := func(req recall.Request) *recall.Result {
		t.Helper()
		req.Session = "a"
		res, err := s.Search(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	order := func(r *recall.Result) string {
		var b strings.Builder
		for _, h := range r.Hits {
			fmt.Fprint(&b, h.Pos.Msg, " ")
		}
		return b.String()
	}
	// No word in common with message 3, but most of their letters.
	if r := search(recall.Request{Text: "deployments pipelining"}); !strings.HasPrefix(order(r), "1 3 ") || r.Hits[0].Similar <= r.Hits[3].Similar {
		t.Errorf("found %s: %+v", order(r), r)
	}
	if r := search(recall.Request{Text: "deployments pipelining", Lexical: true}); order(r) != "1 3 " && order(r) != "1 " {
		t.Errorf("by words alone found %s", order(r))
	}
	// Whole names stay first.
	if r := search(recall.Request{Text: "config_loader.go"}); r.Hits[0].Pos.Msg != 4 {
		t.Errorf("found %s", order(r))
	}
	if r := search(recall.Request{Text: "deployment", Only: func(_ furl.SessionID, p furl.Pos) bool { return p.Msg > 1 }}); strings.Contains(order(r), "1 ") {
		t.Errorf("found %s, which is excluded", order(r))
	}

	// New messages are found by words before they are embedded, and the
	// endpoint may be down.
	say(t, store, key, 5, "The registry moved to another host.")
	server.Down(503)
	r := search(recall.Request{Text: "where is the registry now"})
	if len(r.Warnings) != 1 || r.Warnings[0].Code != recall.WarnVectors || len(r.Hits) == 0 || r.Hits[0].Pos.Msg != 5 {
		t.Errorf("without the endpoint: %+v", r)
	}
	if err := vectors.Catchup(t.Context(), key); err == nil {
		t.Error("no error while the endpoint is down")
	}
	server.Down(0)
	if err := vectors.Catchup(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	r = search(recall.Request{Text: "where is the registry now"})
	if len(r.Warnings) != 0 || r.Hits[0].Pos.Msg != 5 || r.Hits[0].Similar == 0 {
		t.Errorf("with it: %+v", r)
	}
	// Another process asks for nothing twice.
	before, _, _ := server.Asked()
	again, err := recall.NewVectors(store, client, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.CatchupTenant(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if after, _, _ := server.Asked(); after != before {
		t.Errorf("%d requests for what is embedded", after-before)
	}
}
