// An agent on the chats of the @google/genai package, whose history outlives the process.
import { setTimeout } from "node:timers/promises";
import { GoogleGenAI } from "@google/genai";
import { env, history, keep, run, schema, stream } from "./loop.mjs";

const client = new GoogleGenAI({ apiKey: "dummy" });
const chat = client.chats.create({
  model: env.MODEL,
  history: history().slice(0, -1),
  config: {
    systemInstruction: "You work through all pieces.",
    tools: [{ functionDeclarations: [{ name: "bash", description: "Run a command.", parametersJsonSchema: schema }] }],
  },
});
let message = env.TASK;
for (;;) {
  const calls = [];
  let text = "";
  const pieces = stream ? await chat.sendMessageStream({ message }) : [await chat.sendMessage({ message })];
  for await (const piece of pieces) {
    for (const part of piece.candidates[0].content.parts) {
      if (part.functionCall) calls.push(part.functionCall);
      else if (!part.thought) text += part.text ?? "";
    }
  }
  if (!calls.length) {
    console.log(text);
    break;
  }
  message = calls.map((call) => ({
    functionResponse: { id: call.id, name: call.name, response: { output: run(call.args) } },
  }));
  await setTimeout(20); // to see that a connection was closed: the package never tries again
}
keep(chat.getHistory());
