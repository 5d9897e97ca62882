import { join } from "node:path";
import { expect, test } from "vitest";
import { projectFolder } from "../support/process/child-program.ts";
import { startNode } from "../support/process/command-line.ts";
import { runCommand } from "../support/process/run-command.ts";
import { createTempFolder } from "../support/process/temp-folder.ts";

test("embed.ts serves plants with a token of its file, counts requests, and drains", async () => {
  using folder = createTempFolder();
  const { out } = await runCommand(["token", "create", "embedder", "--file", folder.file("tokens")]);
  const program = [join(projectFolder, "examples/embed.ts"), "0"];
  await using server = startNode(program, folder.path);
  const [, baseUrl = ""] = await server.find(/plants at (\S+)/);
  const headers = { authorization: `Bearer ${out[0] ?? ""}`, connection: "close" };
  const statuses = [];
  for (const id of [1, 1, 10]) {
    const { status, body } = await fetch(`${baseUrl}/plants/${id}`, { method: "DELETE", headers });
    await body?.cancel();
    statuses.push(status);
  }
  server.process.kill("SIGTERM");
  expect({ exitCode: await server.end(), statuses }).toEqual({ exitCode: 0, statuses: [204, 400, 204] });
  expect(server.stdout()).toContain("3 requests were answered");
});
