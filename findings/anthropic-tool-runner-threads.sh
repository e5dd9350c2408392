#!/bin/sh
# @anthropic-ai/sdk 1.14.0 (npm): the tool runner uses message threads without being asked.
#
# client.beta.messages.toolRunner() adds thread: {type: create} to its first request. A server that knows no threads and refuses the
# field in any other form than the one below ends the run. After a 400 whose error has details.error_code thread_unsupported_request, the
# runner sends the whole history with each request, as older versions did.
#
# Output seen on 2026-11-27:
#   request 1: thread {"type":"create"}, 1 message
#   request 2: thread undefined, 1 message
#   request 3: thread undefined, 3 messages
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund @anthropic-ai/sdk@1.14.0 >/dev/null
cat >try.mjs <<'JS'
import Anthropic from '@anthropic-ai/sdk'
const seen = []
const reply = (status, body) => new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } })
const fetch = async (url, init) => {
  const body = JSON.parse(init.body)
  seen.push(body)
  console.log(`request ${seen.length}: thread ${JSON.stringify(body.thread)}, ${body.messages.length} message${body.messages.length > 1 ? 's' : ''}`)
  if (body.thread) return reply(400, { type: 'error', error: { type: 'invalid_request_error', message: 'threads are not supported', details: { error_code: 'thread_unsupported_request' } }, request_id: 'req_1' })
  const done = body.messages.length > 1
  return reply(200, {
    id: 'msg_' + seen.length, type: 'message', role: 'assistant', model: body.model, stop_reason: done ? 'end_turn' : 'tool_use', stop_sequence: null,
    usage: { input_tokens: 9, output_tokens: 9 },
    content: done ? [{ type: 'text', text: 'done' }] : [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }],
  })
}
const client = new Anthropic({ apiKey: 'k', maxRetries: 0, fetch })
const run = client.beta.messages.toolRunner({
  model: 'claude-sonnet-4-5', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }],
  tools: [{ name: 'look', description: 'look', input_schema: { type: 'object', properties: {} }, run: () => 'seen', parse: x => x }],
})
await run
process.exit(seen[0].thread && seen.length === 3 && !seen[2].thread && seen[2].messages.length === 3 ? 0 : 1)
JS
node try.mjs
