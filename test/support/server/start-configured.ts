// oxfmt-ignore
import { ConfigurationError, type ConfigurationSources, readConfiguration, type StartedServer, type StartOptions,
  startServer } from "../../../src/server/index.ts";

/** A server that was started with settings. Dispose it with `await using`, or drain it. */
export interface ConfiguredServer extends StartedServer, AsyncDisposable {
  readonly baseUrl: string;
  /** Its log's lines so far, oldest first. */
  readonly lines: () => readonly Readonly<Record<string, unknown>>[];
}

/** Starts a server with environment variables, by default on a free port and with plants 1 to 999. */
export async function startConfigured(
  environment: ConfigurationSources["environment"],
  options: StartOptions = {},
): Promise<ConfiguredServer> {
  const always = { PORT: "0", DATABASE_URL: "memory:", PLANTSTORE_DRAIN_DELAY_MS: "0" };
  const written: string[] = [];
  const server = await startServer(readConfiguration({ environment: { ...always, ...environment }, flags: {} }), {
    plantsWhenCreated: { first: 1n, last: 999n },
    logDestination: { write: (line) => void written.push(line) },
    ...options,
  });
  let drained: Promise<void> | undefined;
  const drain = (): Promise<void> => (drained ??= server.drain());
  const lines = () => written.map((line): Record<string, unknown> => JSON.parse(line));
  return { ...server, baseUrl: `http://127.0.0.1:${server.port}`, lines, drain, [Symbol.asyncDispose]: drain };
}

type Texts = Readonly<Record<string, string>>;

/** Returns a configuration's problems, or an empty list if it is valid. */
export function problemsOf(environment: Texts, flags: Texts = {}): readonly string[] {
  try {
    readConfiguration({ environment, flags });
    return [];
  } catch (reason) {
    if (reason instanceof ConfigurationError) return reason.problems;
    throw reason;
  }
}
