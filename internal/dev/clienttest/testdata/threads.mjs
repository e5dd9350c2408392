// The tool runner of Anthropic's SDK, which uses message threads by itself.
import Anthropic from "@anthropic-ai/sdk";
import { env, run, schema } from "./loop.mjs";

const kinds = [];
const client = new Anthropic({
  fetch: async (url, options) => {
    const body = JSON.parse(options.body);
    const response = await fetch(url, options);
    kinds.push(`${body.thread?.type ?? "whole"} ${response.status}`);
    return response;
  },
});
const message = await client.beta.messages.toolRunner({
  model: env.MODEL,
  max_tokens: 2000,
  messages: [{ role: "user", content: env.TASK }],
  tools: [{ name: "bash", description: "Run a command.", input_schema: schema, run: async (input) => run(input) }],
});
console.log(message.content.at(-1).text);
console.log(kinds.slice(0, 3).join(", "));
