package embeddings_test

import (
	"github.com/furlhq/furl/inmem"
	"github.com/furlhq/furl/recall"
	"github.com/furlhq/furl/recall/embeddings"
)

// Search by words and by meaning, with a local model.
func ExampleNew() {
	store := inmem.New()
	client := embeddings.New("http://127.0.0.1:11434/v1", "nomic-embed-text", nil)
	vectors, err := recall.NewVectors(store, client, nil)
	if err != nil {
		panic(err)
	}
	// go vectors.Run(ctx) embeds sessions as they grow.
	_ = recall.NewSearcher(store, &recall.SearcherOptions{Vectors: vectors})
}
