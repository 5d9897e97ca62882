import { createMissingStore } from "../plants/sqlite-file.ts";
import { type CommandLine } from "../../../protoport/testing/src/process/command-line.ts";
import { startCommandLine } from "./command-line.ts";
import type { TempFolder } from "../../../protoport/testing/src/process/temp-folder.ts";

export const serveToken = "token-of-the-command-line-test";

const settings: Readonly<Record<string, string>> = {
  PORT: "0",
  DATABASE_URL: "sqlite:plants.db",
  PLANTSTORE_TOKENS: serveToken,
  PLANTSTORE_DRAIN_DELAY_MS: "0",
};

/** Starts `plantstore serve` on a free port, with the store `plants.db` in the folder, which is created if missing. */
export function serve(folder: TempFolder, environment: Record<string, string> = {}): CommandLine {
  createMissingStore(folder.file("plants.db"));
  return startCommandLine(["serve"], folder.path, { ...settings, ...environment });
}

export async function baseUrlOf(server: CommandLine): Promise<string> {
  const [, port] = await server.find(/"port":(\d+)/);
  return `http://127.0.0.1:${String(port)}`;
}

export async function deletePlant(baseUrl: string, id: number, credential: string = serveToken): Promise<number> {
  // The drain would wait for a connection that is kept open.
  const headers = { authorization: `Bearer ${credential}`, connection: "close" };
  const { status, body } = await fetch(`${baseUrl}/plants/${id}`, { method: "DELETE", headers });
  await body?.cancel();
  return status;
}
