#!/bin/sh
# opencode-linux-x64 1.18.34 (npm): a turn that the user reverts is gone from the tables message and part, and only the
# table event still has it.
#
# A revert by the server's API first marks the session: the column revert of the table session names the message, and all rows
# stay. With the next message the reverted ones are deleted from message and part. A program that reads these two tables
# sees a session in which the turn never was, though its tokens were paid. The events message.updated.1 and
# message.part.updated.1 keep the deleted messages in full, and message.removed.1 names them.
#
# Output seen on 2026-11-28:
#   after the revert: 4 messages in the table
#   after the next message: 4 messages in the table, 2 removed, 2 of these in the events
set -eu
dir=$(mktemp -d)
server=
provider=
trap 'kill $server $provider 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --loglevel=error opencode-linux-x64@1.18.34 >/dev/null
cat >provider.mjs <<'JS'
// Answers each request of Anthropic's Messages API with the text "Done.", as a stream.
import http from 'node:http'
const events = [
	{ type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 10, output_tokens: 1 } } },
	{ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
	{ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Done.' } },
	{ type: 'content_block_stop', index: 0 },
	{ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
	{ type: 'message_stop' },
]
http.createServer((req, res) => {
	req.resume().on('end', () => {
		res.writeHead(200, { 'content-type': 'text/event-stream' })
		for (const e of events) res.write(`event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`)
		res.end()
	})
}).listen(18734, '127.0.0.1')
JS
cat >talk.py <<'PY'
import json, os, sqlite3, time, urllib.request
base = 'http://127.0.0.1:18735'
urllib.request.install_opener(urllib.request.build_opener(urllib.request.ProxyHandler({})))
def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    req = urllib.request.Request(base + path, data, {'content-type': 'application/json'}, method=method)
    return json.load(urllib.request.urlopen(req, timeout=60))
for _ in range(120):
    try:
        call('GET', '/session'); break
    except OSError:
        time.sleep(.5)
id = call('POST', '/session', {})['id']
def say(text):
    call('POST', f'/session/{id}/message', {'model': {'providerID': 'p', 'modelID': 'm'}, 'parts': [{'type': 'text', 'text': text}]})
def rows(sql):
    db = sqlite3.connect(os.path.join(os.environ['XDG_DATA_HOME'], 'opencode', 'opencode.db'))
    return [r[0] for r in db.execute(sql, (id,))]
say('First task.')
say('Second task.')
second = [m['info']['id'] for m in call('GET', f'/session/{id}/message') if m['info']['role'] == 'user'][-1]
call('POST', f'/session/{id}/revert', {'messageID': second})
marked = len(rows('select id from message where session_id = ?'))
say('Third task.')
left = len(rows('select id from message where session_id = ?'))
removed = set(rows("select json_extract(data, '$.messageID') from event where aggregate_id = ? and type = 'message.removed.1'"))
kept = set(rows("select json_extract(data, '$.info.id') from event where aggregate_id = ? and type = 'message.updated.1'"))
print(f'after the revert: {marked} messages in the table')
print(f'after the next message: {left} messages in the table, {len(removed)} removed, {len(removed & kept)} of these in the events')
raise SystemExit(0 if (marked, left, len(removed), len(removed & kept)) == (4, 4, 2, 2) else 1)
PY
mkdir work home
export HOME="$dir/home" XDG_DATA_HOME="$dir/home/data" XDG_CONFIG_HOME="$dir/home/config" NO_PROXY=127.0.0.1
mkdir -p "$XDG_CONFIG_HOME/opencode"
cat >"$XDG_CONFIG_HOME/opencode/opencode.json" <<'JSON'
{"autoupdate":false,"share":"disabled","provider":{"p":{"npm":"@ai-sdk/anthropic","name":"p","options":{"baseURL":"http://127.0.0.1:18734/v1","apiKey":"dummy"},"models":{"m":{"name":"m","limit":{"context":100000,"output":1000}}}}}}
JSON
node provider.mjs &
provider=$!
(cd work && exec "$dir/node_modules/opencode-linux-x64/bin/opencode" serve --port 18735 >/dev/null 2>&1) &
server=$!
python3 talk.py
