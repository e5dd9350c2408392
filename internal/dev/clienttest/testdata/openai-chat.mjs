// An agent on the openai package and Chat Completions.
import OpenAI from "openai";
import { env, history, keep, run, schema, stream } from "./loop.mjs";

const client = new OpenAI();
const messages = history();
for (;;) {
  const request = {
    model: env.MODEL,
    messages: [{ role: "system", content: "You work through all pieces." }, ...messages],
    tools: [{ type: "function", function: { name: "bash", description: "Run a command.", parameters: schema } }],
  };
  let message;
  if (stream) {
    const events = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    message = (await events.finalChatCompletion()).choices[0].message;
  } else {
    message = (await client.chat.completions.create(request)).choices[0].message;
  }
  messages.push(message);
  if (!message.tool_calls?.length) {
    console.log(message.content);
    break;
  }
  for (const call of message.tool_calls) {
    messages.push({ role: "tool", tool_call_id: call.id, content: run(JSON.parse(call.function.arguments)) });
  }
}
keep(messages);
