#!/bin/sh
# @anthropic-ai/claude-code 2.1.332 (npm): a resource and a base URL of Foundry together stop every request.
#
# Other clouds let a base URL override the address that follows from region or project. With ANTHROPIC_FOUNDRY_RESOURCE set, which
# is how Foundry is set up, ANTHROPIC_FOUNDRY_BASE_URL does not override it: Claude Code reports an error and sends nothing. So a
# program that puts a proxy in front of it has to empty the resource as well.
#
# Output seen on 2026-11-27:
#   resource and base URL: 0 requests, API Error: baseURL and resource are mutually exclusive
#   empty resource and base URL: requests
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund @anthropic-ai/claude-code@2.1.332 >/dev/null
cat >try.mjs <<'JS'
import http from 'node:http'
import fs from 'node:fs'
import { spawn } from 'node:child_process'
let requests = 0
const server = http.createServer((req, res) => {
  if (req.method === 'POST') requests++
  res.writeHead(400, { 'content-type': 'application/json' })
  res.end('{"type":"error","error":{"type":"invalid_request_error","message":"no"}}')
})
await new Promise(done => server.listen(0, '127.0.0.1', done))
const results = []
for (const resource of ['example', '']) {
  requests = 0
  const home = fs.mkdtempSync(process.cwd() + '/home')
  const env = {
    PATH: process.env.PATH, HOME: home, CLAUDE_CODE_USE_FOUNDRY: '1', ANTHROPIC_FOUNDRY_API_KEY: 'k', ANTHROPIC_FOUNDRY_RESOURCE: resource,
    ANTHROPIC_FOUNDRY_BASE_URL: `http://127.0.0.1:${server.address().port}`, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  }
  const claude = spawn(process.cwd() + '/node_modules/.bin/claude', ['-p', 'hi'], { env, cwd: home, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const out of [claude.stdout, claude.stderr]) out.on('data', b => { said += b })
  await new Promise(done => claude.on('exit', done))
  results.push({ requests, said })
}
const [both, empty] = results
console.log(`resource and base URL: ${both.requests} requests, ${both.said.trim()}`)
console.log(`empty resource and base URL: ${empty.requests > 0 ? 'requests' : 'no request, ' + empty.said.trim()}`)
process.exit(both.requests === 0 && both.said.includes('mutually exclusive') && empty.requests > 0 ? 0 : 1)
JS
timeout 100 node try.mjs
