import type { BindOptions, BoundAddress } from "@protoport/gateway";
import { type Log, openLog, openReserveLog } from "@protoport/telemetry/logs";
import type { MetricFamily } from "@protoport/telemetry/metrics";
import type { DestinationStream } from "pino";
import type { PlantErrorCode, PlantStore } from "../service/index.ts";
import { type IdRange, type OnUpkeep, openPlantStore } from "../stores/index.ts";
import { serveAdmin, type ServerProblems } from "./admin-server.ts";
import { type Certificate, openCertificate } from "./certificate.ts";
import { assemblePlantServer, type PlantServer } from "./create-plant-server.ts";
import { credentialSourcesOf } from "./credential-settings.ts";
import { watchDatabase, withDatabaseSetting } from "./database-url.ts";
import { explainListenError } from "./listen-error.ts";
import { isSdkRegistered, requestedSignals } from "./opentelemetry-variables.ts";
import type { PlantServerOptions } from "./plant-server-options.ts";
import type { PlantTelemetry } from "./plant-telemetry.ts";
import { openVerifier } from "./plant-tokens.ts";
import { socketPathOf } from "./setting-types.ts";
import type { Configuration } from "./settings.ts";

/** A running server. */
export interface StartedServer extends BoundAddress {
  /** Stops accepting connections, waits for running calls, and closes the store and the files. */
  drain(): Promise<void>;
  /** Resolves when only a restart can fix a failed store. The caller must drain the server and exit the process. */
  readonly storeFailed: Promise<void>;
  /** The address that serves `/metrics`. Undefined without an admin address. */
  readonly admin: BoundAddress | undefined;
  /** Returns the current metrics. Returns an empty array if metrics are not collected. */
  collectMetrics(): readonly MetricFamily[];
  /** Returns the server's current problems by component. Returns an empty object while the server is ready. */
  problems(): ServerProblems;
  /** Immediately reloads the files with credentials, keys and certificates. */
  reload(): Promise<void>;
}

/** Options for {@link startServer}. */
export interface StartOptions {
  /** The plants for a store that the server creates. An existing store gets no plants, even if the store is empty. */
  readonly plantsWhenCreated?: IdRange;
  /** Whether to collect metrics for {@link StartedServer.collectMetrics} even without an admin address. */
  readonly collectsMetrics?: boolean;
  /** The server's version, which metrics and the OpenTelemetry SDK report. If omitted, no OpenTelemetry SDK is used. */
  readonly serviceVersion?: string | undefined;
  /** The log's destination. Default standard error. */
  readonly logDestination?: DestinationStream;
}

/**
 * Opens everything in the configuration, and starts a server.
 *
 * @throws ConfigurationError that names the setting if a configured file is invalid
 * @throws StoreOpenError that names the setting if the store cannot be opened
 * @throws Error that names the setting, with the system error as `cause`, if listening fails
 */
export async function startServer(configuration: Configuration, options: StartOptions = {}): Promise<StartedServer> {
  const log = openLog(configuration.logLevel, options.logDestination);
  await using opened = new AsyncDisposableStack();
  const certificate = await openCertificate(configuration, log);
  opened.defer(async () => certificate?.close());
  const verifier = await openVerifier(configuration, log);
  if (verifier === undefined)
    log.warn({ errorCode: noCredentials }, "no credentials are configured; all calls will be refused");
  opened.defer(async () => verifier?.close?.());
  const telemetry = opened.use(await openTelemetry(configuration, options, log));
  const database = await watchDatabase(configuration.database, log);
  opened.defer(async () => database.files.forEach((file) => file.close()));
  const store = await withDatabaseSetting(
    database.location,
    openPlantStore(database.location, {
      deletionsKeptMs: configuration.deletionsKeptHours * hourMs,
      ...(options.plantsWhenCreated && { plantsWhenCreated: options.plantsWhenCreated }),
      onBatch: telemetry?.onBatch,
      onUpkeep: logUpkeep(log),
    }),
  );
  opened.defer(() => store.close());
  const watch = watchStoreFailure(store, log);
  opened.defer(async () => watch.stop());
  const logs = openLogs(configuration, options, log);
  const tools = configuration.mcp === "on" ? (await import("./plant-tools.ts")).createPlantTools() : undefined;
  const server = assemblePlantServer({ ...configuration, store, verifier, tools, ...logs, ...telemetry?.hooks });
  certificate?.onRenewal((pair) => server.setSecureContext(pair));
  telemetry?.metrics.watch(server, store, verifier, certificate, database.files);
  const { adminAddress } = configuration;
  const collectMetrics = (): readonly MetricFamily[] => telemetry?.metrics.collect() ?? [];
  const problems = (): ServerProblems => Object.fromEntries(server.readiness.problems());
  const sources = { collect: collectMetrics, problems };
  const admin = opened.use(adminAddress && (await serveAdmin(adminAddress, sources, log)));
  const address = await listenOn(server, configuration, certificate);
  // Omits port 0, because a Unix socket has no port.
  const bindAddress = { ...address, port: address.port || undefined };
  log.info({ pid: process.pid, ...bindAddress, ...describeServing(configuration) }, "listening");
  const toClose = opened.move();
  return {
    ...address,
    admin,
    storeFailed: watch.storeFailed,
    collectMetrics,
    problems,
    reload: async () => {
      log.info("reloading");
      const files = database.files.map((file) => file.reload());
      await Promise.all([verifier?.reload?.(), certificate?.reload(), ...files]);
    },
    drain: async () => {
      log.info("draining");
      await server.drain();
      await toClose.disposeAsync();
      log.info("stopped");
    },
  };
}

