#!/bin/sh
# ccusage 20.0.24 (npm): daily counts a reply once for each of its records if these have no request id; session counts it once.
#
# Claude Code writes one record for each content block of a reply, with the same message id and usage. Records with a request id
# count once everywhere. Without one, as in files that the Agent SDK or a proxy made and in older ones, the tokens and
# costs by day are a multiple of those by session of the same file.
#
# Output seen on 2026-11-29:
#   without requestId: session 1010 tokens, daily 3030 tokens
#   with requestId: session 1010 tokens, daily 1010 tokens
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund ccusage@20.0.24 >/dev/null
cat >try.mjs <<'JS'
import fs from 'node:fs'
import { execFileSync } from 'node:child_process'
const got = []
for (const requestId of [undefined, 'req_1']) {
  const home = `${process.cwd()}/${requestId ?? 'none'}`, folder = home + '/.claude/projects/p'
  fs.mkdirSync(folder, { recursive: true })
  const blocks = [{ type: 'text', text: 'Reading.' }, { type: 'tool_use', id: 't1', name: 'Read', input: {} }, { type: 'tool_use', id: 't2', name: 'Read', input: {} }]
  fs.writeFileSync(folder + '/00000000-0000-4000-8000-000000000001.jsonl', blocks.map((block, i) => JSON.stringify({
    type: 'assistant', sessionId: '00000000-0000-4000-8000-000000000001', cwd: '/p', version: '2.1.332', uuid: `00000000-0000-4000-8000-00000000001${i}`, parentUuid: null,
    timestamp: `2026-11-29T09:00:0${i}.000Z`, requestId, message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-5', content: [block], usage: { input_tokens: 1000, output_tokens: 10 } },
  }) + '\n').join(''))
  const env = { PATH: process.env.PATH, HOME: home }
  const sum = by => JSON.parse(execFileSync('node_modules/.bin/ccusage', [by, '--json', '--offline'], { env })).totals.totalTokens
  got.push([sum('session'), sum('daily')])
  console.log(`${requestId ? 'with' : 'without'} requestId: session ${got.at(-1)[0]} tokens, daily ${got.at(-1)[1]} tokens`)
}
process.exit(JSON.stringify(got) === '[[1010,3030],[1010,1010]]' ? 0 : 1)
JS
timeout 100 node try.mjs
