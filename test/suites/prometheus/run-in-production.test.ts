import { expect, test } from "vitest";
import { openProduction, productionBlocks } from "./production.ts";

// Runs the commands in docs/how-to/run-in-production.md in their order in one shell.

const timeout = 300_000;
const [createDatabase, writeSettings, createTables, createToken, start, deletePlant, alert, backUp, restore] =
  productionBlocks();

test("the commands in docs/how-to/run-in-production.md set up and restore a server", { timeout }, async () => {
  await using production = await openProduction();
  const { run, read } = production;
  const plants = async (): Promise<readonly string[]> => (await read("plantstore export")).trimEnd().split("\n");
  await run(createDatabase);
  await run(writeSettings);
  await run(createTables);
  expect(await plants()).toHaveLength(1000);
  await run(createToken);
  await run(start);
  await run(deletePlant);
  expect(await plants()).not.toContain("7");
  await run(alert);
  const query = "http://127.0.0.1:9090/api/v1/query?query=gateway_ready";
  await run(`until curl --silent '${query}' | grep -q '"1"'; do sleep 0.1; done`);
  const call = 'curl --silent -X DELETE -H "Authorization: Bearer $TOKEN" https://plants.example:8443/plants/7';
  await run(backUp);
  await read(call.replace("/7", "/8"));
  expect(await plants()).not.toContain("8");
  await run(restore);
  expect(await plants()).toHaveLength(999);
  await run(start);
});
