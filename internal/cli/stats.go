package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl/storage"
)

// jsonStats is furl stats --json.
type jsonStats struct {
	Place        string `json:"place"`
	Format       int    `json:"format"`
	Sessions     int64  `json:"sessions"`
	Records      int64  `json:"records"`
	Messages     int64  `json:"messages"`
	MessageBytes int64  `json:"message_bytes"`
	Bodies       int64  `json:"body_bytes"`
	Index        int64  `json:"index_bytes"`
	Vectors      int64  `json:"vector_bytes"`
	Log          int64  `json:"log_bytes"`
	Total        int64  `json:"total_bytes"`
	Unindexed    int    `json:"sessions_to_index"`
}

func statsCommand(p program) *cobra.Command {
	f := storeFlags{program: p}
	cmd := &cobra.Command{
		Use:     "stats",
		Short:   "Show the size of the store and its parts",
		Example: "  furl stats\n  furl stats --json",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx := cmd.Context()
			store, err := f.existing(ctx)
			if err != nil {
				return err
			}
			defer closing(store, &err)
			checker, ok := store.(storage.Checker)
			if !ok {
				return errors.New("this store does not report its size")
			}
			s, err := checker.Stats(ctx)
			if err != nil {
				return err
			}
			unindexed := 0
			if index, ok := store.(storage.Searchable); ok {
				for _, err := range index.Unindexed(ctx, localTenant) {
					if err != nil {
						return err
					}
					unindexed++
				}
			}
			out := jsonStats{s.Place, s.Format, s.Sessions, s.Records, s.Messages, s.MessageBytes, s.Bodies, s.Index, s.Vectors, s.Log, s.Total, unindexed}
			w := cmd.OutOrStdout()
			if f.json {
				return printJSON(w, out)
			}
			fmt.Fprintf(w, "%s (format %d)\n\n", label(s.Place), s.Format)
			t := newTable(w, text(""), number(""), number(""))
			row := func(what string, n int64, of string) { t.add(what, thousands(int(n)), of) }
			row("sessions", s.Sessions, "")
			row("records", s.Records, "")
			row("messages", s.Messages, bytesSize(s.MessageBytes)+" as sent")
			size := func(what string, n int64) { t.add(what, bytesSize(n), share64(n, s.Total)) }
			size("message bodies", s.Bodies)
			size("search index", s.Index)
			size("embeddings", s.Vectors)
			if s.Log > 0 {
				size("write-ahead log", s.Log)
			}
			size("other", max(0, s.Total-s.Log-s.Bodies-s.Index-s.Vectors))
			size("total", s.Total)
			t.print()
			if s.MessageBytes > 0 {
				fmt.Fprintf(w, "\nThe store is %.2f times the size of the messages in it.\n", float64(s.Total-s.Log)/float64(s.MessageBytes))
			}
			if unindexed > 0 {
				fmt.Fprintf(w, "%s not fully indexed; the next search indexes the rest.\n", plural(unindexed, "session"))
			}
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

func share64(part, of int64) string {
	if of <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", 100*part/of)
}
