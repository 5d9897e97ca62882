import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import {
  type MetadataEndpoint,
  openTokenVerifier,
  protectedResourceMetadata,
  type TokenVerifier,
} from "../auth/index.ts";
import { type Log, openLog } from "../operations/log.ts";
import { openMemoryStore, openSqliteStore, type PlantStore } from "../plants/index.ts";
import { createPlantServer, deleteScope, type ListeningAddress } from "./create-plant-server.ts";
import { tokenSourcesOf } from "./credential-settings.ts";
import type { Database } from "./database-url.ts";
import { requestPathPrefixOf } from "./public-url.ts";
import type { Configuration } from "./settings.ts";

/** Ids from first to last, both included. */
export interface IdRange {
  readonly first: bigint;
  readonly last: bigint;
}

/** A server that was started from a configuration. */
export interface StartedServer extends ListeningAddress {
  /** Stops accepting, finishes what was taken, and lets go of the store and the files. */
  drain(): Promise<void>;
  /** Reads files of credentials and keys again at once, which are otherwise read again when they change. */
  reload(): Promise<void>;
}

/** What was configured cannot be worked with although each setting was well formed; one sentence each. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("; "));
    this.problems = problems;
  }
}

/**
 * Opens all that is configured and serves it.
 *
 * @param plantsWhenCreated - the plants of a store that this start creates; a store that was there is
 * never filled, also when it has become empty
 * @throws ConfigurationError when a configured file holds what it should not
 * @throws StoreOpenError, and the system's error when the address cannot be listened on
 */
export async function startServer(configuration: Configuration, plantsWhenCreated?: IdRange): Promise<StartedServer> {
  const { host, port } = configuration;
  const log = openLog(configuration.logLevel);
  const tls = await readTls(configuration);
  await using opened = new AsyncDisposableStack();
  const auth = await openVerifier(configuration, log);
  if (auth === undefined) log.warn("no credentials are configured: every call will be refused");
  else opened.defer(async () => auth.close?.());
  const store = await openStore(configuration.database, plantsWhenCreated);
  opened.defer(() => store.close());
  const server = createPlantServer({
    store,
    auth,
    log,
    requestPathPrefix: requestPathPrefixOf(configuration.publicUrl),
    resourceMetadata: resourceMetadataOf(configuration),
    drainDelayMs: configuration.drainDelayMs,
    drainTimeoutMs: configuration.drainTimeoutMs,
  });
  const address = await server.listen({ host, port, ...tls });
  log.info(address, "listening");
  const toClose = opened.move();
  return {
    ...address,
    reload: async () => {
      log.info("reloading");
      await auth?.reload?.();
    },
    drain: async () => {
      log.info("draining");
      await server.drain();
      await toClose.disposeAsync();
      log.info("stopped");
      log.flush();
    },
  };
}

interface Tls {
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer };
}

async function readTls({ tlsCertFile, tlsKeyFile }: Configuration): Promise<Tls> {
  if (tlsCertFile === undefined || tlsKeyFile === undefined) return {};
  const [cert, key] = await Promise.all([readFile(tlsCertFile), readFile(tlsKeyFile)]);
  try {
    createSecureContext({ cert, key });
  } catch (reason) {
    const why = reason instanceof Error ? reason.message : String(reason);
    throw new ConfigurationError([`TLS_CERT_FILE and TLS_KEY_FILE do not make a TLS server: ${why}`]);
  }
  return { tls: { cert, key } };
}

async function openVerifier(configuration: Configuration, log: Log): Promise<TokenVerifier | undefined> {
  const sources = tokenSourcesOf(configuration);
  if (sources === undefined) return undefined;
  const verifier = await openTokenVerifier(sources, log);
  if (verifier.kind === "value") return verifier.value;
  throw new ConfigurationError(verifier.problems);
}

// RFC 9728 puts the document at the root of the host, which is not ours where the base URL has a path.
function resourceMetadataOf({ publicUrl, jwtIssuers, providerScopes }: Configuration): MetadataEndpoint | undefined {
  if (publicUrl === undefined || requestPathPrefixOf(publicUrl) !== "") return undefined;
  const scopes = providerScopes === "demanded" ? [deleteScope] : [];
  return protectedResourceMetadata({ publicUrl, issuers: jwtIssuers ?? [], scopes });
}

async function openStore(database: Database, plantsWhenCreated: IdRange | undefined): Promise<PlantStore> {
  if (database.kind === "memory") return openMemoryStore(new Set(plantsWhenCreated && idsOf(plantsWhenCreated)));
  return await openSqliteStore({ file: database.path, ...(plantsWhenCreated && { plantsWhenCreated }) });
}

function* idsOf({ first, last }: IdRange): Iterable<bigint> {
  for (let id = first; id <= last; id += 1n) yield id;
}
