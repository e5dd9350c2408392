// An agent on the @anthropic-ai/sdk package, with thinking and a cache mark that
// moves on with the conversation.
import Anthropic from "@anthropic-ai/sdk";
import { env, history, keep, run, schema, stream } from "./loop.mjs";

const client = new Anthropic();
const messages = history();
const marked = (list) =>
  list.map((message, i) => {
    if (i < list.length - 1 || typeof message.content === "string") return message;
    const content = message.content.slice();
    content.push({ ...content.pop(), cache_control: { type: "ephemeral" } });
    return { ...message, content };
  });
for (;;) {
  const request = {
    model: env.MODEL,
    max_tokens: 2000,
    thinking: { type: "adaptive" },
    system: "You work through all pieces.",
    tools: [{ name: "bash", description: "Run a command.", input_schema: schema }],
    messages: marked(messages),
  };
  const message = stream ? await client.messages.stream(request).finalMessage() : await client.messages.create(request);
  messages.push({ role: "assistant", content: message.content });
  const calls = message.content.filter((block) => block.type === "tool_use");
  if (!calls.length) {
    console.log(message.content.map((block) => block.text ?? "").join(""));
    break;
  }
  messages.push({
    role: "user",
    content: calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: run(call.input) })),
  });
}
keep(messages);
