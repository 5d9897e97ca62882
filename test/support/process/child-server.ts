import { dirname } from "node:path";
import { createMissingStore } from "../plants/sqlite-file.ts";
import { startCommandLine } from "./command-line.ts";
import type { Address } from "../../../protoport/testing/src/http/exchange.ts";
import { tokens } from "../server/plant-server.ts";

/** A server in a separate process, started by the command line, like an operator runs it. */
export interface ChildServer {
  readonly address: Address;
  /** Sends a signal, and waits for the exit. Resolves to the exit code, or `null` when the signal killed it. */
  stop(signal: NodeJS.Signals): Promise<number | null>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts `plantstore serve` on a free port with an SQLite file, which is created if missing. */
export async function startChildServer(databaseFile: string): Promise<ChildServer> {
  createMissingStore(databaseFile);
  const plantstore = { PLANTSTORE_TOKENS: tokens.good, PLANTSTORE_DRAIN_DELAY_MS: "0" };
  const environment = { PORT: "0", DATABASE_URL: `sqlite:${databaseFile}`, ...plantstore };
  const server = startCommandLine(["serve"], dirname(databaseFile), environment);
  // The log line with a port contains the server's address.
  const [, port] = await server.find(/"port":(\d+)/).catch(async (reason: unknown) => {
    await server[Symbol.asyncDispose]();
    throw reason;
  });
  return {
    address: { address: "127.0.0.1", port: Number(port) },
    stop: (signal) => server.stop(signal),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
