import { join } from "node:path";
import { expect, test } from "vitest";
import { plantStoreFlags } from "../../../bench/plant-store-flags.ts";
import { createMissingStore } from "../../support/plants/sqlite-file.ts";
import { projectFolder } from "../../../packages/testing/src/process/child-program.ts";
import { startNode } from "../../../packages/testing/src/process/command-line.ts";
import { createTempFolder } from "../../../packages/testing/src/process/temp-folder.ts";
import { tokens } from "../../support/server/plant-server.ts";

const settings: Readonly<Record<string, string>> = {
  PORT: "0",
  DATABASE_URL: "sqlite:plants.db",
  PLANTSTORE_TOKENS: tokens.good,
};

const v8Flags = ["--trace-pretenuring-statistics", "--max-semi-space-size=1"];

test.each([
  { name: "with the flags of the image, V8 does not pretenure objects", flags: plantStoreFlags, isDecided: false },
  { name: "without flags, V8 decides which objects to pretenure", flags: [], isDecided: true },
])("$name", async ({ flags, isDecided }) => {
  using folder = createTempFolder();
  createMissingStore(folder.file("plants.db"));
  await using server = startNode(
    [...v8Flags, ...flags, join(projectFolder, "src/command/main.ts"), "serve"],
    folder.path,
    settings,
  );
  const [, port] = await server.find(/"port":(\d+)/);
  const deletePlant = async (id: number): Promise<void> => {
    const url = `http://127.0.0.1:${String(port)}/plants/${id}`;
    const response = await fetch(url, { method: "DELETE", headers: { authorization: `Bearer ${tokens.good}` } });
    await response.body?.cancel();
  };
  for (let calls = 0; calls < 1000; calls += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, id) => deletePlant(id)));
  }
  expect(server.stdout().includes("pretenuring:")).toBe(isDecided);
});
