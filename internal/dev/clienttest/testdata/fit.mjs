// An agent that sends its requests itself, and has furl fit them before (docs/use/fit.md). At
// its end it gets back all that was hidden and compares it with its own history.
import { fit } from "./fit.ts";

const { PROVIDER, FURL } = process.env;
const tools = [{ name: "read_file", description: "Read a file.", input_schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] } }];
const messages = [{ role: "user", content: "Read all files." }];
const done = { requests: 0, sent: 0, hidden: 0, restored: 0, wrong: 0 };
let usage, fitted;
for (;;) {
  fitted = await fit("agent-1", { model: "claude-sonnet-4-5", max_tokens: 2000, tools, messages }, usage);
  const reply = await fetch(`${PROVIDER}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": "key", "anthropic-version": "2023-06-01" },
    body: JSON.stringify(fitted.body),
  });
  const message = await reply.json();
  if (!reply.ok) throw new Error(JSON.stringify(message));
  done.requests++;
  usage = message.usage;
  messages.push({ role: "assistant", content: message.content });
  const calls = message.content.filter((block) => block.type === "tool_use");
  if (!calls.length) break;
  messages.push({
    role: "user",
    content: calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: `${call.id} has words to read. `.repeat(300) })),
  });
}
done.sent = Math.round(JSON.stringify(messages).length / 4);
for (const { message, block, handle } of fitted.outcome.hidden) {
  done.hidden++;
  const reply = await fetch(`${FURL}/furl/v1/sessions/agent-1/blocks/${handle}`);
  const original = await reply.json();
  const list = messages[message].content;
  const own = typeof list === "string" ? list : list[block].content ?? list[block].text ?? JSON.stringify(list[block].input);
  if (!reply.ok) continue;
  done.restored++;
  if (original.text !== own) done.wrong++;
}
console.log(JSON.stringify(done));
