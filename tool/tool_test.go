package tool_test

import (
	"errors"
	"testing"

	"github.com/furlhq/furl/tool"
)

func TestResultText(t *testing.T) {
	r := tool.Result{Parts: []tool.Part{{Text: "a"}, {Type: "image/png", Data: []byte{1}}, {Text: "b"}}}
	if got, want := r.Text(), "a\nb"; got != want {
		t.Errorf("Text is %q, want %q", got, want)
	}
	failed := tool.Failed(errors.New("no such file"))
	if got, want := failed.Text(), "Error: no such file"; got != want || !failed.Error {
		t.Errorf("Failed is %q, error %v; want %q, error true", got, failed.Error, want)
	}
}
