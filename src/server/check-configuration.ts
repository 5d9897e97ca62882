import { openCertificate } from "./certificate.ts";
import { checkAddresses } from "./check-addresses.ts";
import { ConfigurationError } from "./configuration-error.ts";
import { namingDatabase } from "./database-url.ts";
import { silentLog } from "@plantstore/telemetry/logs";
import { checkPlantStore } from "../stores/index.ts";
import { askedSignals, startSdk } from "./opentelemetry-sdk.ts";
import { openVerifier } from "./plant-tokens.ts";
import type { Configuration } from "./settings.ts";

/** What is amiss with a configuration that a server can start with. */
export interface CheckedConfiguration {
  /** Why tokens cannot be verified right now, such as an issuer that does not answer; `undefined` while they can. */
  readonly tokensProblem: string | undefined;
  /** What OpenTelemetry's SDK finds wrong with its variables, `OTEL_…`, and puts a default in its place. */
  readonly telemetryProblems: readonly string[];
}

/**
 * Checks what a server with this configuration would open: its addresses, the files of credentials and keys, the
 * certificate, the store, OpenTelemetry's SDK. Changes nothing, so it may run while a server uses the same store.
 *
 * @throws ConfigurationError when an address cannot be listened on, a file has wrong content, the certificate has
 * expired, or the SDK is asked for and not installed; StoreOpenError when the store cannot be used
 */
export async function checkConfiguration(configuration: Configuration): Promise<CheckedConfiguration> {
  await checkAddresses(configuration);
  await checkCertificate(configuration);
  const verifier = await openVerifier(configuration, silentLog);
  const tokensProblem = verifier?.problem;
  verifier?.close?.();
  const { database } = configuration;
  if (database.kind !== "memory") await namingDatabase(database, checkPlantStore(database));
  // Last, because what it starts would export as long as something else is waited for.
  return { tokensProblem, telemetryProblems: problemsOfSdk() };
}

function problemsOfSdk(): readonly string[] {
  const signals = askedSignals(process.env);
  if (signals.size === 0) return [];
  const problems: string[] = [];
  const log = { info: (): void => {}, warn: ({ problem }: { problem: string }): void => void problems.push(problem) };
  startSdk({ signals, serviceVersion: "", collect: () => [], log }).abandon();
  return problems;
}

async function checkCertificate(configuration: Configuration): Promise<void> {
  const certificate = await openCertificate(configuration, silentLog);
  certificate?.close();
  const notAfterMs = certificate?.current.notAfterMs ?? Infinity;
  if (notAfterMs > Date.now()) return;
  throw new ConfigurationError([`the certificate of TLS_CERT_FILE expired at ${new Date(notAfterMs).toISOString()}`]);
}
