// OpenAI's Agents SDK with a session that the provider compacts.
import { Agent, MemorySession, OpenAIResponsesCompactionSession, run, setDefaultOpenAIClient, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { env, run as command } from "./loop.mjs";

setTracingDisabled(true);
const client = new OpenAI();
setDefaultOpenAIClient(client);
const agent = new Agent({
  name: "worker",
  model: env.MODEL,
  modelSettings: { store: false, providerData: { include: ["reasoning.encrypted_content"] } },
  tools: [tool({ name: "bash", description: "Run a command.", parameters: z.object({ command: z.string() }), execute: command })],
});
let n = 0;
const compact = client.responses.compact.bind(client.responses);
client.responses.compact = (...args) => (n++, compact(...args));
const session = new OpenAIResponsesCompactionSession({
  client,
  model: env.MODEL,
  underlyingSession: new MemorySession(),
  compactionMode: "input",
  shouldTriggerCompaction: () => true,
});
for (const task of [env.TASK, "Go on with the rest."]) {
  const result = await run(agent, task, { session, maxTurns: 100 });
  console.log(result.finalOutput);
}
console.log(`compactions: ${n}`);
