import { type ParsedFlags, UsageError } from "@protoport/command-line";
import {
  type Configuration,
  flagOf,
  readConfiguration,
  settings,
  showConfiguration,
  socketPathOf,
  startServer,
  type StartedServer,
  type StartOptions,
} from "../server/index.ts";
import { type Command, exitCode, packageVersion, type PlantTerminal } from "./command.ts";
import { demoLines, demoPlants, demoSettings, firstPlants, prepareDemo } from "./demo.ts";
import { followOrders, supervisorStop, workerVariable } from "./worker.ts";
import { listedSettings, sourcesOf } from "./setting-flags.ts";

/** The flags that are allowed with `--demo`. */
const demoFlags: ReadonlySet<string | undefined> = new Set([
  "demo",
  ...demoSettings.map((key) => flagOf(settings[key])),
]);

/** The `serve` command, which serves plants until a signal stops the process. */
export const serveStoreCommand: Command = {
  name: "serve",
  summary: "serve plants until SIGTERM or SIGINT",
  flags: {
    demo: { about: "serve a demo store in .plantstore/ with a generated token" },
    "print-config": { about: "print the effective settings without secrets, and exit" },
  },
  settings: listedSettings,
  run: async (flags, _operands, terminal) => {
    if (flags["demo"] === true) return await serveDemo(flags, terminal);
    const { [workerVariable]: role, ...environment } = terminal.environment;
    // Only a worker may have the variable. Otherwise, it is refused as unknown.
    const isWorker = role === "on" && process.getBuiltinModule("node:cluster").isWorker;
    const configuration = readConfiguration(sourcesOf(flags, isWorker ? environment : terminal.environment));
    if (flags["print-config"] === true) return printConfiguration(flags, terminal);
    if (isWorker) return await serveAsWorker(configuration);
    if (configuration.workers > 1) {
      // Imports the module on demand, because loading node:cluster takes 3 ms.
      const { superviseWorkers } = await import("./supervise.ts");
      return await superviseWorkers(configuration, terminal.onHangup);
    }
    return await serveUntilStopped(configuration, {
      stop: terminal.stopSignal(),
      serviceVersion: packageVersion(),
      onListening: (server) => terminal.onHangup(() => void server.reload()),
    });
  },
};

function printConfiguration(flags: ParsedFlags, terminal: PlantTerminal): number {
  const shownConfiguration = showConfiguration(sourcesOf(flags, terminal.environment));
  const width = Math.max(...shownConfiguration.map(({ variable }) => variable.length));
  for (const { variable, text = "-", source } of shownConfiguration) {
    terminal.out(`${variable.padEnd(width)}  ${text}${source === variable ? "" : `  (${source})`}`);
  }
  return exitCode.ok;
}

async function serveDemo(flags: ParsedFlags, terminal: PlantTerminal): Promise<number> {
  const otherFlags = Object.keys(flags).filter((flag) => !demoFlags.has(flag));
  if (otherFlags.length > 0) throw new UsageError(`--demo cannot be combined with --${otherFlags.join(", --")}`);
  const demo = await prepareDemo(terminal.environment);
  const configuration = readConfiguration(sourcesOf(flags, demo.environment));
  if (socketPathOf(configuration.host) !== undefined)
    throw new UsageError("--demo requires a TCP port; HOST must not be a Unix socket");
  if (demo.ignored.length > 0) terminal.err(`ignored settings that the demo sets itself: ${demo.ignored.join(", ")}`);
  return await serveUntilStopped(configuration, {
    stop: terminal.stopSignal(),
    serviceVersion: packageVersion(),
    plantsWhenCreated: demoPlants,
    onListening: async ({ port }) => {
      const plants = await firstPlants(demo.environment);
      for (const line of demoLines(demo, { host: configuration.host, port }, plants)) terminal.out(line);
    },
  });
}

async function serveAsWorker({ adminAddress, ...configuration }: Configuration): Promise<number> {
  try {
    // The supervisor serves the admin address, and collects all workers' metrics.
    return await serveUntilStopped(
      { ...configuration, adminAddress: undefined },
      {
        collectsMetrics: adminAddress !== undefined,
        serviceVersion: packageVersion(),
        stop: supervisorStop(),
        onListening: followOrders,
      },
    );
  } finally {
    // An open channel to the supervisor would keep the process alive.
    if (process.connected) process.disconnect?.();
  }
}

interface ServeOptions extends StartOptions {
  /** Resolves when the server must shut down. */
  readonly stop: Promise<NodeJS.Signals | "drain">;
  readonly onListening?: (server: StartedServer) => void | Promise<void>;
}

async function serveUntilStopped(configuration: Configuration, options: ServeOptions): Promise<number> {
  const server = await startServer(configuration, options);
  await options.onListening?.(server);
  const signal = await Promise.race([options.stop, server.storeFailed]);
  await server.drain();
  return signal === undefined ? exitCode.storeFailed : exitCode.ok;
}
