import type { DestinationStream } from "pino";
import type { BindOptions, BoundAddress } from "@plantstore/gateway";
import { type Log, openLog, openReserveLog } from "@plantstore/telemetry/logs";
import type { MetricFamily } from "@plantstore/telemetry/metrics";
import { type IdRange, openMemoryStore, openPlantStore } from "../stores/index.ts";
import type { PlantErrorCode, PlantStore } from "../service/index.ts";
import { serveMetrics } from "./admin-server.ts";
import { type Certificate, openCertificate } from "./certificate.ts";
import { assemblePlantServer, type PlantServer } from "./create-plant-server.ts";
import { credentialSourcesOf } from "./credential-settings.ts";
import { type Database, followDatabase, namingDatabase } from "./database-url.ts";
import { explainListening } from "./explain-listening.ts";
import { logUpkeep } from "./log-upkeep.ts";
import { askedSignals, isSdkRegistered } from "./opentelemetry-sdk.ts";
import type { PlantServerOptions } from "./plant-server-options.ts";
import type { PlantTelemetry } from "./plant-telemetry.ts";
import { openVerifier } from "./plant-tokens.ts";
import { socketPathOf } from "./setting-readers.ts";
import type { Configuration } from "./settings.ts";
import { watchBreakdown } from "./watch-breakdown.ts";

/** A running server. */
export interface StartedServer extends BoundAddress {
  /** Stops accepting, finishes running calls, and closes the store and the files. */
  drain(): Promise<void>;
  /** Resolves when the store has a fault that only a restart can mend; then drain the server, and end the process. */
  readonly breakdown: Promise<void>;
  /** Where `/metrics` is; `undefined` without an admin address. */
  readonly admin: BoundAddress | undefined;
  /** Returns the metrics as they are now; none unless they are collected. */
  collectMetrics(): readonly MetricFamily[];
  /** Reads the files of credentials, keys and certificates again right away instead of when they change. */
  reload(): Promise<void>;
}

/** Options of {@link startServer}. */
export interface StartOptions {
  /** The plants for a store that this start creates; an existing store is never filled, even when it is empty. */
  readonly plantsWhenCreated?: IdRange;
  /** Whether another process listens and hands over connections. */
  readonly handedOver?: boolean;
  /** Whether metrics are collected for {@link StartedServer.collectMetrics} although no admin address is served. */
  readonly measured?: boolean;
  /**
   * The version of the server for OpenTelemetry's SDK: the one that is registered, or that the variables `OTEL_…` of the
   * process ask for. Default: neither is heeded.
   */
  readonly serviceVersion?: string | undefined;
  /** The destination of the log; standard error by default. */
  readonly logLines?: DestinationStream;
}

/**
 * Opens everything that is configured and serves it.
 *
 * @throws ConfigurationError when a configured file has wrong content; StoreOpenError when the store cannot be opened;
 * Error when an address cannot be listened on, with the error of the system as its cause. Each message names its setting
 */
