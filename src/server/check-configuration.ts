import { openCertificate } from "./certificate.ts";
import { checkAddresses } from "./check-addresses.ts";
import { findCollectorProblems } from "./check-collectors.ts";
import { ConfigurationError } from "./configuration-error.ts";
import { withDatabaseSetting } from "./database-url.ts";
import type { OperatorLog } from "@plantstore/auth/inputs";
import { checkPlantStore } from "../stores/index.ts";
import { requestedSignals, startSdk } from "./opentelemetry-sdk.ts";
import { openVerifier } from "./plant-tokens.ts";
import type { Configuration } from "./settings.ts";

/** Configuration problems with which a server can start. */
export interface CheckedConfiguration {
  /**
   * Why tokens cannot be verified at the moment, for example because an issuer does not respond. Otherwise `undefined`.
   */
  readonly tokensProblem: string | undefined;
  /** OpenTelemetry SDK messages about invalid `OTEL_…` variables, for which it uses defaults. */
  readonly telemetryProblems: readonly string[];
  /**
   * What the server would log as warnings, for example that a token hash file is empty, and warnings about the store
   * and telemetry collectors.
   */
  readonly warnings: readonly string[];
}

/**
 * Checks everything that a server with this configuration would open: addresses, files with credentials and keys, the
 * certificate, the store and the OpenTelemetry SDK. Changes nothing, so it can run while a server uses the same store.
 *
 * @throws ConfigurationError when the server could not listen on an address, a file is invalid, the certificate has
 * expired, or the SDK is required but not installed; StoreOpenError when the store cannot be used
 */
export async function checkConfiguration(configuration: Configuration): Promise<CheckedConfiguration> {
  const warnings: string[] = [];
  const log: OperatorLog = {
    info: () => undefined,
    warn: (fields, message) => void warnings.push(`${message} ${JSON.stringify(fields)}`),
  };
  await checkAddresses(configuration);
  await checkCertificate(configuration, log);
  const verifier = await openVerifier(configuration, log);
  const tokensProblem = verifier?.problem;
  verifier?.close?.();
  const { database } = configuration;
  if (database.kind !== "memory") warnings.push(...(await withDatabaseSetting(database, checkPlantStore(database))));
  warnings.push(...(await findCollectorProblems(process.env)));
  // The SDK is checked last, because it would export telemetry while other checks are pending.
  return { tokensProblem, telemetryProblems: problemsOfSdk(), warnings };
}

function problemsOfSdk(): readonly string[] {
  const signals = requestedSignals(process.env);
  if (signals.size === 0) return [];
  const problems: string[] = [];
  const log = { info: (): void => {}, warn: ({ problem }: { problem: string }): void => void problems.push(problem) };
  startSdk({ signals, serviceVersion: "", collect: () => [], log }).unregister();
  return problems;
}

async function checkCertificate(configuration: Configuration, log: OperatorLog): Promise<void> {
  const certificate = await openCertificate(configuration, log);
  certificate?.close();
  const notAfterMs = certificate?.current.notAfterMs ?? Infinity;
  if (notAfterMs > Date.now()) return;
  throw new ConfigurationError([`the certificate of TLS_CERT_FILE expired at ${new Date(notAfterMs).toISOString()}`]);
}
