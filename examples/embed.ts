// A plant server inside a program: npx node examples/embed.ts 8080
// Create the file "tokens" in the working directory first: plantstore token create NAME --file tokens
import { createPlantServer, openLog, openSqliteStore, openTokenVerifier } from "plantstore";

const [port = "8080"] = process.argv.slice(2);

const log = openLog("info");
const opened = await openTokenVerifier({ tokenHashesFile: "tokens" }, log);
if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
const verifier = opened.value;
const store = await openSqliteStore({ file: "plants.db", plantsWhenCreated: { first: 1n, last: 10n } });

const seconds: number[] = [];
const server = createPlantServer({
  store,
  verifier,
  log,
  onResponse: ({ durationMs }) => seconds.push(durationMs / 1_000),
});
const at = await server.listen({ port: Number(port) });
console.log(`plants at http://${at.address}:${at.port}`);

process.once("SIGTERM", () => void stop());

async function stop(): Promise<void> {
  await server.drain();
  await store.close();
  verifier.close?.();
  console.log(`${seconds.length} responses sent`);
}