export async function startServer(configuration: Configuration, options: StartOptions = {}): Promise<StartedServer> {
  const log = openLog(configuration.logLevel, options.logLines);
  await using opened = new AsyncDisposableStack();
  const certificate = await openCertificate(configuration, log);
  opened.defer(async () => certificate?.close());
  const auth = await openVerifier(configuration, log);
  if (auth === undefined)
    log.warn(
      { errorCode: "ERR_NO_CREDENTIALS" satisfies PlantErrorCode },
      "no credentials are configured; all calls will be refused",
    );
  opened.defer(async () => auth?.close?.());
  const telemetry = opened.use(await openTelemetry(configuration, options, log));
  const database = await followDatabase(configuration.database, log);
  opened.defer(async () => database.file?.close());
  const store = await namingDatabase(
    database.location,
    openStore(database.location, configuration, {
      ...(options.plantsWhenCreated && { plantsWhenCreated: options.plantsWhenCreated }),
      onBatch: telemetry?.onBatch,
      onUpkeep: logUpkeep(log),
    }),
  );
  opened.defer(() => store.close());
  const watch = watchBreakdown(store, log);
  opened.defer(async () => watch.stop());
  const logs = openLogs(configuration, options, log);
  const server = assemblePlantServer({ ...configuration, store, auth, ...logs, ...telemetry?.hooks });
  certificate?.follow((pair) => server.setSecureContext(pair));
  telemetry?.metrics.watch(server, store, auth, certificate, database.file);
  const { adminAddress, httpEngine } = configuration;
  const collectMetrics = (): readonly MetricFamily[] => telemetry?.metrics.collect() ?? [];
  const admin = opened.use(adminAddress && (await serveMetrics(adminAddress, collectMetrics, log, httpEngine)));
  const address = await listen(server, configuration, options, certificate);
  // A Unix socket has no port.
  const place = { ...address, port: address.port || undefined };
  log.info({ pid: process.pid, ...place, ...describeServing(configuration) }, "listening");
  const toClose = opened.move();
  return {
    ...address,
    admin,
    breakdown: watch.breakdown,
    collectMetrics,
    reload: async () => {
      log.info("reloading");
      await Promise.all([auth?.reload?.(), certificate?.reload(), database.file?.reload()]);
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
  { logLines }: StartOptions,
  log: ReturnType<typeof openLog>,
): Pick<PlantServerOptions, "log" | "auditLog" | "deletionLog"> {
  const level = audit === "always" && logLevel !== "silent" ? "info" : logLevel;
  // The same stream, so that lines stay in order, but its own level, so that a quiet log keeps the audit trail.
  return { log, auditLog: log.child({}, { level }), deletionLog: openReserveLog(level, logLines) };
}

async function listen(
  server: PlantServer,
  configuration: Configuration,
  { handedOver = false }: StartOptions,
  certificate: Certificate | undefined,
): Promise<BoundAddress> {
  const { maxConnectionAgeMs, maxConnectionAgeGraceMs } = configuration;
  const ages = { maxConnectionAgeMs, maxConnectionAgeGraceMs };
  const tls = certificate && { tls: certificate.current };
  const at = { ...bindOptionsOf(configuration), ...ages, handedOver, ...tls };
  return await server.listen(at).catch((reason: unknown) => {
    throw explainListening(reason, configuration);
  });
}

/** Returns where a server is to listen. */
export function bindOptionsOf({ host, port, socketMode }: Configuration): BindOptions {
  const path = socketPathOf(host);
  return path === undefined ? { host, port } : { path, socketMode };
}

/** Returns what is served, and how, for the log line about the start. */
function describeServing(configuration: Configuration): object {
  const { database, tlsCertFile, publicUrl } = configuration;
  return {
    protocols: "REST, Connect, gRPC, gRPC-Web",
    tls: tlsCertFile !== undefined,
    store: database.kind,
    credentials: credentialSourcesOf(configuration),
    // JSON omits what is not set.
    publicUrl: publicUrl?.href,
  };
}

// Loaded on demand, so that a server without telemetry does not pay for it.
async function openTelemetry(
  { adminAddress, database }: Configuration,
  { measured = false, serviceVersion }: StartOptions,
  log: Log,
): Promise<PlantTelemetry | undefined> {
  const hasSdk = serviceVersion !== undefined && (isSdkRegistered() || askedSignals(process.env).size > 0);
  if (adminAddress === undefined && !measured && !hasSdk) return undefined;
  const { openPlantTelemetry } = await import("./plant-telemetry.ts");
  return await openPlantTelemetry({ database: database.kind, serviceVersion, log });
}

async function openStore(
  database: Database,
  { deletionsKeptHours }: Configuration,
  options: NonNullable<Parameters<typeof openPlantStore>[1]>,
): Promise<PlantStore> {
  const { plantsWhenCreated } = options;
  if (database.kind === "memory") return openMemoryStore(new Set(plantsWhenCreated && idsOf(plantsWhenCreated)));
  return await openPlantStore(database, { ...options, deletionsKeptMs: deletionsKeptHours * hourMs });
}

const hourMs = 3_600_000;

function* idsOf({ first, last }: IdRange): Iterable<bigint> {
  for (let id = first; id <= last; id += 1n) yield id;
}
