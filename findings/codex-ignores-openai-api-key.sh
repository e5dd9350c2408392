#!/bin/sh
# @openai/codex 0.171.0 (npm): the built-in provider ignores the variable OPENAI_API_KEY.
#
# With openai_base_url set and OPENAI_API_KEY in the environment, Codex sends requests without an Authorization header. It reads a
# key from auth.json, which `codex login --with-api-key` writes, or, for `codex exec`, from CODEX_API_KEY. A custom provider with
# env_key = "OPENAI_API_KEY" does read the variable.
#
# Output seen on 2026-11-27:
#   OPENAI_API_KEY: no Authorization
#   CODEX_API_KEY: Bearer k
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund @openai/codex@0.171.0 >/dev/null
cat >try.mjs <<'JS'
import http from 'node:http'
import fs from 'node:fs'
import { spawn } from 'node:child_process'
let header
const server = http.createServer((req, res) => {
  header ??= req.headers.authorization ?? 'no Authorization'
  res.writeHead(400, { 'content-type': 'application/json' })
  res.end('{"error":{"message":"no","type":"invalid_request_error"}}')
})
server.on('upgrade', (req, socket) => socket.end('HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'))
await new Promise(done => server.listen(0, '127.0.0.1', done))
const results = {}
for (const name of ['OPENAI_API_KEY', 'CODEX_API_KEY']) {
  header = undefined
  fs.mkdirSync(name)
  const env = { PATH: process.env.PATH, HOME: process.cwd() + '/' + name, [name]: 'k' }
  const codex = spawn('node_modules/.bin/codex', ['exec', '--skip-git-repo-check', '-c', `openai_base_url="http://127.0.0.1:${server.address().port}/v1"`, 'hi'], { env, stdio: 'ignore' })
  await new Promise(done => codex.on('exit', done))
  results[name] = header
  console.log(`${name}: ${header}`)
}
process.exit(results.OPENAI_API_KEY === 'no Authorization' && results.CODEX_API_KEY === 'Bearer k' ? 0 : 1)
JS
timeout 100 node try.mjs
