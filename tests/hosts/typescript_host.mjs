// A host that uses the TypeScript SDK for Claude Code: `node typescript_host.mjs MODULES SCENARIO OPTIONS`.
// What its callbacks are asked and every message are written to standard output, one JSON object a line.
import { pathToFileURL } from "node:url";

const [modules, scenario, said] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/${path}`).href);
const { query, tool, createSdkMcpServer } = await load("@anthropic-ai/claude-agent-sdk/sdk.mjs");
const given = JSON.parse(said);
const options = { pathToClaudeCodeExecutable: given.cli, cwd: given.folder, env: given.environment, ...given.more };
const tell = (kind, value) => console.log(JSON.stringify({ kind, value }));

async function run(prompt, more = {}) {
  const running = query({ prompt, options: { ...options, stderr: (text) => tell("stderr", text), ...more } });
  for await (const message of running) tell("message", message);
}

async function* talk(next) {
  for (let text = await next(); text; text = await next()) {
    yield { type: "user", message: { role: "user", content: text }, parent_tool_use_id: null, session_id: "" };
  }
}

const scenarios = {
  query: () => run(given.prompt),
  amend: () =>
    run(given.prompt, {
      canUseTool: async (name, input, about) => {
        tell("asked", [name, input, about.suggestions.map((one) => one.type), about.toolUseID.length > 0]);
        return { behavior: "allow", updatedInput: { ...input, content: "amended" } };
      },
    }),
  deny: () =>
    run(given.prompt, { canUseTool: async () => ({ behavior: "deny", message: "Not on a Friday." }) }),
  hooks: () => {
    const check = async (input, id) => {
      tell("hook", [input.hook_event_name, input.tool_name, input.tool_input, id.length > 0]);
      const denied = JSON.stringify(input.tool_input).includes("touch");
      const decision = denied ? { permissionDecision: "deny", permissionDecisionReason: "No touching." } : {};
      return { hookSpecificOutput: { hookEventName: "PreToolUse", ...decision } };
    };
    return run(given.prompt, { hooks: { PreToolUse: [{ matcher: "Bash", hooks: [check] }] } });
  },
  server: async () => {
    const { z } = await load("zod/index.js");
    const add = tool("add", "Add two numbers", { a: z.number(), b: z.number() }, async ({ a, b }) => {
      return { content: [{ type: "text", text: `sum: ${a + b}` }] };
    });
    const calc = createSdkMcpServer({ name: "calc", version: "1.0.0", tools: [add] });
    await run(given.prompt, { mcpServers: { calc }, allowedTools: ["mcp__calc__add"] });
  },
  form: () =>
    run(given.prompt, {
      canUseTool: async (name, input) => ({ behavior: "allow", updatedInput: input }),
      onElicitation: async (asked) => {
        tell("form", [asked.serverName, asked.mode, Object.keys(asked.requestedSchema.properties)[0]]);
        return { action: "accept", content: { name: "Ada" } };
      },
    }),
  interrupt: async () => {
    let ended, interrupted;
    const end = new Promise((resolve) => (ended = resolve));
    const prompts = [async () => "first", () => end.then(() => "second"), async () => ""];
    const running = query({ prompt: talk(() => prompts.shift()()), options });
    for await (const message of running) {
      tell("message", message);
      if (message.type === "stream_event" && !interrupted) tell("interrupt", (interrupted = await running.interrupt()));
      if (message.type === "result") ended();
    }
  },
  control: async () => {
    let send;
    const waiting = { go: new Promise((resolve) => (send = resolve)) };
    const running = query({ prompt: talk(() => waiting.go.then((text) => ((waiting.go = Promise.resolve("")), text))), options });
    tell("commands", (await running.supportedCommands()).map((one) => one.name));
    tell("models", (await running.supportedModels()).map((one) => one.value));
    await running.setPermissionMode("acceptEdits");
    await running.setModel("scripted");
    tell("servers", await running.mcpServerStatus());
    send(given.prompt);
    for await (const message of running) tell("message", message);
  },
};

try {
  await scenarios[scenario]();
} catch (error) {
  tell("error", `${error.name}: ${error.message}`);
}
