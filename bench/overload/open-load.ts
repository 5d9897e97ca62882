import { fileURLToPath } from "node:url";
import { runAnywhere } from "../../protoport/bench/load/tool.ts";
import type { OpenLoadOptions, OpenResult } from "./open-calls.ts";

const program = fileURLToPath(new URL("open-client.ts", import.meta.url));

/** Sends deletions at a fixed rate from a separate process, and returns their outcomes. */
export async function sendOpenLoad(options: OpenLoadOptions): Promise<OpenResult> {
  return JSON.parse(await runAnywhere([process.execPath, program, JSON.stringify(options)], options.durationS));
}
