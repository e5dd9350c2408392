package sim_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/sim"
)

// A client replaces its history by a summary that the agent wrote, as Claude Code, Codex and pi
// do. The agent continues its task, or starts a new one if the user says something.
func TestAgentGoesOnAfterCompaction(t *testing.T) {
	for _, format := range []furl.Format{furl.FormatAnthropic, furl.FormatChat, furl.FormatResponses} {
		for _, around := range []string{
			"This session is being continued from a previous conversation that ran out of context. The summary below covers the earlier portion of the conversation.\n\n%s\n\nContinue from where it left off.",
			"Another language model started to solve this problem and produced a summary of its thinking process. Here is the summary:\n%s",
			"The conversation history before this point was compacted into the following summary:\n\n<summary>\n%s\n</summary>",
		} {
			for _, said := range []string{"", "Now do something else."} {
				t.Run(fmt.Sprintf("%s/%.16s/%s", format, around, said), func(t *testing.T) {
					srv := httptest.NewServer(sim.New(&sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 6})}))
					defer srv.Close()
					c := sim.Client{URL: srv.URL, Format: format, Model: "gpt-5", Header: map[string][]string{"Authorization": {"Bearer x"}}}
					if format == furl.FormatAnthropic {
						c.Model = "claude-sonnet-4-5"
					}
					say := func(words string) string {
						t.Helper()
						if words != "" {
							if err := c.Say(words); err != nil {
								t.Fatal(err)
							}
						}
						steps := 0
						reply, err := c.Work(t.Context(), func(furl.Block) string {
							if steps++; steps == 40 {
								t.Fatal("the agent does not end")
							}
							return "some output"
						})
						if err != nil {
							t.Fatal(err)
						}
						m := reply.Messages[len(reply.Messages)-1]
						return m.Blocks[len(m.Blocks)-1].Text
					}
					if err := c.Say("Do the work."); err != nil {
						t.Fatal(err)
					}
					for range 4 {
						reply, err := c.Send(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						for _, m := range reply.Messages {
							for _, b := range m.Blocks {
								if b.Kind == furl.KindCall {
									if err := c.Results([]furl.Block{{Kind: furl.KindResult, ID: b.ID, Text: "some output"}}); err != nil {
										t.Fatal(err)
									}
								}
							}
						}
					}
					summary := say("Write a detailed summary. Do not call any tools.")
					if !strings.Contains(summary, "Done so far: 4 tool calls.") {
						t.Fatalf("the summary is %q", summary)
					}
					c.History = []json.RawMessage{}
					want := "Done after 6 steps."
					if err := c.Say(fmt.Sprintf(around, summary)); err != nil {
						t.Fatal(err)
					}
					if said != "" {
						want = "Done after 10 steps."
					}
					if got := say(said); !strings.HasPrefix(got, want) {
						t.Errorf("it ends with %q, want %q", got, want)
					}
				})
			}
		}
	}
}
