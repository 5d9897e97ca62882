import type { ParseArgsOptionsConfig } from "node:util";
import { ConfigurationError, readConfiguration, settings, type Setting, startServer } from "../server/index.ts";
import { type Command, type Flags, textOf, UsageError } from "./command.ts";
import { demoLines, demoPlants, prepareDemo } from "./demo.ts";
import { exitCode } from "./exit-code.ts";
import { firstStopSignal } from "./stop-signals.ts";

const allSettings: readonly Setting<unknown>[] = Object.values(settings);

/** The flags that make sense with `--demo`, whose store and credential are its own. */
const demoFlags: ReadonlySet<string> = new Set(["demo", "host", "port", "log-level"]);

/** Serves plants until a signal ends it. */
export const serve: Command = {
  name: "serve",
  synopsis: "[--demo] [--host H] [--port P] [--database-url U] …",
  summary: "serve plants until SIGTERM or SIGINT",
  options: { demo: { type: "boolean" }, ...settingOptions() },
  positionals: [0, 0],
  help: () => [
    "  --demo  serve a store of its own in .plantstore/ with a token of its own",
    "",
    "Settings, by flag or by environment variable:",
    ...allSettings.flatMap(describe),
  ],
  run: async (flags, _positionals, terminal) => {
    const stop = firstStopSignal();
    const demo = flags["demo"] === true ? await prepareDemo(terminal.environment) : undefined;
    if (demo !== undefined) refuseOtherFlags(flags);
    const environment = demo?.environment ?? terminal.environment;
    const reading = readConfiguration({ environment, flags: textFlags(flags) });
    if (reading.kind === "problems") throw new ConfigurationError(reading.problems);
    const { host, port } = reading.configuration;
    let reload: (() => Promise<void>) | undefined;
    // From before the start, since an unheard SIGHUP ends a process. Closing the terminal of a demo sends one too, and should end it.
    if (demo === undefined) process.on("SIGHUP", () => void reload?.());
    try {
      const server = await startServer(reading.configuration, demo && demoPlants);
      reload = () => server.reload();
      if (demo !== undefined) demoLines(demo, { host, port: server.port }).forEach((line) => terminal.out(line));
      await stop;
      await server.drain();
      return exitCode.ok;
    } catch (reason) {
      throw explain(reason, host, port);
    }
  },
};

function settingOptions(): ParseArgsOptionsConfig {
  return Object.fromEntries(
    allSettings.flatMap(({ flag }) => (flag === undefined ? [] : [[flag, { type: "string" }]])),
  );
}

function describe({ flag, variable, about, fallback }: Setting<unknown>): string[] {
  const names = flag === undefined ? variable : `--${flag}, ${variable}`;
  return [`  ${names}`, `      ${about}${fallback === undefined ? "" : ` (${fallback})`}`];
}

function refuseOtherFlags(flags: Flags): void {
  const others = Object.keys(flags).filter((flag) => !demoFlags.has(flag));
  if (others.length > 0) throw new UsageError(`--demo brings its own settings; leave out --${others.join(", --")}`);
}

function textFlags(flags: Flags): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, textOf(flag)]));
}

// The system's own words ("listen EADDRINUSE: …") help only who knows them.
function explain(reason: unknown, host: string, port: number): unknown {
  const code = reason instanceof Error && "code" in reason ? reason.code : undefined;
  const at = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  if (code === "EADDRINUSE")
    return new Error(`port ${port} is in use: ${at} is taken by another process`, { cause: reason });
  if (code === "EACCES") return new Error(`${at} may not be listened on by this user`, { cause: reason });
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    return new Error(`${host} is no address of this machine`, { cause: reason });
  }
  return reason;
}
