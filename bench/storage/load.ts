import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Percentiles } from "../load/load.ts";
import { runAnywhere, runTool, withFolder } from "../load/tool.ts";
import { readWrk } from "../load/wrk.ts";
import { benchToken } from "../servers/plants.ts";
import { scatterStep } from "./scattered.ts";

/** What a load of deletions over REST showed. */
export interface RestResult {
  readonly connections: number;
  readonly requests: number;
  readonly requestsPerS: number;
  /** The share of requests whose plant was not there, because a random id had come before. */
  readonly missed: number;
  readonly latencyUs: Percentiles;
}

/** Deletes plants with random ids from 1 to `plants` over REST, for `seconds`. Needs wrk. */
export function deleteRandomPlants(
  port: number,
  connections: number,
  seconds: number,
  plants: number,
): Promise<RestResult> {
  const prepare = "math.randomseed(os.time())";
  return deletePlants(port, connections, seconds, prepare, `math.random(1, ${String(plants)})`);
}

/** Plants in an order without neighbours, of which none comes twice until all have come. */
export interface Scattered {
  /** How many there are; their ids begin with 1. */
  readonly plants: number;
  /** How many were deleted before. */
  readonly begun: number;
}

/** Deletes plants over REST, for `seconds`. Needs wrk, which runs on the core of loads, unless `run` says otherwise. */
export function deleteScatteredPlants(
  port: number,
  connections: number,
  seconds: number,
  scattered: Scattered,
  run: typeof runTool = runTool,
): Promise<RestResult> {
  const first = (BigInt(scattered.begun) * scatterStep) % BigInt(scattered.plants);
  const prepare = `local at = ${String(first)}
    local function nextId() at = (at + ${String(scatterStep)}) % ${String(scattered.plants)} return at + 1 end`;
  return deletePlants(port, connections, seconds, prepare, "nextId()", run);
}

/** Deletes the plants whose ids an expression in Lua gives, one after the other. */
async function deletePlants(
  port: number,
  connections: number,
  seconds: number,
  prepare: string,
  idExpression: string,
  runMany = runTool,
): Promise<RestResult> {
  const output = await withFolder(async (folder) => {
    const script = join(folder, "delete.lua");
    writeFileSync(script, luaOf(prepare, idExpression));
    const shape = [`-c${String(connections)}`, "-t1", `-d${String(seconds)}s`, "--timeout", "30s", "--latency"];
    // A lone caller sleeps while its plant is deleted. On a core of its own it would have the storage thread come to it.
    const run = connections === 1 ? runAnywhere : runMany;
    return await run(["wrk", ...shape, "-s", script, `http://127.0.0.1:${String(port)}`], seconds);
  });
  const { requests, refused, broken, durationS, latencyUs } = readWrk(output);
  if (broken > 0) throw new Error(`connections broke: ${output}`);
  return { connections, requests, requestsPerS: requests / durationS, missed: refused / requests, latencyUs };
}

function luaOf(prepare: string, idExpression: string): string {
  return `
    ${prepare}
    wrk.method = "DELETE"
    wrk.headers["authorization"] = "Bearer ${benchToken}"
    request = function() return wrk.format(nil, string.format("/plants/%d", ${idExpression})) end`;
}
