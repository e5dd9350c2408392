// An agent on the ai package, with the provider that API names.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";
import { env, history, keep, run, stream } from "./loop.mjs";

const models = {
  anthropic: () => createAnthropic({ baseURL: env.ANTHROPIC_BASE_URL + "/v1" })(env.MODEL),
  google: () => createGoogleGenerativeAI({ baseURL: env.GOOGLE_GEMINI_BASE_URL + "/v1beta", apiKey: "dummy" })(env.MODEL),
  chat: () => createOpenAI().chat(env.MODEL),
  responses: () => createOpenAI().responses(env.MODEL),
};
const messages = history();
const request = {
  model: models[env.API](),
  system: "You work through all pieces.",
  messages,
  tools: {
    bash: tool({
      description: "Run a command.",
      inputSchema: z.object({ command: z.string() }),
      execute: async (input) => run(input),
    }),
  },
  stopWhen: isStepCount(100),
  providerOptions: { openai: { store: false, include: ["reasoning.encrypted_content"] } },
};
if (stream) {
  const result = streamText(request);
  await result.consumeStream({ onError: (error) => { throw error; } });
  console.log(await result.text);
  messages.push(...(await result.responseMessages));
} else {
  const result = await generateText(request);
  console.log(result.text);
  messages.push(...result.responseMessages);
}
keep(messages);
