package transcript

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/furlhq/furl"
)

// Tasks in the storage of the extensions that have the form of Roo Code's. They were written from the sources of
// Zoo Code and Cline. A request that failed is counted, and belongs to no reply; other files are no recordings.
func TestRooExtensions(t *testing.T) {
	const history = `[{"role":"user","content":[{"type":"text","text":"Sort the list."}],"ts":1767225600000},
		{"role":"assistant","content":[{"type":"text","text":"Sorted."}],"ts":1767225605000},
		{"role":"user","content":[{"type":"text","text":"And reverse it."}],"ts":1767225606000},
		{"role":"assistant","content":[{"type":"text","text":"Reversed."}],"ts":1767225609000}]`
	const chat = `[{"ts":1767225600000,"type":"say","say":"text","text":"Sort the list."},
		{"ts":1767225600500,"type":"say","say":"api_req_started","text":"{\"apiProtocol\":\"anthropic\",\"tokensIn\":1000,\"tokensOut\":20,\"cacheWrites\":900,\"cacheReads\":50,\"cost\":0.01}"},
		{"ts":1767225606500,"type":"say","say":"api_req_started","text":"{\"tokensIn\":1100,\"tokensOut\":1,\"cacheWrites\":0,\"cacheReads\":900,\"cancelReason\":\"streaming_failed\"}"},
		{"ts":1767225607500,"type":"say","say":"api_req_started","text":"{\"tokensIn\":30,\"tokensOut\":25,\"cacheWrites\":100,\"cacheReads\":950}"},
		{"ts":1767225607600,"type":"say","say":"api_req_started","text":"{broken"}]`
	for _, tt := range []struct {
		extension, agent, project, model string
		files                            map[string]string
		want                             []furl.Usage
	}{
		{"zoocodeorganization.zoo-code", "Zoo Code", "/home/user/project", "", map[string]string{
			"api_conversation_history.json": history, "ui_messages.json": chat,
			"history_item.json":  `{"id":"1","ts":1767225609000,"task":"Sort the list.","tokensIn":2130,"tokensOut":46,"totalCost":0.01,"workspace":"/home/user/project"}`,
			"task_metadata.json": `{"files_in_context":[]}`,
			"../_index.json":     `{"version":1,"updatedAt":1767225609000,"entries":[{"id":"1","ts":1767225609000,"task":"Sort the list.","tokensIn":2130,"tokensOut":46}]}`,
		}, []furl.Usage{{Input: 50, CacheRead: 50, CacheWrite: 900, Output: 20}, {Input: 200, CacheRead: 900, Output: 1}, {Input: 30, CacheRead: 950, CacheWrite: 100, Output: 25}}},
		{"saoudrizwan.claude-dev", "Cline", "", "gpt-5.1", map[string]string{
			"api_conversation_history.json": `[{"role":"user","content":"Sort.","ts":1767225600000},{"role":"assistant","content":[{"type":"text","text":"Sorted."}],"ts":1767225605000,
				"modelInfo":{"modelId":"gpt-5.1","providerId":"openai","mode":"act"},"metrics":{"tokens":{"prompt":1000,"completion":20,"cached":600},"cost":0.01}}]`,
		}, []furl.Usage{{Input: 400, CacheRead: 600, Output: 20}}},
		{"rooveterinaryinc.roo-cline", "Roo Code", "", "", map[string]string{
			"api_conversation_history.json": `[{"role":"user","content":[{"type":"text","text":"Sort."}]},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"ls","input":{}}]}]`,
			"ui_messages.json":              `[{"ts":1767225600500,"type":"say","say":"api_req_started","text":"{\"tokensIn\":70,\"tokensOut\":7}"}]`,
		}, []furl.Usage{{Input: 70, Output: 7}}},
	} {
		tasks := filepath.Join(t.TempDir(), tt.extension, "tasks")
		for name, text := range tt.files {
			path := filepath.Join(tasks, "1", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list := walked(t, tasks)
		if len(list) != 1 || list[0].Agent != tt.agent {
			t.Fatalf("%s: %d recordings", tt.extension, len(list))
		}
		s := only(t, list[0])
		if s.ID != "1" || s.Project != tt.project || s.Model != tt.model {
			t.Errorf("%s: id %q, project %q, model %q", tt.extension, s.ID, s.Project, s.Model)
		}
		ex, _ := exchanges(s)
		if len(ex) != len(tt.want) {
			t.Fatalf("%s: %d requests, want %d", tt.extension, len(ex), len(tt.want))
		}
		for i, x := range ex {
			if x.Usage != tt.want[i] {
				t.Errorf("%s: request %d used %+v, want %+v", tt.extension, i+1, x.Usage, tt.want[i])
			}
		}
		checkRequests(t, s, true)
	}
}

// What a task used is the same after it was exported for Roo Code.
func TestRooUsageExported(t *testing.T) {
	s := only(t, fixture(t, "cline.json"))
	folder, _ := exportTask(t, s, nil)
	again := only(t, walked(t, folder)[0])
	var want, got furl.Usage
	for _, side := range []struct {
		s   *Session
		sum *furl.Usage
	}{{s, &want}, {again, &got}} {
		ex, _ := exchanges(side.s)
		for _, x := range ex {
			*side.sum = side.sum.Add(x.Usage)
		}
	}
	if got != want || want == (furl.Usage{}) {
		t.Errorf("used %+v, want %+v", got, want)
	}
}
