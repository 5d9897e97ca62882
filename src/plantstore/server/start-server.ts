import type { DestinationStream } from "pino";
import { type ResourceMetadata, createResourceMetadata } from "../../operators/auth/index.ts";
import type { BoundAddress, ListenOptions, TrustedProxiesOptions } from "../../gateway/index.ts";
import { type Log, openLog, openReserveLog } from "../../operators/operations/index.ts";
import { type IdRange, openMemoryStore, openPlantStore, type PlantStore } from "../plants/index.ts";
import type { PlantServerOptions } from "./plant-server-options.ts";
import { createPlantServer } from "./create-plant-server.ts";
import { credentialSourcesOf } from "./credential-settings.ts";
import { openVerifier } from "./open-verifier.ts";
import { requestPathPrefixOf, socketPathOf } from "./setting-readers.ts";
import type { AdminServer } from "./admin-server.ts";
import { askedSignals, isSdkRegistered } from "./opentelemetry-sdk.ts";
import type { PlantTelemetry } from "./plant-telemetry.ts";
import type { AdminAddress } from "./setting-readers.ts";
import type { Configuration } from "./settings.ts";
import type { MetricFamily } from "../../operators/telemetry/index.ts";
import { followTlsFiles, readTlsFiles, tlsFilesOf } from "./tls-files.ts";
import { logUpkeep } from "./log-upkeep.ts";
import { plantScopes } from "./rpc-policy.ts";
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
  /** Whether other processes share the port. */
  readonly reusePort?: boolean;
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
 * @throws ConfigurationError when a configured file has wrong content
 * @throws StoreOpenError, and the error of the system when it cannot listen on the address
 */
export async function startServer(configuration: Configuration, options: StartOptions = {}): Promise<StartedServer> {
  const { logLevel } = configuration;
  const log = openLog(logLevel, options.logLines);
  const trailLevel = configuration.audit === "always" && logLevel !== "silent" ? "info" : logLevel;
  const tlsFiles = tlsFilesOf(configuration);
  const tls = tlsFiles && (await readTlsFiles(tlsFiles));
  await using opened = new AsyncDisposableStack();
  const auth = await openVerifier(configuration, log);
  if (auth === undefined) log.warn("no credentials are configured: every call will be refused");
  else opened.defer(async () => auth.close?.());
  const telemetry = await openTelemetry(configuration, options, log);
  if (telemetry !== undefined) opened.use(telemetry);
  const store = await openStore(configuration, {
    ...(options.plantsWhenCreated && { plantsWhenCreated: options.plantsWhenCreated }),
    onBatch: telemetry?.onBatch,
    onUpkeep: logUpkeep(log),
  });
  opened.defer(() => store.close());
  const watch = watchBreakdown(store, log);
  opened.defer(async () => watch.stop());
  const server = createPlantServer({
    store,
    auth,
    log,
    // The same stream, so that lines stay in order, but its own level, so that a quiet log keeps the audit trail.
    auditLog: log.child({}, { level: trailLevel }),
    deletionLog: openReserveLog(trailLevel, options.logLines),
    ...serverOptionsOf(configuration),
    ...telemetry?.hooks,
  });
  telemetry?.metrics.watch(server, store, auth);
  const { adminAddress } = configuration;
  const admin = telemetry && adminAddress && (await serveMetrics(adminAddress, () => telemetry.metrics.collect(), log));
  if (admin !== undefined) opened.use(admin);
  const { reusePort = false } = options;
  const address = await server.listen({ ...listenOptionsOf(configuration), reusePort, ...(tls && { tls }) });
  // A Unix socket has no port.
  const place = { ...address, port: address.port || undefined };
  log.info({ pid: process.pid, ...place, ...describeServing(configuration) }, "listening");
  const certificate =
    tlsFiles && tls && followTlsFiles(tlsFiles, tls, (material) => server.setSecureContext(material), log);
  opened.defer(async () => certificate?.close());
  telemetry?.metrics.watchCertificate(certificate);
  const toClose = opened.move();
  return {
    ...address,
    admin,
    breakdown: watch.breakdown,
    collectMetrics: () => telemetry?.metrics.collect() ?? [],
    reload: async () => {
      log.info("reloading");
      await Promise.all([auth?.reload?.(), certificate?.reload()]);
    },
    drain: async () => {
      log.info("draining");
      await server.drain();
      await toClose.disposeAsync();
      log.info("stopped");
      await flush(log);
    },
  };
}

