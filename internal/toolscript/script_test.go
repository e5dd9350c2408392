package toolscript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/furlhq/furl"
)

func scriptCall(source string) *furl.Block {
	args, _ := json.Marshal(source)
	return &furl.Block{Kind: furl.KindCall, ID: "c1", Name: "exec", Args: args}
}

const (
	patch    = "*** Begin Patch\n*** Update File: src/a.go\n@@\n-\told(\"x\")\n+\tnew(\"x\")\n*** End Patch"
	patchLit = `"*** Begin Patch\n*** Update File: src/a.go\n@@\n-\told(\"x\")\n+\tnew(\"x\")\n*** End Patch"`
)

func TestCalls(t *testing.T) {
	patched := func() string { s, _ := json.Marshal(patch); return "apply_patch " + string(s) }()
	for _, tt := range []struct {
		name, source string
		want         []string
		unread       bool
	}{
		{name: "a command", source: `const r = await tools.exec_command({cmd:"sed -n '1,9p' a.go","workdir":"/w","yield_time_ms":10000, tty: true});text(r.output)`,
			want: []string{`exec_command {"cmd":"sed -n '1,9p' a.go","workdir":"/w","yield_time_ms":10000,"tty":true}`}},
		{name: "a pragma", source: "// @exec: {\"yield_time_ms\": 1}\ntext(await tools.exec_command({cmd: 'ls'}))", want: []string{`exec_command {"cmd":"ls"}`}},
		{name: "a patch in a name", source: "const patch = " + patchLit + ";\ntext(await tools.apply_patch(patch));", want: []string{patched}},
		{name: "a patch in place", source: "const r = await tools.apply_patch(" + patchLit + "); text(typeof r === \"string\" ? r : JSON.stringify(r));", want: []string{patched}},
		{name: "a template", source: "await tools.apply_patch(`" + strings.ReplaceAll(patch, "`", "\\`") + "`)", want: []string{patched}},
		{name: "a raw template", source: "const p = String.raw`*** Begin Patch\n+a\\n\\t\\`b\\`\n*** End Patch`; text(await tools.apply_patch(p));",
			want: []string{`apply_patch "*** Begin Patch\n+a\\n\\t\\` + "`b\\\\`" + `\n*** End Patch"`}},
		{name: "a joined list", source: "const p = [\n'*** Begin Patch',\n'*** Update File: src/a.go',\n'@@',\n'-\\told(\"x\")', '+\\tnew(\"x\")',\n'*** End Patch',\n].join('\\n');\ntext(await tools.apply_patch(p))", want: []string{patched}},
		{name: "a sum", source: `let p = "*** Begin Patch\n" + '*** Update File: src/a.go\n';
p += "@@\n-\told(\"x\")\n";
p = p + "+\tnew(\"x\")\n*** End Patch"
text(await tools.apply_patch(p))`, want: []string{patched}},
		{name: "inserts", source: "const f = \"src/a.go\"; const b = `-\told(\"x\")\n+\tnew(\"x\")`;\nawait tools.apply_patch(`*** Begin Patch\n*** Update File: ${f}\n@@\n${b}\n*** End Patch`)", want: []string{patched}},
		{name: "several at once", source: "const [a,b] = await Promise.all([\n tools.exec_command({cmd:\"git status\"}),\n tools.mcp__github__fetch_pr({repo:\"a/b\",pr_number:1075}),\n]); text(\"A\\n\"+a.output+\"\\nB\"+JSON.stringify(b));",
			want: []string{`exec_command {"cmd":"git status"}`, `mcp__github__fetch_pr {"repo":"a/b","pr_number":1075}`}},
		{name: "a mapped list", source: "const cmds = ['ls', 'cat b.go'];\nconst rs = await Promise.all(cmds.map(cmd => tools.exec_command({cmd, workdir: '/w'})));\nrs.forEach((r,i)=>text(`---${i+1}---\\n${r.output}`));",
			want: []string{`exec_command {"cmd":"ls","workdir":"/w"}`, `exec_command {"cmd":"cat b.go","workdir":"/w"}`}},
		{name: "pairs", source: "const cmds = [['A', 'ls', 1], ['B', 'pwd', 2]]; for (const [name, cmd] of cmds) { const r = await tools.exec_command({cmd}); text(`${name}: ${r.output}`) }",
			want: []string{`exec_command {"cmd":"ls"}`, `exec_command {"cmd":"pwd"}`}},
		{name: "entries", source: "for (const [i, cmd] of ['ls'].entries()) await tools.exec_command({cmd: cmd + ' ' + i});\nfor (const [k, cmd] of Object.entries({a: 'pwd'})) await tools.exec_command({cmd});",
			want: []string{`exec_command {"cmd":"ls 0"}`, `exec_command {"cmd":"pwd"}`}},
		{name: "objects", source: "const files = [{path: 'a.go', n: 1}, {path: 'b.go', n: 2}];\nfor (const {path, n: lines = 9} of files) text(await tools.exec_command({cmd: `head -${lines} ${path}`}));",
			want: []string{`exec_command {"cmd":"head -1 a.go"}`, `exec_command {"cmd":"head -2 b.go"}`}},
		{name: "a function", source: "const base = {workdir: '/w'};\nconst run = async (cmd, n = 5) => { const r = await tools.exec_command({...base, cmd, max_output_tokens: n}); return r.output; };\ntext(await run('ls'));\ntext(await run('pwd', 7));",
			want: []string{`exec_command {"workdir":"/w","cmd":"ls","max_output_tokens":5}`, `exec_command {"workdir":"/w","cmd":"pwd","max_output_tokens":7}`}},
		{name: "a function declaration", source: "async function sh(cmd) {\n  return (await tools.exec_command({cmd})).output;\n}\nif (true) { text(await sh('ls')) } else text(await sh(\"pwd\"))", want: []string{`exec_command {"cmd":"ls"}`, `exec_command {"cmd":"pwd"}`}},
		{name: "a function that is declared later", source: "text(await sh('ls'));\nexport const x = 1\nasync function sh(cmd) { if (!cmd) return; { return tools.exec_command({cmd}) } }", want: []string{`exec_command {"cmd":"ls"}`}},
		{name: "a result decides", source: "const r = await tools.exec_command({cmd:'make'}); if (r.exit_code !== 0) { text(await tools.exec_command({cmd:'cat log'})) }",
			want: []string{`exec_command {"cmd":"make"}`, `exec_command {"cmd":"cat log"}`}},
		{name: "other ways to a tool", source: "const {exec_command: run} = tools; const t = tools; await run?.({cmd:'a'}); await t['exec_command']({cmd:'b'}); await tools?.exec_command({cmd:'c'}); const w = tools.exec_command; w({cmd:'d'})",
			want: []string{`exec_command {"cmd":"a"}`, `exec_command {"cmd":"b"}`, `exec_command {"cmd":"c"}`, `exec_command {"cmd":"d"}`}},
		{name: "in a template", source: "text(`${(await tools.exec_command({cmd:'ls'})).output}`)", want: []string{`exec_command {"cmd":"ls"}`}},
		{name: "after a pattern", source: "const bad = /[\"'`/]tools\\.x\\(/.test(s) ? 1 : 2 / 3; await tools.exec_command({cmd:'ls'})", want: []string{`exec_command {"cmd":"ls"}`}},
		{name: "a list that grows", source: "const jobs = []; jobs.push(tools.exec_command({cmd:'ls'})); const lines = ['a']; lines.push('b', \"c\"); await tools.apply_patch(lines.join(\"\\n\"))",
			want: []string{`exec_command {"cmd":"ls"}`, `apply_patch "a\nb\nc"`}},
		{name: "then", source: "tools.exec_command({cmd:'ls'}).then(r => tools.write_stdin({session_id: r.session_id, chars: ''}))", want: []string{`exec_command {"cmd":"ls"}`, `write_stdin {"chars":""}`}},
		{name: "replaced marks", source: "await tools.apply_patch(String.raw`a BT b`.replaceAll('BT', '`').trim())", want: []string{"apply_patch \"a ` b\""}},
		{name: "a text about a tool", source: "const doc = \"tools.apply_patch('x')\"; // tools.exec_command({cmd:'ls'})\ntext(doc)"},
		{name: "a plan", source: `await tools.update_plan({plan:[{step:"a",status:"done"},],explanation:"why"})`, want: []string{`update_plan {"plan":[{"step":"a","status":"done"}],"explanation":"why"}`}},
		{name: "an escape", source: `await tools.exec_command({cmd:"\x61\u0062\u{63}\uD83D\uDE00\
d"})`, want: []string{`exec_command {"cmd":"abc😀d"}`}},

		{name: "an unknown patch", source: "const r = await tools.exec_command({cmd:'cat p'}); await tools.apply_patch(r.output)", want: []string{`exec_command {"cmd":"cat p"}`, `apply_patch {}`}, unread: true},
		{name: "an unknown part", source: "await tools.apply_patch(`*** Begin Patch\n*** Update File: a.go\n@@\n${body}\n*** End Patch`)",
			want: []string{`apply_patch "*** Begin Patch\n*** Update File: a.go\n@@\n` + Hole + `\n*** End Patch"`}, unread: true},
		{name: "an unknown new line", source: "await tools.apply_patch(`*** Begin Patch\n*** Update File: a.go\n@@\n-a\n+${b}\n*** End Patch`)",
			want: []string{`apply_patch "*** Begin Patch\n*** Update File: a.go\n@@\n-a\n+` + Hole + `\n*** End Patch"`}},
		{name: "an unknown command", source: "for (const f of files) await tools.exec_command({cmd: f.cmd})", want: []string{"exec_command {}"}, unread: true},
		{name: "a part of a command", source: "const ids = load('ids'); await tools.exec_command({cmd: `gh issue view ${ids[0]}`})", want: []string{`exec_command {"cmd":"gh issue view ` + Hole + `"}`}},
		{name: "an unknown tool", source: "await tools[name]({cmd: 'ls'})", unread: true},
		{name: "tools given away", source: "await helper(tools, 'x')", unread: true},
		{name: "cut off", source: "const p = \"*** Begin Patch\\n-a; await tools.apply_patch(p)", unread: true},
		{name: "no end", source: "await tools.exec_command({cmd:'ls'", want: []string{`exec_command {"cmd":"ls"}`}, unread: true},
		{name: "a function that nothing calls here", source: "const go = () => tools.exec_command({cmd:'ls'}); handlers.x = go", want: []string{`exec_command {"cmd":"ls"}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls, unread := Inside(scriptCall(tt.source))
			var got []string
			for _, c := range calls {
				if c.ID != "c1" || c.Kind != furl.KindCall || !json.Valid(c.Args) {
					t.Errorf("call %+v", c)
				}
				got = append(got, c.Name+" "+string(c.Args))
			}
			if !slices.Equal(got, tt.want) || unread != tt.unread {
				t.Errorf("calls, unread %t:\n%s\nwant, unread %t:\n%s", unread, strings.Join(got, "\n"), tt.unread, strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestNoScript(t *testing.T) {
	for _, b := range []*furl.Block{
		{Kind: furl.KindCall, Name: "exec_command", Args: []byte(`{"cmd":"cat tools.js"}`)},
		{Kind: furl.KindCall, Name: "exec", Args: []byte(`{"command":"ls tools"}`)},
		{Kind: furl.KindCall, Name: "exec", Args: []byte(`"text(ALL_TOOLS.length)"`)},
		{Kind: furl.KindCall, Name: "exec", Args: []byte(`"tools`)},
		{Kind: furl.KindText, Text: "tools.apply_patch('x')"},
	} {
		if calls, unread := Inside(b); calls != nil || unread {
			t.Errorf("%s: calls %v, unread %t", b.Args, calls, unread)
		}
		if calls := Calls(b); len(calls) != 1 || calls[0] != b {
			t.Errorf("%s stands for %v, want itself", b.Args, calls)
		}
	}
}

func TestLanguages(t *testing.T) {
	for _, tt := range []struct{ tool, args, want string }{
		{"exec", `{"input":"tools.exec_command({cmd:'ls'})"}`, `exec_command {"cmd":"ls"}`},
		{"codemode", `{"code":"const file = await tools.read({ path: \"matrix.txt\", limit: 1 }); text(file)"}`, `read {"path":"matrix.txt","limit":1}`},
		{"codemode", `{"code":"async () => { const r = await codemode.searchWeb({ query: \"test\" }); return r; }"}`, `searchWeb {"query":"test"}`},
		{"run_tools_with_javascript", `{"script":"const m = new Map(); const f = s => Number(s); for (const path of ['a.go']) { edit_file({path, edits: [{oldText: 'a', newText: 'b'}]}); f(1); console.log(path) }"}`,
			`edit_file {"path":"a.go","edits":[{"oldText":"a","newText":"b"}]}`},
	} {
		calls, unread := Inside(&furl.Block{Kind: furl.KindCall, Name: tt.tool, Args: []byte(tt.args)})
		if len(calls) != 1 || calls[0].Name+" "+string(calls[0].Args) != tt.want || unread {
			t.Errorf("%s %s: %d calls, want %s", tt.tool, tt.args, len(calls), tt.want)
			for _, c := range calls {
				t.Logf("%s %s", c.Name, c.Args)
			}
		}
	}
}

func TestTexts(t *testing.T) {
	got := slices.Collect(Texts(scriptCall("const p = " + patchLit + "; const q = String.raw`a\\n${ 'b' }c`;\nawait tools.exec_command({'cmd': 'ls', \"workdir\":\"/w\"}); x ? 'd' : \"e\"")))
	if want := []string{patch, `a\n`, "b", "c", "ls", "/w", "d", "e"}; !slices.Equal(got, want) {
		t.Errorf("texts %q\nwant  %q", got, want)
	}
	result := furl.Block{Kind: furl.KindResult, Text: "Script completed\nWall time 0.1 seconds\nOutput:\n\n{\"exit_code\":0,\"output\":\"a\\n\\tb\"}\nplain {\n[not json]\n[\"c\"]"}
	got = slices.Collect(Texts(&result))
	if want := []string{"Script completed\nWall time 0.1 seconds\nOutput:\n\n", "a\n\tb", "plain {\n[not json]\n", "c"}; !slices.Equal(got, want) {
		t.Errorf("texts %q\nwant  %q", got, want)
	}
}

// A script that grows much from little is read in part.
func TestLimits(t *testing.T) {
	for name, source := range map[string]string{
		"a text that doubles": "let s = 'xxxxxxxx';" + strings.Repeat("s = s + s;", 100) + "tools.apply_patch(s)",
		"a list that doubles": "let s = ['xxxxxxxx'];" + strings.Repeat("s = [...s, ...s];", 100) + "tools.apply_patch(s.join(''))",
		"a list of lists":     "let s = ['xxxxxxxx'];" + strings.Repeat("s = [s, s, s, s];", 100) + "tools.exec_command({cmd: s})",
		"brackets":            "tools.x(" + strings.Repeat("[", 100_000),
		"parentheses":         "tools.x(" + strings.Repeat("(", 100_000) + strings.Repeat(")", 100_000),
		"functions that call another": func() string {
			var s strings.Builder
			s.WriteString("const f0 = () => tools.x('a');")
			for i := range 30 {
				fmt.Fprintf(&s, "const f%d = () => { f%d(); f%d() };", i+1, i, i)
			}
			return s.String()
		}(),
		"itself":                   "const f = () => { tools.x('a'); f(); f(); f() }; f()",
		"loops":                    "const l = ['a','b','c','d','e','f','g','h'];" + strings.Repeat("for (const x of l) ", 12) + "tools.x(x)",
		"functions in functions":   strings.Repeat("() => ", 3000) + "tools.x('a')",
		"calls with functions":     strings.Repeat("f(() => ", 3000) + "tools.x('a')",
		"blocks that are too deep": "const l = ['a','b','c','d','e','f','g','h'];" + strings.Repeat("for (const x of l) ", 6) + strings.Repeat("{", 60) + strings.Repeat(";", 90_000),
		"templates":                "tools.x(" + strings.Repeat("`${", 3000),
		"replaced":                 "let s = 'a'.replaceAll('a', '" + strings.Repeat("a", 1000) + "');" + strings.Repeat("s = s.replaceAll('a', s);", 5) + "tools.x(s)",
		"objects":                  "let o = {a: 'x'};" + strings.Repeat("o = {...o, b: o, c: o};", 200) + "tools.x(o); tools.x(JSON.stringify(o))",
		"a list in itself":         "const l = ['a']; l.push(l, l, l); tools.x(l); tools.x(l.join()); for (const a of l) tools.x({cmd: a})",
		"many fields":              "tools.x({" + strings.Repeat("a:1,", 30_000) + "})",
		"many other fields": func() string {
			var s strings.Builder
			for i := range 30_000 {
				fmt.Fprintf(&s, "k%d:1,", i)
			}
			return "tools.x({" + s.String() + "})"
		}(),
		"a source that is much too big": "tools.x('" + strings.Repeat("a", maxSource) + "')",
	} {
		t.Run(name, func(t *testing.T) {
			_, _ = Inside(scriptCall(source))
			for range Texts(scriptCall(source)) {
			}
		})
	}
}

func FuzzInside(f *testing.F) {
	for _, s := range []string{
		"const p = " + patchLit + "; text(await tools.apply_patch(p))",
		"for (const [i, {cmd = 'a', ...r}] of [['b', {}]].entries()) tools.exec_command({cmd, [i]: `${r}`})",
		"const f = async (a, {b} = {b: 'c'}, ...d) => tools.x(a + b + d.join('-')); [1, 'x'].map(f); f('q')",
		"tools?.['x']?.(String.raw`\\${'a'}`); if (a) b; else for (;;) tools.y({})", "tools.x(/[/]/g.y ?? {a(){}, async b(){}, 'c': -1e5})",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		b := scriptCall(source)
		calls, unread := Inside(b)
		again, unreadAgain := Inside(b)
		if len(calls) != len(again) || unread != unreadAgain {
			t.Fatal("read twice with different results")
		}
		for i, c := range calls {
			if !json.Valid(c.Args) || c.Name == "" || string(c.Args) != string(again[i].Args) {
				t.Fatalf("call %s %s", c.Name, c.Args)
			}
		}
		for range Texts(b) {
		}
	})
}
