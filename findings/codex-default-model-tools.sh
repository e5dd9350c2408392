#!/bin/sh
# @openai/codex 0.171.0 (npm): with its default model, requests have neither tools nor instructions.
#
# The first item of input is {type: additional_tools, role: developer, tools: [...]}, with all tools, and developer messages have the
# instructions. The fields tools and instructions are absent. Whatever shortens or summarizes the oldest items of such a history takes
# the tools from the model. The only tool that a model calls is `exec`, whose input is a script that calls the others.
#
# Output seen on 2026-11-27:
#   model gpt-6.2-sol
#   tools: absent, instructions: absent
#   input: additional_tools/developer message/developer message/developer message/developer message/developer message/user message/user
#   namespaces: functions clock collaboration
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund @openai/codex@0.171.0 >/dev/null
mkdir -p home/.codex
echo '{"auth_mode":"apikey","OPENAI_API_KEY":"k"}' >home/.codex/auth.json
cat >try.mjs <<'JS'
import http from 'node:http'
import { spawn } from 'node:child_process'
let seen
const server = http.createServer((req, res) => {
  let body = ''
  req.on('data', d => { body += d })
  req.on('end', () => {
    if (req.method === 'POST') seen ??= JSON.parse(body)
    res.writeHead(400, { 'content-type': 'application/json' })
    res.end('{"error":{"message":"no","type":"invalid_request_error"}}')
  })
})
server.on('upgrade', (req, socket) => socket.end('HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'))
await new Promise(done => server.listen(0, '127.0.0.1', done))
const env = { PATH: process.env.PATH, HOME: process.cwd() + '/home' }
const codex = spawn('node_modules/.bin/codex', ['exec', '--skip-git-repo-check', '-c', `openai_base_url="http://127.0.0.1:${server.address().port}/v1"`, 'hi'], { env, stdio: 'ignore' })
await new Promise(done => codex.on('exit', done))
console.log('model', seen.model)
console.log(`tools: ${seen.tools ? 'present' : 'absent'}, instructions: ${seen.instructions ? 'present' : 'absent'}`)
console.log('input:', seen.input.map(i => `${i.type}/${i.role}`).join(' '))
console.log('namespaces:', seen.input[0].tools.map(t => t.name).join(' '))
const exec = seen.input[0].tools.some(t => t.tools?.some(t => t.name === 'exec' && t.type === 'custom'))
process.exit(!seen.tools && !seen.instructions && seen.input[0].type === 'additional_tools' && exec ? 0 : 1)
JS
timeout 60 node try.mjs
