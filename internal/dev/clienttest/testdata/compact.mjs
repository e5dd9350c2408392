// responses.compact of the openai package, between two tasks.
import OpenAI from "openai";
import { env, run, schema } from "./loop.mjs";

const client = new OpenAI();
let input = [{ role: "user", content: env.TASK }];
async function work() {
  for (;;) {
    const response = await client.responses.create({
      model: env.MODEL,
      input,
      store: false,
      include: ["reasoning.encrypted_content"],
      tools: [{ type: "function", name: "bash", description: "Run a command.", parameters: schema, strict: false }],
    });
    input.push(...response.output);
    const calls = response.output.filter((item) => item.type === "function_call");
    if (!calls.length) {
      console.log(response.output_text);
      return;
    }
    for (const call of calls) {
      input.push({ type: "function_call_output", call_id: call.call_id, output: run(JSON.parse(call.arguments)) });
    }
  }
}
await work();
for (let n = 0; n < 2; n++) {
  const compacted = await client.responses.compact({ model: env.MODEL, input });
  input = [...compacted.output, { role: "user", content: "Go on with the rest." }];
  await work();
}
