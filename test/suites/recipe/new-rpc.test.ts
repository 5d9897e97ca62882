import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { definition, messages, methodPieces, pathOf, pieces, recipe, rpc } from "./get-plant.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ProjectCopy } from "../../../tools/mutants/project-copy.ts";
import { buildLimitMs, type ProgramResult, projectFolder, runProgram } from "@protoport/testing/process";
import { startPostgres } from "../../support/plants/postgres-server.ts";

// Follows CONTRIBUTING.md's recipe for a new RPC on a copy of the project, and adds GetPlant.

/** A program in the copy that gets 200 plants from a server on a PostgreSQL store, and prints the responses. */
const getPlants = `
import { createPlantServer, openPlantStore } from "./src/index.ts";
import { runSql } from "./test/support/plants/postgres-server.ts";
import { testVerifier, tokens } from "./test/support/server/plant-server.ts";
const url = process.argv[2] ?? "";
const store = await openPlantStore({ kind: "postgres", url });
const server = createPlantServer({ store, verifier: testVerifier });
const headers = { authorization: \`Bearer \${tokens.good}\` };
const { port } = await server.listen({});
const get = async (id: number) => await (await fetch(\`http://127.0.0.1:\${port}/plants/\${id}\`, { headers })).text();
const got = await Promise.all(Array.from({ length: 200 }, (_, id) => get(id)));
const sessions = await runSql(url, "SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT FROM %plants WHERE id = $1'");
console.log(JSON.stringify({ got, sessions: sessions.length }));
await server.close();
process.exit();
`;

let copy: ProjectCopy;
beforeAll(() => {
  copy = new ProjectCopy(projectFolder);
});
afterAll(() => copy[Symbol.dispose]());
const read = (path: string): string => readFileSync(join(copy.folder, path), "utf8");

async function run(command: string): Promise<ProgramResult> {
  expect(recipe).toContain(`\`${command}\``);
  const [program = "", ...words] = command.split(" ");
  return await runProgram(program, words, { folder: copy.folder, limitMs: buildLimitMs });
}

async function generate(): Promise<void> {
  const { exitCode, stdout, stderr } = await run("npm run generate");
  expect(exitCode, stdout + stderr).toBe(0);
}

async function filesWithErrors(): Promise<string[]> {
  const { stdout } = await run("npm run typecheck");
  return [...new Set([...stdout.matchAll(/^([\w/.-]+)\(\d+,\d+\): error /gm)].map(([, path = ""]) => path))].toSorted();
}

test("the compiler reports every file in the recipe for a new RPC", { timeout: buildLimitMs }, async () => {
  const text = read(definition);
  const end = text.indexOf("\n}\n", text.indexOf("service PlantService"));
  copy.replace(definition, text.slice(0, end + 1) + rpc + text.slice(end + 1) + messages);
  await generate();
  const files = readdirSync(join(copy.folder, "src"), { recursive: true, encoding: "utf8" });
  const sources = files.map((path) => `src/${path}`);
  const [plantStore = ""] = sources.filter((path) => basename(path) === "plant-store.ts");
  const backends = sources.filter((path) => /\/(?:memory|sqlite|postgres)-store\.ts$/.test(path));
  expect(backends).toHaveLength(3);
  for (const contract of [plantStore, pathOf("backend.ts")])
    copy.replace(
      contract,
      read(contract).replace(
        "  close(): Promise<void>;",
        "  has(id: bigint, signal: AbortSignal): Promise<boolean>;\n$&",
      ),
    );
  const others = [pathOf("delete-queue.ts"), pathOf("fake-store.ts"), pathOf("describe-plant-store.ts")];
  expect(await filesWithErrors()).toEqual([...Object.keys(pieces), ...backends, ...others].toSorted());
});

/** The tests that the recipe names, and that pass once all its steps are done. */
const named = ["delete-plant.test.ts", "every-rpc.test.ts", "rpc-policy.test.ts", "audit.test.ts"];
const tests = [...named.map(pathOf), "test/stores/contract"];

