package gateway_test

import (
	"strings"
	"testing"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/session"
)

// C10: with ask_first, the gateway's summary waits while the agent works on. It is
// listed, edited and approved over the API; the model sees it from the next request on.
func TestC10ApprovalOverTheAPI(t *testing.T) {
	st := compacting(t, &gated{}, nil, func(o *session.Options) { o.AskFirst = new(true) })
	a := newAgent(furl.FormatAnthropic, true)
	var id string
	var waiting map[string]any
	for waiting == nil {
		if !a.step(t, st, few) {
			t.Fatal("the agent ended before a summary was ready")
		}
		st.gateway.WaitSummaries()
		id = string(st.only(t).ID())
		_, out := st.ask(t, "GET", "/sessions/"+id+"/summary", "")
		waiting, _ = out["waiting"].(map[string]any)
	}
	for range 6 {
		a.step(t, st, few)
	}
	if waiting["state"] != "waiting" || waiting["summary"] == "" {
		t.Errorf("the waiting summary is %v", waiting)
	}
	for _, r := range st.only(t).Reductions() {
		if r.Stage == "compact" {
			t.Fatal("the summary was used without approval")
		}
	}
	path := "/sessions/" + id + "/summary"
	if status, out := st.ask(t, "POST", path+"/edit", `{}`); status != 400 {
		t.Errorf("an edit without text: %d %v", status, out)
	}
	if status, out := st.ask(t, "POST", path+"/edit", `{"text":" "}`); status != 400 {
		t.Errorf("an edit with an empty text: %d %v", status, out)
	}
	if status, out := st.ask(t, "POST", path+"/edit", `{"text":"All was looked at."}`); status != 200 {
		t.Errorf("an edit: %d %v", status, out)
	}
	status, out := st.ask(t, "POST", path+"/approve", "")
	if status != 200 || out["reduction_id"] == 0.0 {
		t.Fatalf("an approval: %d %v", status, out)
	}
	if status, out := st.ask(t, "POST", path+"/refuse", ""); status != 404 {
		t.Errorf("a refusal of none: %d %v", status, out)
	}
	a.step(t, st, few)
	requests := st.sim.Requests()
	if last := requests[len(requests)-1]; !strings.Contains(string(last.Body), "All was looked at.") {
		t.Error("the model does not see the approved summary")
	}
	st.allOK(t)
}
