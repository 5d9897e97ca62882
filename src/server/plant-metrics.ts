import { Code } from "@connectrpc/connect";
import { credentialRefusalOf, type TokenVerifier } from "@protoport/auth";
import type { FileReload, WatchedFile } from "@protoport/auth/inputs";
import { type CompletedRequest, errorCodeOf } from "@protoport/gateway";
import { type OnBatch, promisesOf, type StoreLocation } from "../stores/index.ts";
import type { PlantErrorCode, PlantStore } from "../service/index.ts";
import {
  type Attributes,
  createRequestMetrics,
  durationBounds,
  measureGateway,
  measureProcess,
  measureReadiness,
  type MetricFamily,
  Metrics,
} from "@protoport/telemetry/metrics";
import type { KeyPair } from "@protoport/command-line";
import type { Certificate } from "./certificate.ts";
import type { PlantServer } from "./create-plant-server.ts";

/** Returns the attributes of a commit's metrics and spans. */
export function commitAttributes(database: StoreLocation["kind"]): Attributes {
  return {
    "db.system.name": promisesOf(database).system,
    "db.operation.name": "DELETE",
    "db.collection.name": "plants",
  };
}

/** A plant server's metrics. Create the metrics before the store and the gateway, and pass the hooks to both. */
export class PlantMetrics implements Disposable {
  readonly onResponse: (request: CompletedRequest) => void;
  readonly onBatch: OnBatch;
  readonly #metrics = new Metrics();
  readonly #process: Disposable;

  constructor(database: StoreLocation["kind"]) {
    this.onResponse = createRequestMetrics(this.#metrics, { refusalOf });
    this.onBatch = countBatches(this.#metrics, database);
    this.#process = measureProcess(this.#metrics);
  }

  /** Adds metrics whose values are read from the server, the store and the files at each collection. */
  watch(
    server: PlantServer,
    store: PlantStore,
    verifier: TokenVerifier | undefined,
    certificate: Certificate | undefined,
    databaseFiles: readonly WatchedFile[],
  ): void {
    const metrics = this.#metrics;
    measureGateway(metrics, server);
    measureReadiness(metrics, server.readiness);
    measureWaiting(metrics, store);
    measureConnections(metrics, store);
    measureFile(metrics, store);
    metrics.gauge(
      {
        name: "plantstore.jwks.age",
        unit: "s",
        description: "Time since the last successful fetch of an issuer's keys",
      },
      () =>
        (verifier?.keysFetched ?? []).map(({ issuer, atMs }) => ({
          attributes: { issuer },
          value: (performance.now() - atMs) / 1_000,
        })),
    );
    const addPeriod = (name: string, what: string, read: (pair: KeyPair) => Date): void =>
      metrics.gauge(
        {
          name: `plantstore.tls.certificate.${name}`,
          unit: "s",
          description: `${what} of the TLS certificate, in seconds since 1970`,
        },
        () =>
          certificate === undefined ? [] : [{ attributes: {}, value: read(certificate.current).getTime() / 1_000 }],
      );
    addPeriod("not_before", "Start", ({ validFromDate }) => validFromDate);
    addPeriod("not_after", "Expiry", ({ validToDate }) => validToDate);
    this.#measureReloads(() => [
      ...(verifier?.fileReloads ?? []),
      ...[certificate, ...databaseFiles].flatMap((file) => file?.lastReload ?? []),
    ]);
  }

  #measureReloads(readReloads: () => readonly FileReload[]): void {
    const read = (valueOf: (reload: FileReload) => number) => () =>
      readReloads().map((reload) => ({ attributes: { "file.path": reload.path }, value: valueOf(reload) }));
    this.#metrics.gauge(
      {
        name: "plantstore.file.reload.successful",
        unit: "",
        description: "1 if the last reload of the file succeeded, 0 if it failed",
      },
      read(({ succeeded }) => Number(succeeded)),
    );
    this.#metrics.gauge(
      {
        name: "plantstore.file.reload.last_success",
        unit: "s",
        description: "Time of the last successful reload of the file, in seconds since 1970",
      },
      read(({ lastSuccessMs }) => lastSuccessMs / 1_000),
    );
  }

  /** Adds a metric with the versions of the server and Node.js. */
  addBuildInfo(version: string): void {
    const attributes = { "service.version": version, "process.runtime.version": process.versions.node };
    const description = "Always 1; the labels are the versions of the server and of Node.js";
    this.#metrics.gauge({ name: "plantstore.build.info", unit: "", description }, () => [{ attributes, value: 1 }]);
  }

  collect(): readonly MetricFamily[] {
    return this.#metrics.collect();
  }

  [Symbol.dispose](): void {
    this.#process[Symbol.dispose]();
  }
}

