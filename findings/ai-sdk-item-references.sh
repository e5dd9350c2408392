#!/bin/sh
# ai 7.0.173 with @ai-sdk/openai 4.0.118 (npm): from the second request on, the model's own items are sent as references.
#
# The default model of the provider uses Responses. Unless store is false, reasoning and texts of earlier replies go out as
# {type: item_reference, id}, although the whole history is in the program. Calls are sent in full, without the id of their item. A server
# that does not keep responses, or a proxy that reads histories, sees no text of the model.
#
# Output seen on 2026-11-27:
#   request 1: user
#   request 2: user item_reference function_call function_call_output
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund ai@7.0.173 @ai-sdk/openai@4.0.118 zod@4.4.3 >/dev/null
cat >try.mjs <<'JS'
import { generateText, tool, isStepCount } from 'ai'
import { createOpenAI } from '@ai-sdk/openai'
import { z } from 'zod'
const inputs = []
const fetch = async (url, init) => {
  const body = JSON.parse(init.body)
  inputs.push(body.input.map(i => i.type ?? i.role))
  console.log(`request ${inputs.length}: ${inputs.at(-1).join(' ')}`)
  const first = inputs.length === 1
  return new Response(JSON.stringify({
    id: 'resp_' + inputs.length, object: 'response', created_at: 1, status: 'completed', model: body.model, error: null, incomplete_details: null,
    output: first
      ? [{ type: 'reasoning', id: 'rs_1', summary: [] }, { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{}', status: 'completed' }]
      : [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'done', annotations: [] }] }],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
  }), { headers: { 'content-type': 'application/json' } })
}
const openai = createOpenAI({ apiKey: 'k', fetch })
await generateText({
  model: openai('gpt-5'), prompt: 'hi', stopWhen: isStepCount(3), maxRetries: 0,
  tools: { look: tool({ description: 'look', inputSchema: z.object({}), execute: async () => 'seen' }) },
})
process.exit(inputs.length === 2 && inputs[1].includes('item_reference') ? 0 : 1)
JS
node try.mjs
