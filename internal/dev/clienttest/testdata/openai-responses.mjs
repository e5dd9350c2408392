// An agent on the openai package and Responses, nothing stored at the provider.
import OpenAI from "openai";
import { env, history, keep, run, schema, stream } from "./loop.mjs";

const client = new OpenAI();
const input = history();
for (;;) {
  const request = {
    model: env.MODEL,
    instructions: "You work through all pieces.",
    input,
    store: false,
    include: ["reasoning.encrypted_content"],
    tools: [{ type: "function", name: "bash", description: "Run a command.", parameters: schema, strict: false }],
  };
  const response = stream
    ? await client.responses.stream(request).finalResponse()
    : await client.responses.create(request);
  // What the helpers of the package add is not the provider's to read.
  input.push(...response.output.map(({ parsed_arguments, ...item }) => item));
  const calls = response.output.filter((item) => item.type === "function_call");
  if (!calls.length) {
    console.log(response.output_text);
    break;
  }
  for (const call of calls) {
    input.push({ type: "function_call_output", call_id: call.call_id, output: run(JSON.parse(call.arguments)) });
  }
}
keep(input);
