import type { DestinationStream } from "pino";
import {
  type MetadataEndpoint,
  openTokenVerifier,
  protectedResourceMetadata,
  type TokenVerifier,
} from "../auth/index.ts";
import { type Log, openLog } from "../operations/log.ts";
import { type IdRange, openMemoryStore, openPlantStore, type PlantStore } from "../plants/index.ts";
import { ConfigurationError } from "./configuration-error.ts";
import { createPlantServer, deleteScope, type ListeningAddress } from "./create-plant-server.ts";
import { tokenSourcesOf } from "./credential-settings.ts";
import { requestPathPrefixOf } from "./public-url.ts";
import type { Configuration } from "./settings.ts";
import { followTlsFiles, readTlsFiles, type TlsFiles } from "./tls-files.ts";

/** A server that was started from a configuration. */
export interface StartedServer extends ListeningAddress {
  /** Stops accepting, finishes what was taken, and lets go of the store and the files. */
  drain(): Promise<void>;
  /** Reads files of credentials, keys and certificates again at once, which are otherwise read again when they change. */
  reload(): Promise<void>;
}

/** How a start differs from the usual one. */
export interface StartOptions {
  /** The plants of a store that this start creates; one that was there is never filled, also when it has become empty. */
  readonly plantsWhenCreated?: IdRange;
  /** Whether other processes share the port. */
  readonly reusePort?: boolean;
  /** Where the lines of the log go; standard error when left out. */
  readonly logLines?: DestinationStream;
}

/**
 * Opens all that is configured and serves it.
 *
 * @throws ConfigurationError when a configured file holds what it should not
 * @throws StoreOpenError, and the system's error when the address cannot be listened on
 */
export async function startServer(configuration: Configuration, options: StartOptions = {}): Promise<StartedServer> {
  const { host, port, http2 } = configuration;
  const log = openLog(configuration.logLevel, options.logLines);
  const tlsFiles = tlsFilesOf(configuration);
  const tls = tlsFiles && (await readTlsFiles(tlsFiles));
  await using opened = new AsyncDisposableStack();
  const auth = await openVerifier(configuration, log);
  if (auth === undefined) log.warn("no credentials are configured: every call will be refused");
  else opened.defer(async () => auth.close?.());
  const store = await openStore(configuration, options.plantsWhenCreated);
  opened.defer(() => store.close());
  const server = createPlantServer({
    store,
    auth,
    log,
    // Of the same stream, so that lines keep their order; at a level of its own, so that quiet logs keep the trail.
    auditLog: configuration.audit === "always" && log.level !== "silent" ? log.child({}, { level: "info" }) : undefined,
    requestPathPrefix: requestPathPrefixOf(configuration.publicUrl),
    description: { open: configuration.docs === "open", baseUrl: configuration.publicUrl?.href.replace(/\/+$/, "") },
    cors: configuration.corsOrigins && { origins: configuration.corsOrigins },
    resourceMetadata: resourceMetadataOf(configuration),
    drainDelayMs: configuration.drainDelayMs,
    drainTimeoutMs: configuration.drainTimeoutMs,
  });
  const address = await server.listen({
    host,
    port,
    http2,
    reusePort: options.reusePort ?? false,
    ...(tls && { tls }),
  });
  log.info({ pid: process.pid, ...address }, "listening");
  const certificate =
    tlsFiles && tls && followTlsFiles(tlsFiles, tls, (material) => server.setSecureContext(material), log);
  opened.defer(async () => certificate?.close());
  const toClose = opened.move();
  return {
    ...address,
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

/** Waits until the log is written, but not for a reader who takes nothing. */
async function flush(log: Log): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, flushTimeoutMs);
  log.flush(() => resolve());
  await promise;
  clearTimeout(timer);
}

// A second: whoever reads takes the lines of a drain in far less.
const flushTimeoutMs = 1000;

function tlsFilesOf({ tlsCertFile, tlsKeyFile }: Configuration): TlsFiles | undefined {
  if (tlsCertFile === undefined || tlsKeyFile === undefined) return undefined;
  return { certFile: tlsCertFile, keyFile: tlsKeyFile };
}

async function openVerifier(configuration: Configuration, log: Log): Promise<TokenVerifier | undefined> {
  const sources = tokenSourcesOf(configuration);
  if (sources === undefined) return undefined;
  const verifier = await openTokenVerifier(sources, log);
  if (verifier.kind === "value") return verifier.value;
  throw new ConfigurationError(verifier.problems);
}

function resourceMetadataOf({ publicUrl, jwtIssuers, providerScopes }: Configuration): MetadataEndpoint | undefined {
  if (publicUrl === undefined) return undefined;
  const scopes = providerScopes === "demanded" ? [deleteScope] : [];
  return protectedResourceMetadata({ publicUrl, issuers: jwtIssuers ?? [], scopes });
}

async function openStore(
  { database, deletionsKeptHours }: Configuration,
  plantsWhenCreated: IdRange | undefined,
): Promise<PlantStore> {
  if (database.kind === "memory") return openMemoryStore(new Set(plantsWhenCreated && idsOf(plantsWhenCreated)));
  const deletionsKeptMs = deletionsKeptHours * hourMs;
  return await openPlantStore(database, { deletionsKeptMs, ...(plantsWhenCreated && { plantsWhenCreated }) });
}

const hourMs = 3_600_000;

function* idsOf({ first, last }: IdRange): Iterable<bigint> {
  for (let id = first; id <= last; id += 1n) yield id;
}
