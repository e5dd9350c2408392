package transcript

import (
	"os"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

// A session of iFlow is not Claude Code's: results are Gemini CLI's, in two forms, and the records of one
// reply are one request.
func TestIFlow(t *testing.T) {
	rec, err := ReadFile("testdata/iflow.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s := rec.Sessions[0]
	if rec.Agent != "iFlow" || s.Wire != furl.FormatChat || s.Project != "/home/ann/proj" || len(rec.Skipped) > 0 {
		t.Errorf("agent %q, %s, project %q, skipped %v", rec.Agent, s.Wire, s.Project, rec.Skipped)
	}
	input, requests, failed := 0, 0, 0
	var results []string
	for _, r := range s.Log.Records(0) {
		switch b := r.Body.(type) {
		case *furl.Exchange:
			requests++
			input += b.Usage.Input
		case *furl.Message:
			for i := range b.Blocks {
				if b.Blocks[i].Kind == furl.KindResult {
					results = append(results, b.Blocks[i].Text)
				}
				if b.Blocks[i].Error {
					failed++
				}
			}
		}
	}
	if requests != 5 || input != 16400+16472+16600+16650+16660 || failed != 1 || strings.Join(results, "|") != "a.txt\nb.txt|words|File not found" {
		t.Errorf("%d requests of %d tokens, %d failed results of %q", requests, input, failed, results)
	}
}

// Claude Code's files are Claude Code's, whatever the session is called.
func TestIFlowIsRecognised(t *testing.T) {
	data, err := os.ReadFile("testdata/claude-main.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	rec, err := Read("x.jsonl", strings.NewReader(string(data)))
	if err != nil || rec.Agent != "Claude Code" {
		t.Errorf("read as %v, %v", rec, err)
	}
	line := `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"session-1","message":{"role":"user","content":"Hi."}}`
	if rec, err = Read("x.jsonl", strings.NewReader(line)); err != nil || rec.Agent != "Claude Code" {
		t.Errorf("read as %v, %v", rec, err)
	}
}
