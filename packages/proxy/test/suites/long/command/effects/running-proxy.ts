import { writeFileSync } from "node:fs";
import { proxyCommand } from "../../../../../src/command/program.ts";
import { createTempFolder } from "../../../../../../testing/src/process/temp-folder.ts";

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
 * Runs `plantstore-proxy --config FILE` until it serves, ends, or waits for descriptors. By default, it listens on free
 * loopback ports, reads descriptors by reflection, and stops immediately.
 */
export async function runProxy(addresses: readonly string[], settings: TestSettings): Promise<RunningProxy> {
  const { upstream, ...others } = settings;
  const defaults = { listen: { port: 0 }, admin: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 } };
  const upstreams = [{ addresses, descriptors: "reflection", ...upstream }];
  const folder = createTempFolder();
  writeFileSync(folder.file("proxy.yaml"), JSON.stringify({ ...defaults, upstreams, ...others }));
  const lines: string[] = [];
  const stop = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const print = (text: string): void => {
    lines.push(text);
    if (/ serves |waiting for descriptors/.test(text)) started.resolve();
  };
  const ended = proxyCommand(["--config", folder.file("proxy.yaml")], {
    out: print,
    err: print,
    stopRequested: () => stop.promise,
    onHangup: () => undefined,
  });
  await Promise.race([started.promise, ended]);
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
    stop: stop.resolve,
    [Symbol.asyncDispose]: async () => {
      stop.resolve();
      await ended;
      folder[Symbol.dispose]();
    },
  };
}
