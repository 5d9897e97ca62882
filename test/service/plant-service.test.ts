import { type ContextValues, createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { type Principal, principalKey } from "@protoport/auth";
import { requestIdKey } from "@protoport/telemetry/logs";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
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
});
