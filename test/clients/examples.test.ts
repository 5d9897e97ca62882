import { join } from "node:path";
import { expect, test } from "vitest";
import { openMemoryStore } from "../../src/plantstore/plants/index.ts";
import { projectFolder, runProgram } from "../support/process/child-program.ts";
import { startPlantServer, tokens } from "../support/server/plant-server.ts";

/** Runs an example as its first line says, against a server with plant 2^53 + 1. */
async function run(example: string, tokenOf: string, id: string): Promise<string[]> {
  await using server = await startPlantServer({ store: openMemoryStore(new Set([9_007_199_254_740_993n])) });
  const authority = `${server.address.address}:${String(server.address.port)}`;
  const target = example.includes("grpc") ? authority : `http://${authority}`;
  const program = [join(projectFolder, "examples/clients", example), target, tokenOf, id];
  const lines: string[] = [];
  for (let attempt = 0; attempt < 2; attempt++) {
    const { stdout, stderr } = await runProgram(process.execPath, program);
    lines.push(stdout.trim() + stderr.trim());
  }
  return lines;
}

const examples = ["delete-plant-grpc.ts", "delete-plant-connect.ts", "delete-plant-fetch.ts"];

test.each(examples)("%s deletes a plant once, with all digits of its id", async (example) => {
  expect(await run(example, tokens.good, "9007199254740993")).toEqual([
    "plant 9007199254740993 is deleted",
    "there is no plant 9007199254740993",
  ]);
});

test.each(examples)("%s says that its token is not valid", async (example) => {
  const [line] = await run(example, tokens.unknown, "1");
  expect(line).toMatch(/^(UNAUTHENTICATED|Unauthenticated|16): the token is not valid(; give a token that .*)?$/);
});
