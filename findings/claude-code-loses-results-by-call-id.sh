#!/bin/sh
# @anthropic-ai/claude-code 2.1.332 (npm): a resumed session loses the result of a call whose id is that of an earlier call, _ and digits.
#
# Both calls and results are in the session's file. In the request, the result of call_a_2 is the text "[Tool result missing due to
# internal error]", as a failed result. With the id call_a-2 it is sent. Agents that number repeated ids of a provider, as
# functions.read:0 becomes functions_read_0 and functions_read_0_2, must not use _ in a session for Claude Code.
#
# Output seen on 2026-11-29:
#   call_a_2: [Tool result missing due to internal error]
#   call_a-2: second
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund @anthropic-ai/claude-code@2.1.332 >/dev/null
mkdir -p home/work
cat >try.mjs <<'JS'
import fs from 'node:fs'
import http from 'node:http'
import { spawn } from 'node:child_process'
const home = fs.realpathSync(process.cwd() + '/home'), work = home + '/work'
const project = home + '/.claude/projects/' + work.replace(/[^a-zA-Z0-9]/g, '-')
fs.mkdirSync(project, { recursive: true })
const sent = {}
for (const [n, id] of ['call_a_2', 'call_a-2'].entries()) {
  const session = `00000000-0000-4000-8000-00000000000${n}`
  const call = id => ({ role: 'assistant', type: 'message', model: 'claude-sonnet-4-5', content: [{ type: 'tool_use', id, name: 'Read', input: { file_path: 'x' } }] })
  const result = (id, content) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content }] })
  const messages = [{ role: 'user', content: 'Read x.' }, call('call_a'), result('call_a', 'first'), call(id), result(id, 'second'),
    { role: 'assistant', type: 'message', model: 'claude-sonnet-4-5', content: [{ type: 'text', text: 'Read twice.' }] }]
  let parentUuid = null
  fs.writeFileSync(`${project}/${session}.jsonl`, messages.map((message, i) => {
    const uuid = `00000000-0000-4000-8000-0000000001${n}${i}`
    if (message.role === 'assistant') message.id = 'msg_' + i
    const record = { parentUuid, isSidechain: false, userType: 'external', cwd: work, sessionId: session, version: '2.1.332', type: message.role, uuid, timestamp: `2026-11-29T09:00:0${i}.000Z`, message }
    parentUuid = uuid
    return JSON.stringify(record) + '\n'
  }).join(''))
  const server = http.createServer((req, res) => {
    let body = ''
    req.on('data', d => { body += d })
    req.on('end', () => {
      if (body.includes('Go on.')) {
        for (const m of JSON.parse(body).messages) for (const b of Array.isArray(m.content) ? m.content : []) if (b.tool_use_id === id) sent[id] ??= b.content
      }
      res.writeHead(400, { 'content-type': 'application/json' })
      res.end('{"type":"error","error":{"type":"invalid_request_error","message":"no"}}')
    })
  })
  await new Promise(done => server.listen(0, '127.0.0.1', done))
  const env = { PATH: process.env.PATH, HOME: home, ANTHROPIC_BASE_URL: `http://127.0.0.1:${server.address().port}`, ANTHROPIC_API_KEY: 'k', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' }
  const claude = spawn(process.cwd() + '/node_modules/.bin/claude', ['--resume', session, '-p', 'Go on.'], { cwd: work, env, stdio: 'ignore' })
  await new Promise(done => claude.on('exit', done))
  server.close()
  console.log(`${id}: ${sent[id]}`)
}
process.exit(sent['call_a_2'].includes('missing') && sent['call_a-2'] === 'second' ? 0 : 1)
JS
timeout 120 node try.mjs
