#!/bin/sh
# @openai/codex 0.171.0 (npm): total_token_usage lacks the requests with which the service compacts.
#
# A session file has the usage of each response in a token_usage_record, and running totals in the token_count events. When the
# conversation is compacted by the service (the built-in provider), the request for it has a token_usage_record, but
# total_token_usage does not grow, neither then nor later. Programs that sum token_count get less than what was billed. A
# compaction by a prompt, as with other providers, is in the totals.
#
# Output seen on 2026-11-29:
#   responses: 20100 + 20200 + 500 input tokens
#   token_usage_record: 20100 + 20200 + 500 input tokens
#   last total_token_usage: 20600 input tokens
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund @openai/codex@0.171.0 >/dev/null
cat >try.mjs <<'JS'
import http from 'node:http'
import fs from 'node:fs'
import { spawn } from 'node:child_process'
const billed = []
const server = http.createServer((req, res) => {
  const chunks = []
  req.on('data', chunk => chunks.push(chunk))
  req.on('end', () => {
    if (req.method !== 'POST' || !req.url.endsWith('/responses')) return res.writeHead(404).end('{}')
    const n = billed.length + 1
    const compacts = Buffer.concat(chunks).toString().includes('compaction_trigger')
    const input = compacts ? 20200 : n === 1 ? 20100 : 500
    billed.push(input)
    const item = compacts ? { type: 'compaction', id: 'c', encrypted_content: 'x' }
      : n === 1 ? { type: 'function_call', id: 'f', call_id: 'call_1', name: 'exec_command', arguments: '{"cmd":"echo one"}' }
      : { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] }
    const events = [
      { type: 'response.created', response: { id: 'r' + n } },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id: 'r' + n, usage: { input_tokens: input, input_tokens_details: { cached_tokens: 0 }, output_tokens: 10, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: input + 10 } } },
    ]
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.end(events.map(e => `event: ${e.type}\ndata: ${JSON.stringify(e)}\n\n`).join(''))
  })
})
server.on('upgrade', (req, socket) => socket.end('HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'))
await new Promise(done => server.listen(0, '127.0.0.1', done))
const env = { PATH: process.env.PATH, HOME: process.cwd(), CODEX_API_KEY: 'k' }
const url = `openai_base_url="http://127.0.0.1:${server.address().port}/v1"`
const codex = spawn('node_modules/.bin/codex', ['exec', '-m', 'gpt-5.5', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', '-c', url, '-c', 'model_auto_compact_token_limit=16000', 'hi'], { env, stdio: 'ignore' })
await new Promise(done => codex.on('exit', done))
const file = fs.readdirSync('.codex/sessions', { recursive: true }).find(name => name.endsWith('.jsonl'))
const lines = fs.readFileSync('.codex/sessions/' + file, 'utf8').trim().split('\n').map(JSON.parse)
const recorded = lines.filter(l => l.type === 'token_usage_record').map(l => l.payload.usage.input_tokens)
const total = lines.filter(l => l.payload.type === 'token_count' && l.payload.info).at(-1).payload.info.total_token_usage.input_tokens
console.log(`responses: ${billed.join(' + ')} input tokens`)
console.log(`token_usage_record: ${recorded.join(' + ')} input tokens`)
console.log(`last total_token_usage: ${total} input tokens`)
const sum = list => list.reduce((a, b) => a + b, 0)
process.exit(sum(billed) === sum(recorded) && total === sum(billed) - 20200 ? 0 : 1)
JS
timeout 100 node try.mjs
