import { join } from "node:path";
import { projectFolder } from "../process/child-program.ts";
import { type CommandLine, startNode } from "../process/command-line.ts";

/** `npx @protoport/proxy` in a separate process. Dispose of the process with `await using`. */
export interface ProxyProcess extends AsyncDisposable {
  readonly command: CommandLine;
  readonly baseUrl: string;
  readonly port: number;
  /** The URL for probes and metrics. */
  readonly adminUrl: string;
}

/** Starts the command with an admin port, and resolves once the proxy serves. */
export async function startProxyProcess(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<ProxyProcess> {
  const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
  const command = startNode([main, "--admin-port", "0", ...args], projectFolder, environment);
  try {
    const [, adminUrl = ""] = await command.find(/^health and metrics at (\S+)/m);
    const [, baseUrl = ""] = await command.find(/^(\S+) serves/m);
    const port = Number(new URL(baseUrl).port);
    return { command, baseUrl, port, adminUrl, [Symbol.asyncDispose]: () => command[Symbol.asyncDispose]() };
  } catch (error) {
    await command[Symbol.asyncDispose]();
    throw error;
  }
}
