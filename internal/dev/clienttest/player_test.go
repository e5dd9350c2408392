package clienttest

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/furlhq/furl"
	"github.com/furlhq/furl/protocol"
	"github.com/furlhq/furl/sim"
)

// stepLines is how many lines each step of the work prints.
const stepLines = 80

// stepText is what piece n of the work says. No other piece has its names.
func stepText(n int) string {
	var b strings.Builder
	for i := 1; i <= stepLines; i++ {
		fmt.Fprintf(&b, "src/part%d/file_%d.go:%d: func Handle%dOf%d returns a record of piece %d\n", n, i, i*7, i, n, n)
	}
	return b.String()
}

// marker is a name that piece n has and no other.
func marker(n int) string { return fmt.Sprintf("Handle%dOf%d", stepLines/2, n) }

// stepScript prints a piece of the work. At the piece that the file hold names
// it waits until somebody takes the file held away.
const stepScript = `n=$1
if [ "$(cat hold 2>/dev/null)" = "$n" ]; then
  mv hold held
  while [ -e held ]; do sleep 0.05; done
fi
cat "piece-$n.txt"
`

// pieces is the most pieces of work that a conversation has.
const pieces = 160

// player is the sim's agent at a work that is known beforehand: step n runs a
// command that prints piece n, or reads its file if the client has a tool for
// that.
type player struct {
	agent *sim.Agent
	dir   string
}

var callStep = regexp.MustCompile(`_(\d+)_\d+_(\d+)$`)

func (p *player) Play(ctx context.Context, req *protocol.Request) (sim.Reply, error) {
	reply, err := p.agent.Play(ctx, req)
	if err != nil {
		return reply, err
	}
	for i := range reply.Blocks {
		b := &reply.Blocks[i]
		m := callStep.FindStringSubmatch(b.ID)
		if b.Kind != furl.KindCall || m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return reply, err
		}
		if name, args := reader(req); n%4 == 3 && name != "" {
			b.Name, b.Args = name, mustJSON(map[string]string{args: filepath.Join(p.dir, fmt.Sprintf("piece-%d.txt", n))})
			continue
		}
		b.Args = withCommand(b.Args, fmt.Sprintf("sh step.sh %d", n))
	}
	return reply, nil
}

// reader finds a tool of the request's that reads files, and its argument for
// the path.
func reader(req *protocol.Request) (name, arg string) {
	names := []string{"Read", "read", "read_file", "view"}
	for i := range req.Preamble {
		b := &req.Preamble[i]
		if b.Kind != furl.KindOpaque || !slices.Contains(names, b.ID) {
			continue
		}
		for _, arg := range []string{"file_path", "filePath", "filepath", "path"} {
			if strings.Contains(b.Text, `"`+arg+`":`) {
				return b.ID, arg
			}
		}
	}
	return "", ""
}

// withCommand puts a command into a call's arguments, whatever the client calls
// them.
func withCommand(args json.RawMessage, command string) json.RawMessage {
	if len(args) > 0 && args[0] == '"' { // a script, as in Codex with its default model
		return mustJSON(fmt.Sprintf("const r = await tools.exec_command({cmd: %q});\ntext(r.output);\n", command))
	}
	var m map[string]any
	if json.Unmarshal(args, &m) != nil {
		return args
	}
	for _, name := range []string{"command", "cmd"} {
		switch m[name].(type) {
		case string:
			m[name] = command
		case []any:
			m[name] = []string{"sh", "-c", command}
		}
	}
	return mustJSON(m)
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
