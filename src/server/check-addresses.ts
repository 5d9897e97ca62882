import { accessSync, constants, statSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { explainSystemError } from "@protoport/auth/inputs";
import { ConfigurationError } from "./configuration-error.ts";
import { socketPathOf } from "./setting-types.ts";
import type { Configuration } from "./settings.ts";

/**
 * Checks that a server could listen on its hosts and socket paths. Ignores ports, which a running server may use.
 *
 * @throws ConfigurationError that names each setting whose address does not belong to this machine, or whose socket
 * cannot be created
 */
export async function checkAddresses({
  host,
  adminAddress,
}: Pick<Configuration, "host" | "adminAddress">): Promise<void> {
  const problems = await Promise.all([
    problemOfAddress("HOST", host),
    adminAddress && problemOfAddress("PLANTSTORE_ADMIN_ADDRESS", adminAddress.host),
  ]);
  const foundProblems = problems.filter((problem) => problem !== undefined);
  if (foundProblems.length > 0) throw new ConfigurationError(foundProblems);
}

async function problemOfAddress(variable: string, host: string): Promise<string | undefined> {
  const path = socketPathOf(host);
  return path === undefined ? await problemOfHost(variable, host) : problemOfSocket(variable, path);
}

/** Checks a host. Listens briefly on a port that the system chooses. */
async function problemOfHost(variable: string, host: string): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const server = createServer();
  server.once("error", (reason) => resolve(`cannot listen on ${variable}: ${reason.message}`));
  server.listen({ host, port: 0 }, () => server.close(() => resolve(undefined)));
  return await promise;
}

/** Checks a socket path. A file at the path must be a socket, which a running server may be using. */
function problemOfSocket(variable: string, path: string): string | undefined {
  try {
    accessSync(dirname(path), constants.W_OK | constants.X_OK);
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined || stats.isSocket()
      ? undefined
      : `cannot listen on ${variable}: ${path} is not a socket`;
  } catch (reason) {
    return `cannot listen on ${variable}: ${explainSystemError(reason)}`;
  }
}
