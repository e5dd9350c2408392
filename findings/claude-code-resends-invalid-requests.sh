#!/bin/sh
# @anthropic-ai/claude-code 2.1.332 (npm): a request answered by 400 invalid_request_error is sent again, one answered by 400 billing_error is not.
#
# After 400 invalid_request_error, whatever its message, it sends the request again, then without thinking.display, then all three
# once more with all of its tools: six requests of the whole prompt. A gateway that refuses a request for a reason of its own, such as a limit, has to
# answer billing_error, or gets the same prompt six times.
#
# Output seen on 2026-11-29:
#   invalid_request_error: sent 6 times, 4 different; it says "API Error: 400 The limit of this project is reached."
#   billing_error: sent 1 times, 1 different; it says "API Error: 400 The limit of this project is reached."
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund @anthropic-ai/claude-code@2.1.332 >/dev/null
mkdir -p home/work
cat >try.mjs <<'JS'
import http from 'node:http'
import { spawn } from 'node:child_process'
const counts = {}
for (const type of ['invalid_request_error', 'billing_error']) {
  const bodies = []
  const server = http.createServer((req, res) => {
    let body = ''
    req.on('data', d => { body += d })
    req.on('end', () => {
      if (body.includes('Say hello.')) bodies.push(body)
      res.writeHead(400, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ type: 'error', error: { type, message: 'The limit of this project is reached.' } }))
    })
  })
  await new Promise(done => server.listen(0, '127.0.0.1', done))
  const home = process.cwd() + '/home'
  const env = { PATH: process.env.PATH, HOME: home, ANTHROPIC_BASE_URL: `http://127.0.0.1:${server.address().port}`, ANTHROPIC_API_KEY: 'k', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' }
  const claude = spawn(process.cwd() + '/node_modules/.bin/claude', ['-p', 'Say hello.'], { cwd: home + '/work', env, stdio: ['ignore', 'pipe', 'ignore'] })
  let said = ''
  claude.stdout.on('data', d => { said += d })
  await new Promise(done => claude.on('exit', done))
  server.close()
  counts[type] = bodies.length
  console.log(`${type}: sent ${bodies.length} times, ${new Set(bodies).size} different; it says ${JSON.stringify(said.trim())}`)
}
process.exit(counts.invalid_request_error > 1 && counts.billing_error === 1 ? 0 : 1)
JS
timeout 200 node try.mjs
