#!/bin/sh
# openai 7.59.0 with ws 8.23.0 (npm): ResponsesWS does not fall back to POST when the server refuses the upgrade.
#
# A server that offers Responses over HTTP only answers the WebSocket upgrade with 426. ResponsesWS reports an error event and
# does not send the queued request by POST. Codex 0.171 does fall back. So a gateway without WebSockets cannot serve programs
# that use ResponsesWS, whatever it answers.
#
# Output seen on 2026-11-27:
#   error event: Unexpected server response: 426
#   upgrades: 1, requests by POST: 0
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund openai@7.59.0 ws@8.23.0 >/dev/null
cat >try.mjs <<'JS'
import http from 'node:http'
import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
let posts = 0, upgrades = 0
const server = http.createServer((req, res) => { posts++; res.writeHead(500); res.end() })
server.on('upgrade', (req, socket) => { upgrades++; socket.end('HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n') })
await new Promise(done => server.listen(0, '127.0.0.1', done))
const client = new OpenAI({ apiKey: 'k', baseURL: `http://127.0.0.1:${server.address().port}/v1`, maxRetries: 0 })
const ws = new ResponsesWS(client)
const errors = []
ws.on('error', e => errors.push(e.message))
try { ws.send({ type: 'response.create', model: 'gpt-5', input: 'hi' }) } catch (e) { errors.push(e.message) }
await new Promise(done => setTimeout(done, 4000))
console.log('error event:', errors[0])
console.log(`upgrades: ${upgrades}, requests by POST: ${posts}`)
process.exit(upgrades >= 1 && posts === 0 && errors.length > 0 ? 0 : 1)
JS
node try.mjs
