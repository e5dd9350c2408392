// The AI SDK on Responses with stored replies, which sends the model's items by their ids.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";
import { env, run } from "./loop.mjs";

let references = 0;
const openai = createOpenAI({
  baseURL: env.OPENAI_BASE_URL,
  fetch: (url, options) => {
    references += JSON.parse(options.body).input.filter((item) => item.type === "item_reference").length;
    return fetch(url, options);
  },
});
const result = await generateText({
  model: openai(env.MODEL),
  prompt: env.TASK,
  stopWhen: stepCountIs(60),
  tools: { bash: tool({ description: "Run a command.", inputSchema: z.object({ command: z.string() }), execute: async (input) => run(input) }) },
});
console.log(result.text);
console.log(references > 20 ? "referred to items" : `${references} references`);