function openLogs(
  { audit, logLevel }: Configuration,
  { logDestination }: StartOptions,
  log: ReturnType<typeof openLog>,
): Pick<PlantServerOptions, "log" | "auditLog" | "deletionLog"> {
  const level = audit === "always" && logLevel !== "silent" ? "info" : logLevel;
  // The logs share a stream, to keep lines in order. The audit trail does not depend on LOG_LEVEL.
  return { log, auditLog: log.child({}, { level }), deletionLog: openReserveLog(level, logDestination) };
}

async function listenOn(
  server: PlantServer,
  configuration: Configuration,
  certificate: Certificate | undefined,
): Promise<BoundAddress> {
  const { maxConnectionAgeMs, maxConnectionAgeGraceMs } = configuration;
  const ages = { maxConnectionAgeMs, maxConnectionAgeGraceMs };
  const tls = certificate && { tls: certificate.current };
  const listenOptions = { ...bindOptionsOf(configuration), ...ages, ...tls };
  return await server.listen(listenOptions).catch((reason: unknown) => {
    throw explainListenError(reason, configuration);
  });
}

/** Returns the address on which a server listens. */
function bindOptionsOf({ host, port, socketMode }: Configuration): BindOptions {
  const path = socketPathOf(host);
  return path === undefined ? { host, port } : { path, socketMode: Number.parseInt(socketMode, 8) };
}

/** Returns the fields for the log line when the server starts. */
function describeServing(configuration: Configuration): object {
  const { database, mcp, tlsCertFile, publicUrl } = configuration;
  return {
    protocols: `REST, Connect, gRPC, gRPC-Web${mcp === "on" ? ", MCP" : ""}`,
    tls: tlsCertFile !== undefined,
    store: database.kind,
    credentials: credentialSourcesOf(configuration),
    // JSON omits an undefined member.
    publicUrl: publicUrl?.href,
  };
}

// Imports the module on demand, because not every server has telemetry.
async function openTelemetry(
  { adminAddress, database }: Configuration,
  { collectsMetrics = false, serviceVersion }: StartOptions,
  log: Log,
): Promise<PlantTelemetry | undefined> {
  const hasSdk = serviceVersion !== undefined && (isSdkRegistered() || requestedSignals(process.env).size > 0);
  if (adminAddress === undefined && !collectsMetrics && !hasSdk) return undefined;
  const { openPlantTelemetry } = await import("./plant-telemetry.ts");
  return await openPlantTelemetry(database.kind, serviceVersion, log);
}

const noCredentials: PlantErrorCode = "ERR_NO_CREDENTIALS";

const hourMs = 3_600_000;

/** Returns a callback that logs one line per maintenance event. */
export function logUpkeep(log: Pick<Log, "info" | "warn">): OnUpkeep {
  return ({ kind, ...fields }) => {
    switch (kind) {
      case "migrated":
        return log.info(fields, "schema migrated");
      case "records-dropped":
        return log.info(fields, "old deletion records dropped");
      case "second-name-found":
        return log.warn(withPlantCode("ERR_STORE_SECOND_NAME", fields), "the file of the store has a second name");
      case "second-name-gone":
        return log.warn(fields, "the file of the store has a single name again");
      case "checkpoints-stalled":
        return log.warn(
          withPlantCode("ERR_CHECKPOINTS_STALLED", fields),
          "the write-ahead log is not copied into the file",
        );
      case "checkpoints-resumed":
        return log.warn(fields, "the write-ahead log is copied into the file again");
      case "connections-refused":
        return log.warn(fields, "too few database connections; allow five per process");
      default:
        return log.warn(withPlantCode("ERR_RETENTION_FAILED", fields), "cannot drop old deletion records");
    }
  };
}

function withPlantCode(errorCode: PlantErrorCode, fields: object): object {
  return { errorCode, ...fields };
}

// Interval between checks of the store, in milliseconds. Long, because a failed store already refuses calls.
const checkIntervalMs = 500;

/** A watch for a store failure that only a restart can fix. */
interface StoreFailureWatch {
  /** Resolves after the store's failure has been logged. */
  readonly storeFailed: Promise<void>;
  /** Stops the watch. */
  stop(): void;
}

/** Watches a store for a failure that only a restart can fix. Does not keep the process alive. */
export function watchStoreFailure(store: PlantStore, log: Pick<Log, "fatal">): StoreFailureWatch {
  const { promise: storeFailed, resolve } = Promise.withResolvers<void>();
  const check = (): void => {
    if (store.needsRestart !== true) return;
    clearInterval(timer);
    const errorCode: PlantErrorCode = "ERR_STORE_FAILED";
    log.fatal({ errorCode, problem: store.problem }, "the store has failed; restart the server");
    resolve();
  };
  const timer = setInterval(check, checkIntervalMs).unref();
  return { storeFailed, stop: () => clearInterval(timer) };
}
