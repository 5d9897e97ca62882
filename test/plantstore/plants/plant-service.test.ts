import { Code, type ContextValues, createClient, createContextKey, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { PlantService } from "../../../src/plantstore/gen/es/plantstore/v1/plant_service_pb.ts";
import { createPlantService } from "../../../src/plantstore/plants/plant-service.ts";
import type { DeleteCall, PlantStore } from "../../../src/plantstore/plants/plant-store.ts";
import { openMemoryStore } from "../../../src/plantstore/plants/memory-store.ts";

const principalKey = createContextKey<{ subject: string; issuer?: string } | undefined>(undefined);
const requestIdKey = createContextKey<string | undefined>(undefined);
const idempotencyFieldKey = createContextKey<string | undefined>(undefined);

/** A client of the service in the same process: the interceptor stands for those that know the caller and the header. */
function clientOf(store: PlantStore, values: (context: ContextValues) => unknown = () => undefined) {
  const service = createPlantService({ store, principalKey, requestIdKey, idempotencyFieldKey });
  const transport = createRouterTransport((router) => router.service(PlantService, service), {
    router: {
      interceptors: [
        (next) => (request) => {
          values(request.contextValues);
          return next(request);
        },
      ],
    },
  });
  return createClient(PlantService, transport);
}

describe("the plant service", () => {
  test("deletes the plant that is named", async () => {
    const plants = new Set([1n, 2n]);
    await clientOf(openMemoryStore(plants)).deletePlant({ id: 1n });
    expect([...plants]).toEqual([2n]);
  });

  test.each([42n, 0n, -1n, -(2n ** 63n), 2n ** 63n - 1n])("answers NOT_FOUND when there is no plant %d", async (id) => {
    await expect(clientOf(openMemoryStore()).deletePlant({ id })).rejects.toMatchObject({
      code: Code.NotFound,
      rawMessage: `plant ${id} not found`,
    });
  });

  test("answers INVALID_ARGUMENT when no plant is named, and deletes no plant 0", async () => {
    const plants = new Set([0n]);
    await expect(clientOf(openMemoryStore(plants)).deletePlant({})).rejects.toMatchObject({
      code: Code.InvalidArgument,
      rawMessage: "id is missing",
    });
    expect([...plants]).toEqual([0n]);
  });

  test.each<{ name: string; values: (context: ContextValues) => unknown; received: Omit<DeleteCall, "context"> }>([
    {
      name: "a caller",
      values: (context) => context.set(principalKey, { subject: "ann" }).set(requestIdKey, "r-1"),
      received: { subject: "ann", requestId: "r-1" },
    },
    {
      name: "a caller with a key",
      values: (context) => context.set(principalKey, { subject: "ann" }).set(idempotencyFieldKey, '"key"'),
      received: { subject: "ann", requestId: "", idempotencyKey: ":key" },
    },
    {
      name: "a caller of an issuer, with a key",
      values: (context) =>
        context.set(principalKey, { subject: "ann", issuer: "https://id.test" }).set(idempotencyFieldKey, '"key"'),
      received: { subject: "ann", requestId: "", idempotencyKey: "L05VQrCau8jJOuBzQT0g8UoQaH3ut4ucT9sAi_KjM1E:key" },
    },
    {
      name: "nobody, with a key",
      values: (context) => context.set(idempotencyFieldKey, '"key"'),
      received: { subject: "", requestId: "", idempotencyKey: ":key" },
    },
  ])("tells the store of $name, and hands it the call's signal", async ({ values, received }) => {
    const calls: DeleteCall[] = [];
    const memory = openMemoryStore(new Set([1n]));
    const store: PlantStore = {
      ...memory,
      delete: (id, call) => {
        calls.push(call);
        return memory.delete(id, call);
      },
    };
    await clientOf(store, values).deletePlant({ id: 1n });
    expect(calls).toEqual([{ ...received, context: expect.objectContaining({ signal: expect.any(AbortSignal) }) }]);
  });

  test("refuses a malformed idempotency key, and deletes nothing", async () => {
    const plants = new Set([1n]);
    const client = clientOf(openMemoryStore(plants), (context) => context.set(idempotencyFieldKey, "key"));
    await expect(client.deletePlant({ id: 1n })).rejects.toMatchObject({ code: Code.InvalidArgument });
    expect([...plants]).toEqual([1n]);
  });
});