async function failedTests(files: readonly string[]): Promise<string[]> {
  const PATH = [join(copy.folder, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
  const args = ["run", "--project", "unit", ...files];
  const options = { folder: copy.folder, environment: { PATH, NO_COLOR: "1" }, limitMs: buildLimitMs };
  const { exitCode, stdout, stderr } = await runProgram("vitest", args, options);
  const failed = [...stdout.matchAll(/^ *× (.*?)(?: \d+ms)?$/gm)].map(([, title = ""]) => title);
  expect(exitCode, stdout + stderr).toBe(failed.length === 0 ? 0 : 1);
  return failed;
}

test("a new RPC is served once the recipe's files implement it", { timeout: buildLimitMs }, async () => {
  for (const [path, piece] of Object.entries(pieces))
    copy.replace(path, read(path).replace(/\n(?= +(?:async )?deletePlant\b)/, `${piece}$&`));
  for (const [path, ofFile] of Object.entries(methodPieces)) {
    for (const [piece, before] of ofFile) {
      expect(read(path).split(before), `${path} has ${before} once`).toHaveLength(2);
      const text = read(path).replace(before, () => piece + before);
      copy.replace(path, text);
    }
  }
  expect(await filesWithErrors()).toEqual([]);
  await generate();
  const { paths } = JSON.parse(read("openapi.json"));
  expect(paths["/plants/{id}"].get.responses["200"].description).toBe("The plant is returned.");
  expect(await failedTests(tests)).toEqual([]);
});

test.each(
  // oxfmt-ignore
  [
    { forgotten: "the scope in authentication.md", file: pathOf("authentication.md"),
      code: "| `GetPlant` | `plants:read` |\n", runs: pathOf("rpc-policy.test.ts"),
      fails: "authentication.md lists each RPC's scope" },
    { forgotten: "the client's retries and advice", file: pathOf("create-plant-client.ts"), code: "getPlant: undefined",
      instead: "getPlant: PlantServiceService.getPlant.path", runs: pathOf("every-rpc.test.ts"),
      fails: "the client sends GetPlant four times to an unavailable server" },
    { forgotten: "a situation", file: pathOf("situations.ts"),
      code: `      getPlant("returns no plant after a fault", ids.fault, handlerFailed),\n`,
      runs: pathOf("delete-plant.test.ts"), fails: "the outcome handler failed for getPlant has a test case" },
    { forgotten: "the refusal of a closed store", file: pathOf("delete-queue.ts"),
      code: "if (isClosed || problem !== undefined) throw storeUnavailable(problem);",
      runs: "test/stores/contract/memory-store.test.ts", fails: "makes has calls fail while closing and afterwards" },
    { forgotten: "the error of an unavailable PostgreSQL", file: "src/stores/postgres/postgres-store.ts",
      code: "throw storeUnavailable(problemOf(fault).text);", instead: "throw fault;",
      runs: "test/stores/contract/postgres-store.test.ts", fails: "hides the database's error from has calls" },
  ],
)("if a new RPC lacks $forgotten, a test fails", { timeout: buildLimitMs }, async (row) => {
  const { file, code, instead = "", runs, fails } = row;
  expect(read(file).split(code), `${file} has ${code} once`).toHaveLength(2);
  const changed = read(file).replace(code, () => instead);
  using _ = copy.replace(file, changed);
  expect(await failedTests([runs])).toContainEqual(expect.stringContaining(fails));
});

test("a new RPC's reads use a single PostgreSQL session", { timeout: buildLimitMs }, async () => {
  await using postgres = await startPostgres();
  const url = await postgres.createPlants(Array.from({ length: 100 }, (_, i) => BigInt(2 * i + 1)));
  writeFileSync(join(copy.folder, "get-plants.ts"), getPlants);
  const { stdout, stderr } = await runProgram(process.execPath, ["get-plants.ts", url], { folder: copy.folder });
  expect(stderr).toBe("");
  const { got, sessions } = JSON.parse(stdout);
  expect(got.slice(0, 2)).toEqual([expect.stringContaining("plant 0 not found"), '{"id":"1"}']);
  expect(sessions).toBe(1);
  expect(got.filter((text: string) => JSON.parse(text).id !== undefined)).toHaveLength(100);
});
