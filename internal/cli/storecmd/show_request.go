package storecmd

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/internal/cli/cmdline"
	"github.com/furlhq/furl/internal/numbers"
)

// jsonRequest is the JSON of furl show --request.
type jsonRequest struct {
	Record furl.Seq `json:"record"` // of the exchange
	Model  string   `json:"model"`
	Sent   bool     `json:"sent"` // Body is what furl sent, not what the client sent
	// Changed says that furl sent a different body than the client.
	Changed bool   `json:"changed"`
	Bytes   int    `json:"bytes"`
	Body    string `json:"body"`
}

// requestBody prints the body of a request.
func (f *viewFlags) requestBody(cmd *cobra.Command, t *cmdline.Target, number int, sent bool) error {
	records := t.Records(0)
	at, err := exchangeOf(records, number)
	if err != nil {
		return err
	}
	received, err := t.ReceivedBody(cmd.Context(), at)
	if err != nil {
		return err
	}
	ours, err := t.SentBody(cmd.Context(), at)
	if err != nil {
		return err
	}
	body := received
	if sent {
		body = ours
	}
	if f.Json {
		ex := records[at-1].Body.(*furl.Exchange) // exchangeOf has found it
		return cmdline.PrintJSON(cmd.OutOrStdout(), jsonRequest{at, ex.Model, sent, !bytes.Equal(received, ours), len(body), string(body)})
	}
	w, finish := cmdline.Direct(cmd.OutOrStdout())
	_, err = w.Write(body)
	if err == nil && cmdline.Width(cmd.OutOrStdout()) > 0 {
		_, err = io.WriteString(w, "\n") // not to a pipe or a file
	}
	return finish(err)
}

// exchangeOf returns the number of the exchange for a record: the record itself, or
// the exchange of a reply.
func exchangeOf(records []furl.Record, number int) (furl.Seq, error) {
	if number < 1 || number > len(records) {
		return 0, fmt.Errorf("invalid record number %d: the session has %s", number, numbers.Count(len(records), "record"))
	}
	at := furl.Seq(number)
	if m, ok := records[at-1].Body.(*furl.Message); ok && m.Role == furl.RoleAssistant {
		for at != 0 {
			r := records[at-1]
			if _, ok := r.Body.(*furl.Exchange); ok {
				return at, nil
			}
			if m, ok := r.Body.(*furl.Message); ok && m.Role != furl.RoleAssistant {
				break
			}
			at = r.Parent
		}
	} else if _, ok := records[at-1].Body.(*furl.Exchange); ok {
		return at, nil
	}
	return 0, fmt.Errorf("record %d is not a reply to a recorded request: furl show prints the numbers of replies", number)
}
