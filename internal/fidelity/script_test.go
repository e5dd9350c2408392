package fidelity

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/furlhq/furl"
)

// scriptCall is a call in Codex's code mode.
func scriptCall(id, source string) furl.Block {
	args, _ := json.Marshal(source)
	return call(id, "exec", string(args))
}

// The calls in a script count like calls of their own, and what it prints like their
// results.
func TestScript(t *testing.T) {
	var tracker Tracker
	for _, m := range []*furl.Message{
		text(furl.RoleUser, "Append loses records."),
		message(furl.RoleAssistant, scriptCall("c1", "const r = await tools.exec_command({cmd:\"cat store/store.go\\ncat codec_v2.go\",workdir:\"/srv\"}); text(JSON.stringify(r));")),
		message(furl.RoleTool, result("c1", "Script completed\nWall time 0.1 seconds\nOutput:\n\n"+
			`{"exit_code":0,"output":"func (s *Store) Append(ctx context.Context, recs []Record) error {\n\treturn s.db.Write(ctx, encodeAll(recs), \"append\")\n"}`)),
	} {
		tracker.Add(m)
	}
	r := tracker.Reply(message(furl.RoleAssistant,
		scriptCall("c2", "const patch = \"*** Begin Patch\\n*** Update File: store/store.go\\n@@\\n-\\treturn s.db.Write(ctx, encodeAll(recs), \\\"append\\\")\\n+\\treturn nil\\n*** End Patch\";\ntext(await tools.apply_patch(patch));"),
		scriptCall("c3", `for (const cmd of ["ls", "cat store/store.go\ncat codec_v2.go"]) await tools.exec_command({cmd, workdir: "/srv"})`)))

	var refs []string
	for _, ref := range r.Refs {
		refs = append(refs, ref.Name)
	}
	if want := []string{"store/store.go", "s.db.Write", "encodeAll", "codec_v2.go"}; !slices.Equal(refs, want) {
		t.Errorf("references %q, want %q", refs, want)
	}
	old := `return s.db.Write(ctx, encodeAll(recs), "append")`
	if len(r.Edits) != 1 || r.Edits[0].Tool != "apply_patch" || len(r.Edits[0].Lines) != 1 || r.Edits[0].Lines[0].Text != old {
		t.Errorf("edits %+v", r.Edits)
	}
	if len(r.Lines) != 1 || r.Lines[0].Text != old {
		t.Errorf("quoted lines %+v", r.Lines)
	}
	if len(r.Repeats) != 1 || r.Repeats[0].Tool != "exec_command" || len(r.Repeats[0].results) != 1 {
		t.Errorf("repeats %+v", r.Repeats)
	}
	if r.Unmeasured {
		t.Error("edits were not measured")
	}
	if !tracker.Reply(message(furl.RoleAssistant, scriptCall("c4", "await tools.apply_patch(await make())"))).Unmeasured {
		t.Error("an edit with an unknown text was measured")
	}

	tracker.Truncate(1)
	tracker.Add(message(furl.RoleTool, result("c1", "late")))
	if r := tracker.Reply(message(furl.RoleAssistant, scriptCall("c5", `tools.exec_command({cmd:"ls"})`))); r.Repeats != nil {
		t.Errorf("repeats %+v of calls that were removed", r.Repeats)
	}
}
