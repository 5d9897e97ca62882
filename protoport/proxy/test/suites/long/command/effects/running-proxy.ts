import { writeFileSync } from "node:fs";
import { createTempFolder, within } from "@protoport/testing/process";
import { ProxyCommand } from "../../../../../../testing/src/gateway/proxy-command.ts";

/** A configuration file's settings, and its first upstream's. */
export type TestSettings = Readonly<Record<string, unknown>> & { readonly upstream?: object };

/** A proxy command in this process. Dispose it with `await using`. */
export interface RunningProxy extends AsyncDisposable {
  /** The URL for calls, or "" if the command has not started to serve. */
  readonly baseUrl: string;
  /** The URL for probes, or "" without an admin port. */
  readonly adminUrl: string;
  /** The services that are served, or the last line before the command ended. */
  readonly outcome: string;
  /** The printed lines. */
  readonly lines: readonly string[];
  /** Requests the stop, as SIGTERM does. */
  stop(): void;
}

/**
 * Runs `protoport --config FILE` until it serves, ends, or waits for descriptors. By default, it listens on free
 * loopback ports, reads descriptors by reflection, and stops immediately.
 */
export async function runProxy(addresses: readonly string[], settings: TestSettings): Promise<RunningProxy> {
  const { upstream, ...others } = settings;
  const defaults = { listen: { port: 0 }, admin: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 } };
  const upstreams = [{ addresses, descriptors: "reflection", ...upstream }];
  const folder = createTempFolder();
  writeFileSync(folder.file("proxy.yaml"), JSON.stringify({ ...defaults, upstreams, ...others }));
  const command = new ProxyCommand(["--config", folder.file("proxy.yaml")]);
  await command.waitForLine(/ serves |waiting for descriptors/);
  const { lines } = command;
  const find = (pattern: RegExp): RegExpExecArray | undefined =>
    lines.map((line) => pattern.exec(line)).find((found) => found !== null) ?? undefined;
  const [, baseUrl = "", services] = find(/^(\S+) serves (.*)/) ?? [];
  const [, adminUrl = ""] = find(/^health and metrics at (\S+)/) ?? [];
  return {
    baseUrl,
    adminUrl,
    // Excludes a problem's place in the file, which differs each time.
    outcome: services ?? lines.at(-1)?.replace(/^\S+:\d+:\d+: /, "") ?? "",
    lines,
    stop: () => command.stop(),
    [Symbol.asyncDispose]: async () => {
      command.stop();
      await within(command.done, "the end of the command");
      folder[Symbol.dispose]();
    },
  };
}
