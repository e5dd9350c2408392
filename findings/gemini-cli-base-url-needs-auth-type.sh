#!/bin/sh
# @google/gemini-cli 0.61.0 (npm): with GOOGLE_GEMINI_BASE_URL set, gemini -p refuses to start with GEMINI_API_KEY alone.
#
# The variable makes the kind of sign-in "gateway", which the check before a prompt without a terminal does not know: "Invalid auth
# method selected." Without the variable, the same key is enough. It starts if the settings have security.auth.selectedType
# "gemini-api-key", and then sends the key to the base URL. GOOGLE_VERTEX_BASE_URL with GOOGLE_GENAI_USE_VERTEXAI=true starts.
#
# Output seen on 2026-11-29:
#   no settings: Invalid auth method selected.
#   selectedType gemini-api-key: POST /v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse with key k
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --ignore-scripts --no-audit --no-fund @google/gemini-cli@0.61.0 >/dev/null
cat >try.mjs <<'JS'
import http from 'node:http'
import fs from 'node:fs'
import { spawn } from 'node:child_process'
let request
const server = http.createServer((req, res) => {
  request ??= `${req.method} ${req.url} with key ${req.headers['x-goog-api-key']}`
  res.writeHead(400, { 'content-type': 'application/json' })
  res.end('{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}')
})
await new Promise(done => server.listen(0, '127.0.0.1', done))
const seen = []
for (const settings of [undefined, { security: { auth: { selectedType: 'gemini-api-key' } } }]) {
  request = undefined
  const home = fs.mkdtempSync(process.cwd() + '/home-')
  if (settings) {
    fs.mkdirSync(home + '/.gemini')
    fs.writeFileSync(home + '/.gemini/settings.json', JSON.stringify(settings))
  }
  const env = { PATH: process.env.PATH, HOME: home, GEMINI_API_KEY: 'k', GEMINI_CLI_TRUST_WORKSPACE: 'true', GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${server.address().port}` }
  const cli = spawn('node_modules/.bin/gemini', ['-m', 'gemini-2.5-pro', '-p', 'hi'], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  cli.stderr.on('data', text => { said += text })
  await new Promise(done => cli.on('close', done))
  seen.push(request ?? said.trim().split('\n').at(-1))
  console.log(`${settings ? 'selectedType gemini-api-key' : 'no settings'}: ${seen.at(-1)}`)
}
process.exit(seen[0] === 'Invalid auth method selected.' && seen[1].endsWith('with key k') ? 0 : 1)
JS
timeout 100 node try.mjs
