import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import { Metadata, type sendUnaryData, type ServerUnaryCall, type ServiceDefinition, status } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Readiness } from "@protoport/gateway/health";
import { addGrpcJsService, type GrpcJsOptions } from "@protoport/grpc-handlers/grpc-js";
import { silentLog } from "@protoport/telemetry/logs";
import { descriptorSetOf } from "../../../../protoport/testing/src/gateway/descriptor-set.ts";
// oxfmt-ignore
import { createTestGateway, KeptConnections, listenForTests, type Listening, projectFolder, wires
} from "@protoport/testing";
import { PlantService } from "../../../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { PlantServiceService } from "../../../../src/gen/grpc-js/plantstore/v1/plant_service.ts";
import { idMissing, plantNotFound } from "../../../../src/service/errors.ts";
import { readIdempotencyKey, scopeIdempotencyKey } from "../../../../src/service/idempotency-key.ts";
import { createPlantGatewayOptions, type PlantStore } from "../../../../src/service/index.ts";
import { openSituationStore, secretText } from "../../../support/plants/situation-store.ts";
import { testVerifier } from "../../../support/server/plant-server.ts";
import { actualResponse, expectedResponse } from "../../../contract/expected-response.ts";
import { situations } from "../../../contract/situations.ts";

// The plant store with a grpc-js handler responds like the plant store with a Connect handler.

/** A request as ts-proto and proto-loader return it. */
type DeleteRequest = { readonly id?: bigint | { toString(): string } | null };

/** The plant store's implementation, for grpc-js. */
function createHandlers(store: PlantStore) {
  return {
    deletePlant(call: ServerUnaryCall<DeleteRequest, object>, callback: sendUnaryData<object>): void {
      const canceller = new AbortController();
      call.on("cancelled", () => canceller.abort(new Error("the call was cancelled")));
      deletePlant(store, call, canceller.signal).then(
        () => callback(null, {}),
        (error: unknown) => callback(toStatus(error)),
      );
    },
  };
}

async function deletePlant(
  store: PlantStore,
  { request: { id }, metadata }: ServerUnaryCall<DeleteRequest, object>,
  signal: AbortSignal,
): Promise<void> {
  if (id === undefined || id === null) throw idMissing();
  const plant = BigInt(String(id));
  const [key] = metadata.get("idempotency-key");
  const idempotencyKey =
    key === undefined ? undefined : scopeIdempotencyKey(readIdempotencyKey(String(key)), undefined);
  const deleted = await store.delete(plant, { subject: "alice", requestId: "", idempotencyKey, context: { signal } });
  if (!deleted) throw plantNotFound(plant);
}

/** Returns a store error as a grpc-js status. Other errors have no code. */
function toStatus(error: unknown): Error | Parameters<sendUnaryData<object>>[0] {
  if (!(error instanceof ConnectError)) return new Error("the store failed", { cause: error });
  const metadata = new Metadata();
  for (const [name, value] of error.metadata) metadata.set(name, value);
  const number: number = error.code;
  const code: status = number;
  return { code, details: error.rawMessage, metadata };
}

const includeDirs = ["proto", "protoport/gateway/proto"].map((folder) => join(projectFolder, folder));
const loaded = loadSync("plantstore/v1/plant_service.proto", { includeDirs });
const testCases = (situations["deletePlant"] ?? [])
  .flatMap((situation) =>
    wires.filter(({ format }) => situation.formats?.includes(format.name) ?? true).map((wire) => ({ situation, wire })),
  )
  .map((testCase, index) => ({ ...testCase, plant: BigInt(index + 1) }));

describe.each<{ name: string; definition: ServiceDefinition; options: GrpcJsOptions; isDirect: boolean }>(
  // oxfmt-ignore
  [
    { name: "a ts-proto definition", definition: PlantServiceService, options: { descriptors: PlantService.file },
      isDirect: true },
    {
      name: "a proto-loader definition",
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of proto-loader allow messages here.
      definition: loaded["plantstore.v1.PlantService"] as ServiceDefinition,
      options: {},
      isDirect: true,
    },
    { name: "Connect interceptors", definition: PlantServiceService,
      options: { descriptors: descriptorSetOf(PlantService.file) }, isDirect: false },
  ],
)("a grpc-js handler with $name", ({ definition, options, isDirect }) => {
  const plants = new Set(testCases.map(({ plant }) => plant));
  const store = openSituationStore(plants);
  const parts = createPlantGatewayOptions({
    store,
    verifier: testVerifier,
    readiness: new Readiness({}),
    log: silentLog,
  });
  const connections = new KeptConnections();
  let server: Listening;
  beforeAll(async () => {
    const gateway = createTestGateway({
      ...parts,
      interceptors: isDirect ? [] : parts.interceptors,
      routes: (router) => void addGrpcJsService(router, definition, createHandlers(store), options),
    });
    server = await listenForTests(gateway);
  });
  afterAll(async () => {
    connections[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
    await store.close();
  });

  test.each(testCases)("$situation.name over $wire.name", async ({ wire, situation, plant }) => {
    const { format, httpVersion } = wire;
    const response = await connections.exchange(server.address, httpVersion, situation.request(format, plant));
    expect(actualResponse(format, response)).toStrictEqual(expectedResponse(format, situation.want));
    expect(JSON.stringify([response.header, response.body.toString("latin1")])).not.toContain(secretText);
    expect(plants.has(plant)).toBe(situation.want.code !== "ok");
  });
});
