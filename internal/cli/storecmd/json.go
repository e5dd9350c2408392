package storecmd

import (
	"time"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/policy"
	"github.com/furlhq/furl/transcript"
)

// The JSON of furl show and furl reduce. Messages have the numbers of their records.
// Markers have none.
type (
	jsonView struct {
		Request    int             `json:"request"`
		Requests   int             `json:"requests"`
		Model      string          `json:"model"`
		Policy     string          `json:"policy"`
		Recorded   bool            `json:"as_recorded,omitempty"` // what was sent, without a policy
		Window     int             `json:"window,omitempty"`      // 0: unknown
		Before     int             `json:"tokens_before"`
		After      int             `json:"tokens_after"`
		Steps      []jsonStep      `json:"steps"`
		Messages   []jsonMessage   `json:"messages"`
		Reductions []jsonReduction `json:"reductions"`
		Outcome    *policy.Outcome `json:"outcome,omitempty"` // of furl reduce
	}
	jsonStep struct {
		Stage   string `json:"stage"`
		Skipped string `json:"skipped,omitempty"`
		Before  int    `json:"tokens_before"`
		After   int    `json:"tokens_after"`
	}
	jsonMessage struct {
		Record furl.Seq    `json:"record,omitempty"`
		Role   string      `json:"role"`
		Time   *time.Time  `json:"time,omitempty"`
		By     furl.Seq    `json:"shown_by,omitempty"`
		Blocks []jsonBlock `json:"blocks"`
	}
	jsonBlock struct {
		Kind     string   `json:"kind"`
		Tool     string   `json:"tool,omitempty"`
		ID       string   `json:"id,omitempty"`
		Text     string   `json:"text"`
		Failed   bool     `json:"failed,omitempty"`
		Own      bool     `json:"own,omitempty"` // added by furl; the client does not have it
		Tokens   int      `json:"tokens"`
		HiddenBy furl.Seq `json:"hidden_by,omitempty"`
		Original int      `json:"original_tokens,omitempty"`
	}
	jsonReduction struct {
		Record furl.Seq `json:"record"`
		Stage  string   `json:"stage"`
		Reason string   `json:"reason"`
		Before int      `json:"tokens_before"`
		After  int      `json:"tokens_after"`
		Items  int      `json:"items"`
		Lifted bool     `json:"lifted,omitempty"`
	}
)

func viewJSON(in *inspection) jsonView {
	out := jsonView{
		Request: in.Number, Requests: in.Requests, Model: in.Model, Policy: in.Policy, Recorded: in.AsRecorded, Window: in.Window,
		Before: in.Before, After: in.After, Steps: []jsonStep{}, Messages: []jsonMessage{}, Reductions: []jsonReduction{},
	}
	for _, st := range in.Steps {
		out.Steps = append(out.Steps, jsonStep{st.Stage, st.Skipped, st.Before, st.After})
	}
	for i := range in.View.Messages {
		sh := &in.View.Messages[i]
		m := jsonMessage{Role: string(sh.Msg.Role), By: sh.By}
		m.Record = in.record(sh.Seq)
		for j := range sh.Blocks {
			b := &sh.Blocks[j]
			jb := blockJSON(b.Block)
			jb.Text, jb.Tokens = b.Words(), b.Tokens
			if b.By != 0 {
				jb.HiddenBy, jb.Original = b.By, b.Block.Tokens
			}
			m.Blocks = append(m.Blocks, jb)
		}
		out.Messages = append(out.Messages, m)
	}
	for red := range in.View.State.Reductions() {
		out.Reductions = append(out.Reductions, jsonReduction{red.Seq, red.Stage, red.Reason, red.Before, red.After, len(red.Items), red.Undone})
	}
	return out
}

func blockJSON(b *furl.Block) jsonBlock {
	text := b.Text
	if b.Kind == furl.KindCall {
		text = string(b.Args)
	}
	return jsonBlock{Kind: b.Kind.String(), Tool: b.Name, ID: b.ID, Text: text, Failed: b.Error, Own: b.Own, Tokens: b.Tokens}
}

func transcriptJSON(s *transcript.Session) map[string]any {
	messages := []jsonMessage{}
	for i := 1; i <= s.Log.Len(); i++ {
		r := s.Log.At(furl.Seq(i))
		b, ok := r.Body.(*furl.Message)
		if !ok {
			continue
		}
		m := jsonMessage{Record: r.Seq, Role: string(b.Role)}
		if !r.At.IsZero() {
			m.Time = &r.At
		}
		for j := range b.Blocks {
			m.Blocks = append(m.Blocks, blockJSON(&b.Blocks[j]))
		}
		messages = append(messages, m)
	}
	return map[string]any{"session": s.ID, "title": s.Title, "model": s.Model, "messages": messages}
}
