package gateway_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/gateway"
	"github.com/furlhq/furl/session"
	"github.com/furlhq/furl/sim"
)

func pngOf(t *testing.T, width int) string {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, width, 2))); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// takeScreenshot adds a step to the history whose result is an image.
func takeScreenshot(t *testing.T, a *agent, width int) {
	t.Helper()
	id := fmt.Sprintf("toolu_%03d", len(a.history))
	a.history = append(a.history,
		json.RawMessage(`{"role":"assistant","content":[{"type":"tool_use","id":"`+id+`","name":"bash","input":{}}]}`),
		json.RawMessage(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"`+pngOf(t, width)+`"}}]}]}`))
}

// With more than 20 images, each has a limit of 2,000 pixels. furl hides the oldest, so
// that all requests are answered and the newest screenshots stay, and does not hide one
// with each request.
func TestManyLargeImages(t *testing.T) {
	st := newFixture(t, &sim.Options{Player: sim.NewAgent(&sim.AgentOptions{Steps: 40})}, &session.Options{Policy: "compaction"}, nil)
	a := &agent{format: furl.FormatAnthropic, model: "claude-opus-4-6"}
	a.say("Test the page.")
	shot := []byte(`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pngOf(t, 2400) + `"}}]`)
	var hid []int // the numbers of images in the requests that hid some
	for i := range 34 {
		resp, answer := st.post(t, a.path(), a.body())
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("with %d screenshots: %s", i, answer)
		}
		if resp.Header.Get("X-Furl-Reductions") != "0" {
			hid = append(hid, i)
		}
		all := st.sim.Requests()
		sent, newest := all[len(all)-1].Body, a.history[len(a.history)-1]
		if n := bytes.Count(sent, []byte(`"type":"image"`)); n > 20 || n < min(i, 15) || !bytes.Contains(sent, newest) {
			t.Fatalf("with %d screenshots, %d images were sent", i, n)
		}
		a.take(t, answer, func(furl.Block) string { return "SHOT" })
		last := &a.history[len(a.history)-1]
		*last = bytes.ReplaceAll(*last, []byte(`"SHOT"`), shot)
	}
	if !slices.Equal(hid, []int{21, 27, 33}) {
		t.Errorf("requests with %v images hid some", hid)
	}
}

// Where furl hides nothing, a note says why the provider refuses the request.
func TestNoteOnLargeImages(t *testing.T) {
	for _, tt := range []struct {
		name, policy string
		o            gateway.Options
		headers      []string
	}{
		{"none", "none", gateway.Options{}, nil},
		{"dry runs", "auto", gateway.Options{DryRun: true}, nil},
		{"a dry run", "auto", gateway.Options{}, []string{"X-Furl-Dry-Run", "true"}},
		{"bypass", "auto", gateway.Options{}, []string{"X-Furl-Bypass", "true"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := newFixture(t, &sim.Options{}, &session.Options{Policy: tt.policy}, &tt.o)
			a := &agent{format: furl.FormatAnthropic, model: "claude-opus-4-6"}
			a.say("Test the page.")
			for i := range 21 {
				takeScreenshot(t, a, map[bool]int{true: 2400, false: 800}[i == 3])
				if i < 19 {
					continue
				}
				resp, answer := st.post(t, a.path(), a.body(), tt.headers...)
				const want = "the provider may refuse this request: 1 image is wider or higher than 2000 pixels, the limit with more than 20 images"
				refused, note := resp.StatusCode == http.StatusBadRequest, resp.Header.Get("X-Furl-Note")
				if refused != (i == 20) || strings.Contains(note, want) != refused {
					t.Errorf("with %d images: %d %s, note %q", i+1, resp.StatusCode, answer, note)
				}
			}
		})
	}
}
