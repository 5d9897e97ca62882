import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import { explainSystemError, type OperatorLog } from "@protoport/auth/inputs";
import { validityProblem } from "@protoport/command-line";
import { checkPlantStore, isDurable } from "../stores/index.ts";
import { openCertificate } from "./certificate.ts";
import { ConfigurationError } from "./configuration-error.ts";
import { withDatabaseSetting } from "./database-url.ts";
import { requestedSignals } from "./opentelemetry-variables.ts";
import { explainListenError } from "./listen-error.ts";
import { openVerifier } from "./plant-tokens.ts";
import { describePortUser, listenBriefly } from "./port-user.ts";
import { socketPathOf } from "./setting-types.ts";
import type { Configuration } from "./settings.ts";

/** Configuration problems that do not prevent a server from starting. */
interface CheckedConfiguration {
  /** Why tokens cannot be verified now, such as an unresponsive issuer. Undefined if tokens can be verified. */
  readonly tokensProblem: string | undefined;
  /** The OpenTelemetry SDK's messages about invalid `OTEL_…` variables. The SDK uses defaults for invalid values. */
  readonly telemetryProblems: readonly string[];
}

/**
 * Checks everything that a server with this configuration would open: addresses, files with credentials and keys, the
 * certificate, the store and the OpenTelemetry SDK. The check changes nothing, and a server may use the store during
 * the check.
 *
 * @param warn - receives warnings that the server would log, for example for an empty token hash file, and about its port
 * @throws ConfigurationError if an address, file or certificate is unusable, or a required SDK is not installed
 * @throws StoreOpenError if the store cannot be used
 */
export async function checkConfiguration(
  configuration: Configuration,
  warn: (text: string) => void,
): Promise<CheckedConfiguration> {
  const log: OperatorLog = {
    info: () => undefined,
    warn: (fields, message) => warn(`${message} ${JSON.stringify(fields)}`),
  };
  await checkAddresses(configuration);
  const portUser = await describePortUser(configuration);
  if (portUser !== undefined) warn(portUser);
  await checkCertificate(configuration, log);
  const verifier = await openVerifier(configuration, log);
  const tokensProblem = verifier?.problem;
  verifier?.close?.();
  const { database } = configuration;
  if (isDurable(database)) (await withDatabaseSetting(database, checkPlantStore(database))).forEach(warn);
  // Checks the SDK last, because the SDK would export telemetry during other checks.
  return { tokensProblem, telemetryProblems: await problemsOfSdk() };
}

async function problemsOfSdk(): Promise<readonly string[]> {
  if (requestedSignals(process.env).size === 0) return [];
  const { startSdk } = await import("./opentelemetry-sdk.ts");
  const problems: string[] = [];
  const log = { warn: ({ problem }: { problem: string }): void => void problems.push(problem) };
  startSdk("", () => [], log)?.unregister();
  return problems;
}

async function checkCertificate(configuration: Configuration, log: OperatorLog): Promise<void> {
  const certificate = await openCertificate(configuration, log);
  certificate?.close();
  const problem = certificate && validityProblem(certificate.current);
  if (problem !== undefined) throw new ConfigurationError([`the certificate of TLS_CERT_FILE ${problem}`]);
}

/**
 * Checks that a server could listen on its hosts and socket paths. Ignores ports, which a running server may use;
 * {@link describePortUser} warns about other programs.
 *
 * @throws ConfigurationError that names each setting whose address does not belong to this machine, or whose socket
 * cannot be created
 */
async function checkAddresses({ host, adminAddress }: Pick<Configuration, "host" | "adminAddress">): Promise<void> {
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

async function problemOfHost(variable: string, host: string): Promise<string | undefined> {
  const problem = await listenBriefly(host, 0);
  return problem && explainSystemError(explainListenError(problem, { host, port: 0 }, variable));
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
