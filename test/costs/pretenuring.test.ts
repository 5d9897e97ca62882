import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../support/process/child-program.ts";
import { leastOf } from "../support/least-of.ts";
import { startNode } from "../support/process/command-line.ts";
import { createTempFolder } from "../support/process/temp-folder.ts";
import { tokens } from "../support/server/plant-server.ts";

const settings: Readonly<Record<string, string>> = {
  PORT: "0",
  DATABASE_URL: "sqlite:plants.db",
  PLANTSTORE_TOKENS: tokens.good,
};

test("a server that has started lets V8 make no object old before its time", async () => {
  using folder = createTempFolder();
  const v8Flags = ["--trace-pretenuring-statistics", "--max-semi-space-size=1"];
  await using server = startNode(
    [...v8Flags, join(projectFolder, "src/plantstore/cli/main.ts"), "serve"],
    folder.path,
    settings,
  );
  const [, port] = await server.find(/"port":(\d+)/);
  const deletePlant = async (id: number): Promise<void> => {
    const url = `http://127.0.0.1:${String(port)}/plants/${id}`;
    const response = await fetch(url, { method: "DELETE", headers: { authorization: `Bearer ${tokens.good}` } });
    await response.body?.cancel();
  };
  const deleteMany = async (): Promise<number> => {
    const before = server.stdout().length;
    for (let asked = 0; asked < 1000; asked += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, id) => deletePlant(id)));
    }
    return server.stdout().length - before;
  };
  await deletePlant(1);
  expect(server.stdout()).toContain("pretenuring:");
  // What it said while it started may come late; what it says of its calls comes in every round of them.
  expect(await leastOf(deleteMany, 1)).toBe(0);
});