function measureWaiting(metrics: Metrics, store: PlantStore): void {
  metrics.gauge({ name: "plantstore.deletes.waiting", unit: "{delete}", description: "Queued deletes" }, () => {
    const { forBatch = 0, forLock = 0 } = store.waiting ?? {};
    return [
      { attributes: { "plantstore.wait.reason": "batch" }, value: forBatch },
      { attributes: { "plantstore.wait.reason": "lock" }, value: forLock },
    ];
  });
  const description = "Limit of deletes that wait for a batch";
  metrics.gauge({ name: "plantstore.deletes.waiting.limit", unit: "{delete}", description }, () =>
    store.waiting === undefined ? [] : [{ attributes: {}, value: store.waiting.maxForBatch }],
  );
}

function measureConnections(metrics: Metrics, store: PlantStore): void {
  const description = "Connections to the database server";
  metrics.gauge({ name: "db.client.connection.count", unit: "{connection}", description }, () => {
    if (store.connections === undefined) return [];
    const { used, idle } = store.connections;
    const pool = { "db.client.connection.pool.name": "plants" };
    return [
      { attributes: { ...pool, "db.client.connection.state": "used" }, value: used },
      { attributes: { ...pool, "db.client.connection.state": "idle" }, value: idle },
    ];
  });
}

function measureFile(metrics: Metrics, store: PlantStore): void {
  const description = "1 while a second name, such as a hard link, leads to the SQLite file";
  metrics.gauge({ name: "plantstore.sqlite.second_name", unit: "", description }, () =>
    store.file === undefined ? [] : [{ attributes: {}, value: Number(store.file.hasSecondName) }],
  );
  const stalled = "1 while the write-ahead log of the SQLite file has not been copied into the file for a minute";
  metrics.gauge({ name: "plantstore.sqlite.checkpoints_stalled", unit: "", description: stalled }, () =>
    store.file === undefined ? [] : [{ attributes: {}, value: Number(store.file.areCheckpointsStalled) }],
  );
}

/** Upper bounds of the histogram for batch sizes. Every store limits a batch to 1,024 deletes. */
const batchSizeBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];

function countBatches(metrics: Metrics, database: StoreLocation["kind"]): OnBatch {
  const durations = metrics.histogram(
    {
      name: "db.client.operation.duration",
      unit: "s",
      description: "Duration of the commit of a batch of deletes, including retries",
    },
    durationBounds,
  );
  const sizes = metrics.histogram(
    { name: "plantstore.delete.batch.size", unit: "{delete}", description: "Deletes per batch" },
    batchSizeBounds,
  );
  const attributes = commitAttributes(database);
  const succeeded = durations.with(attributes);
  const failedSeries = durations.with({ ...attributes, "error.type": "_OTHER" });
  const sizeSeries = sizes.with({});
  return ({ length }) => {
    const startMs = performance.now();
    sizeSeries.record(length);
    return (error) => (error === undefined ? succeeded : failedSeries).record((performance.now() - startMs) / 1_000);
  };
}

const protectedCode: PlantErrorCode = "ERR_PLANT_PROTECTED";

// Returns why a request was refused. `plant_protected` means that the database does not allow the deletion.
// `resource_exhausted` means that the message is too large, the rate of calls is too high, or the queue is full.
function refusalOf({ error, procedure, httpRoute }: CompletedRequest): string | undefined {
  const credential = credentialRefusalOf(error);
  if (credential !== undefined) return credential.kind;
  if (error?.code === Code.ResourceExhausted) return "resource_exhausted";
  if (error !== undefined && errorCodeOf(error) === protectedCode) return "plant_protected";
  return procedure === undefined && httpRoute === undefined ? "unmatched" : undefined;
}
