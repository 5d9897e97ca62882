import { once } from "node:events";
import { connect } from "node:net";
import { explainSystemError } from "@protoport/auth/inputs";
import { requestedSignals } from "./opentelemetry-variables.ts";

// Timeout for a connection to a collector, in milliseconds.
const connectTimeoutMs = 3_000;

/** Environment variables, by name. */
type Environment = Readonly<Record<string, string | undefined>>;

/** Returns a warning for each collector of traces or metrics that accepts no connection. */
export async function findCollectorProblems(environment: Environment): Promise<readonly string[]> {
  const urls = [...requestedSignals(environment)]
    .map((signal) => signal.toUpperCase())
    .filter((signal) => (environment[`OTEL_${signal}_EXPORTER`] || "otlp") === "otlp")
    .map((signal) => collectorOf(environment, signal));
  const found = await Promise.all([...new Set(urls)].map(findProblem));
  return found.filter((problem) => problem !== undefined);
}

/** Returns the collector's URL for a signal (https://opentelemetry.io/docs/specs/otel/protocol/exporter/). */
function collectorOf(environment: Environment, signal: string): string {
  const variable = (name: string): string | undefined =>
    environment[`OTEL_EXPORTER_OTLP_${signal}_${name}`] || environment[`OTEL_EXPORTER_OTLP_${name}`];
  const portDefault = variable("PROTOCOL") === "grpc" ? 4317 : 4318;
  return variable("ENDPOINT") ?? `http://localhost:${portDefault}`;
}

async function findProblem(text: string): Promise<string | undefined> {
  // Ignores an invalid URL, because the SDK reports the URL.
  if (!URL.canParse(text)) return undefined;
  const { hostname, port, protocol, origin } = new URL(text);
  const portDefault = protocol === "https:" ? 443 : 80;
  const host = hostname.replaceAll(/[[\]]/g, "");
  const signal = AbortSignal.timeout(connectTimeoutMs);
  const socket = connect({ host, port: port === "" ? portDefault : Number(port) });
  try {
    await once(socket, "connect", { signal });
    return undefined;
  } catch (reason) {
    const message = signal.aborted ? "the connection timed out" : explainSystemError(reason);
    return `traces or metrics are lost while the collector ${origin} accepts no connections: ${message}`;
  } finally {
    socket.destroy();
  }
}
