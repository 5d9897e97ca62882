import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Field } from "../../../testing/src/carriers/exchange.ts";
import { carrierNames, type EveryCarrier, openEveryCarrier } from "../../../testing/src/gateway/every-carrier.ts";
import { kitchenSinkOptions } from "../../../testing/src/gateway/kitchen-sink.ts";

// The option ignoreBodies of rest.service.

describe("with ignoreBodies, the body of a request", () => {
  let plain: EveryCarrier;
  let gated: EveryCarrier;

  beforeAll(async () => {
    const options = { ...kitchenSinkOptions, rest: { service: () => ({ ignoreBodies: true }) } };
    plain = await openEveryCarrier(options);
    gated = await openEveryCarrier({ ...options, requestGate: () => undefined });
  });

  afterAll(async () => {
    await plain[Symbol.asyncDispose]();
    await gated[Symbol.asyncDispose]();
  });

  describe.each(carrierNames)("%s", (carrier) => {
    test.each<{ name: string; header: readonly Field[]; body: string }>([
      {
        name: "JSON that sets the field of the path",
        header: [["content-type", "application/json"]],
        body: '{"f_int64":"9"}',
      },
      { name: "text", header: [["content-type", "text/plain"]], body: "{{{" },
      { name: "an unknown content coding", header: [["content-encoding", "snappy"]], body: "x" },
      { name: "no content type", header: [], body: "f_int64=9" },
    ])("with $name is ignored if the rule has none", async ({ header, body }) => {
      for (const gateway of [plain, gated]) {
        const request = { httpMethod: "GET", path: "/v1/int64/7", header, body: Buffer.from(body) };
        const deleting = { ...request, httpMethod: "DELETE", path: "/v1/sinks/7" };
        // Fetch does not support a body with GET.
        if (carrier !== "Fetch") {
          const { httpStatus, body: response } = await gateway.ask(carrier, request);
          expect([httpStatus, String(response)]).toEqual([200, '{"rpc":"Types","sink":{"fInt64":"7"}}']);
        }
        expect((await gateway.ask(carrier, deleting)).httpStatus).toBe(200);
      }
    });

    test("is read if the rule has one", async () => {
      const body = Buffer.from('{"nested":1}');
      const response = await plain.ask(carrier, { httpMethod: "POST", path: "/v1/sinks", header: [], body });
      expect(response.httpStatus).toBe(400);
    });
  });

  test("is not read if the rule has none, even if large", async () => {
    const body = Buffer.alloc(5 * 1024 * 1024);
    const request = { httpMethod: "DELETE", path: "/v1/sinks/7", header: [], body };
    for (const gateway of [plain, gated]) {
      expect((await gateway.ask("the engine's HTTP/2", request)).httpStatus).toBe(200);
      expect((await gateway.ask("the engine's HTTP/1.1", request)).httpStatus).toBe(200);
    }
  });
});
