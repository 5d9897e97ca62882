// An agent of A2A: npx node protoport/examples/a2a/main.ts 8080
import { gardener } from "./gardener.ts";
import { serveAgent } from "./serve-agent.ts";

const agent = await serveAgent(gardener, Number(process.argv[2] ?? 8080));
console.log(agent.url);
process.once("SIGTERM", () => void agent.stop());
