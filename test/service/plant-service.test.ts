import { Code, type ContextValues, createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { type Principal, principalKey } from "@protoport/auth";
import { requestIdKey } from "@protoport/telemetry/logs";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { openMemoryStore } from "../../src/stores/queue/memory-store.ts";
import { createPlantService } from "../../src/service/plant-service.ts";
import type { DeleteCall, PlantStore } from "../../src/service/plant-store.ts";
import { recordCalls } from "../support/plants/recorded-calls.ts";

/**
 * Returns a client for the service on a Connect server in this process. An interceptor sets the caller and request id.
 */
function clientOf(store: PlantStore, setValues: (context: ContextValues) => unknown = () => undefined) {
  const transport = createRouterTransport((router) => router.service(PlantService, createPlantService(store)), {
    router: {
      interceptors: [
        (next) => (request) => {
          setValues(request.contextValues);
          return next(request);
        },
      ],
    },
  });
  return createClient(PlantService, transport);
}

const ann: Principal = { kind: "principal", subject: "ann", issuer: undefined, scopes: "all" };

describe("the plant service", () => {
  test("deletes the requested plant", async () => {
    const plants = new Set([1n, 2n]);
    await clientOf(openMemoryStore(plants)).deletePlant({ id: 1n });
    expect([...plants]).toEqual([2n]);
  });

  test.each([42n, 0n, -1n, -(2n ** 63n), 2n ** 63n - 1n])(
    "responds NOT_FOUND for the plant %d if it does not exist",
    async (id) => {
      const want = { code: Code.NotFound, rawMessage: `plant ${id} not found` };
      await expect(clientOf(openMemoryStore()).deletePlant({ id })).rejects.toMatchObject(want);
    },
  );

  test("responds INVALID_ARGUMENT without an id, and does not delete plant 0", async () => {
    const plants = new Set([0n]);
    const want = { code: Code.InvalidArgument, rawMessage: "id is missing" };
    await expect(clientOf(openMemoryStore(plants)).deletePlant({})).rejects.toMatchObject(want);
    expect([...plants]).toEqual([0n]);
  });

  test.each<{
    name: string;
    values?: (context: ContextValues) => unknown;
    idempotencyKey?: string;
    received: Omit<DeleteCall, "context">;
  }>(
    // oxfmt-ignore
    [
      { name: "the subject and the request id",
        values: (context) => context.set(principalKey, ann).set(requestIdKey, "r-1"),
        received: { subject: "ann", requestId: "r-1" } },
      { name: "the subject and the unchanged idempotency key", values: (context) => context.set(principalKey, ann),
        idempotencyKey: '"key"', received: { subject: "ann", requestId: "", idempotencyKey: ":key" } },
      { name: "the subject and an idempotency key for its issuer",
        values: (context) => context.set(principalKey, { ...ann, issuer: "https://id.test" }), idempotencyKey: '"key"',
        received: { subject: "ann", requestId: "", idempotencyKey: "L05VQrCau8jJOuBzQT0g8UoQaH3ut4ucT9sAi_KjM1E:key" } },
      { name: "the idempotency key without a principal", idempotencyKey: '"key"',
        received: { subject: "", requestId: "", idempotencyKey: ":key" } },
    ],
  )("passes $name to the store, with the call's signal", async ({ values, idempotencyKey, received }) => {
    const calls: DeleteCall[] = [];
    const store = recordCalls(new Set([1n]), calls);
    const headers = idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey };
    await clientOf(store, values).deletePlant({ id: 1n }, { headers });
    expect(calls).toEqual([{ ...received, context: expect.objectContaining({ signal: expect.any(AbortSignal) }) }]);
  });

  test("refuses a malformed idempotency key, and deletes nothing", async () => {
    const plants = new Set([1n]);
    const call = clientOf(openMemoryStore(plants)).deletePlant({ id: 1n }, { headers: { "idempotency-key": "key" } });
    await expect(call).rejects.toMatchObject({ code: Code.InvalidArgument });
    expect([...plants]).toEqual([1n]);
  });
});
