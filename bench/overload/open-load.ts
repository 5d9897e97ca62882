import { fileURLToPath } from "node:url";
import { runAnywhere } from "../load/tool.ts";
import type { OpenOrder, OpenSeen } from "./open-calls.ts";

const program = fileURLToPath(new URL("open-client.ts", import.meta.url));

/** Sends deletions at a rate of its own, from a process of its own, and returns what came of them. */
export async function sendOpenLoad(order: OpenOrder): Promise<OpenSeen> {
  return JSON.parse(await runAnywhere([process.execPath, program, JSON.stringify(order)], order.durationS));
}