/** Returns those options of the server that follow from settings. */
function serverOptionsOf(configuration: Configuration): Omit<PlantServerOptions, "store"> {
  const { corsOrigins, publicUrl, requestIdAnswers, drainDelayMs, drainTimeoutMs } = configuration;
  return {
    requestIdAnswers,
    silentProbes: configuration.probeLines === "off",
    requestPathPrefix: requestPathPrefixOf(publicUrl),
    description: { open: configuration.docs === "open", baseUrl: publicUrl?.href.replace(/\/+$/, "") },
    trustedProxies: trustedProxiesOf(configuration),
    rateLimits: { perPrincipal: configuration.ratePerPrincipal, perAddress: configuration.ratePerAddress },
    cors: corsOrigins && { origins: corsOrigins },
    resourceMetadata: resourceMetadataOf(configuration),
    drainDelayMs,
    drainTimeoutMs,
  };
}

/**
 * Returns the trusted proxies and the fields in which they name their client. A proxy that speaks the PROXY protocol
 * writes no fields: any are the client's own, unless the operator knows better.
 */
function trustedProxiesOf(configuration: Configuration): TrustedProxiesOptions | undefined {
  const { trustedProxies, proxyProtocol, proxyFields } = configuration;
  const fields = proxyFields ?? (proxyProtocol === "on" ? "none" : "x-forwarded");
  return trustedProxies && { addresses: trustedProxies, fields };
}

function listenOptionsOf({ host, port, socketMode, proxyProtocol }: Configuration): ListenOptions {
  const path = socketPathOf(host);
  const place = path === undefined ? { host, port } : { path, socketMode };
  return { ...place, proxyProtocol: proxyProtocol === "on" };
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

/**
 * Serves `/metrics` on an address of its own, and logs where.
 *
 * @param collect - returns the metrics as they are now
 * @throws Error naming the address when it cannot be listened on
 */
export async function serveMetrics(
  at: AdminAddress,
  collect: () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>,
  log: Pick<Log, "info">,
): Promise<AdminServer> {
  const { openAdminServer } = await import("./admin-server.ts");
  const admin = await openAdminServer(at, collect);
  log.info({ address: admin.address, port: admin.port }, "metrics are served");
  return admin;
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

/** Waits until the log is written, unless its reader has stopped reading. */
async function flush(log: Log): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, flushTimeoutMs);
  log.flush(() => resolve());
  await promise;
  clearTimeout(timer);
}

// A second: a reader takes the lines of a drain in far less.
const flushTimeoutMs = 1000;

function resourceMetadataOf({ publicUrl, jwtIssuers, providerScopes }: Configuration): ResourceMetadata | undefined {
  if (publicUrl === undefined) return undefined;
  const scopes = providerScopes === "demanded" ? plantScopes : [];
  return createResourceMetadata({ publicUrl, issuers: jwtIssuers ?? [], scopes });
}

async function openStore(
  { database, deletionsKeptHours }: Configuration,
  options: Parameters<typeof openPlantStore>[1] = {},
): Promise<PlantStore> {
  const { plantsWhenCreated } = options;
  if (database.kind === "memory") return openMemoryStore(new Set(plantsWhenCreated && idsOf(plantsWhenCreated)));
  return await openPlantStore(database, { ...options, deletionsKeptMs: deletionsKeptHours * hourMs });
}

const hourMs = 3_600_000;

function* idsOf({ first, last }: IdRange): Iterable<bigint> {
  for (let id = first; id <= last; id += 1n) yield id;
}
