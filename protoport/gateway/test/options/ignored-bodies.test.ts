import { afterAll, beforeAll, describe, expect, test } from "vitest";
// oxfmt-ignore
import { type EveryTransport, type Field, kitchenSinkOptions, openEveryTransport, transportNames, waysFor
} from "@protoport/testing";

describe("ignoreBodies", () => {
  let plain: EveryTransport;
  let gated: EveryTransport;

  beforeAll(async () => {
    const options = { ...kitchenSinkOptions, rest: { service: () => ({ ignoreBodies: true }) } };
    plain = await openEveryTransport(options);
    gated = await openEveryTransport({ ...options, requestGate: () => undefined });
  });

  afterAll(async () => {
    await plain[Symbol.asyncDispose]();
    await gated[Symbol.asyncDispose]();
  });

  describe.each(waysFor(transportNames))("%s", (transport) => {
    test.each<{ name: string; header: readonly Field[]; body: string }>([
      { name: "JSON for a path field", header: [["content-type", "application/json"]], body: '{"f_int64":"9"}' },
      { name: "text", header: [["content-type", "text/plain"]], body: "{{{" },
      { name: "an unknown content coding", header: [["content-encoding", "snappy"]], body: "x" },
      { name: "no content type", header: [], body: "f_int64=9" },
    ])("ignores a body with $name if the rule has no body", async ({ header, body }) => {
      for (const gateway of [plain, gated]) {
        const request = { httpMethod: "GET", path: "/v1/int64/7", header, body: Buffer.from(body) };
        const deleting = { ...request, httpMethod: "DELETE", path: "/v1/sinks/7" };
        // Fetch does not support a body with GET.
        if (transport !== "Fetch") {
          const { httpStatus, body: response } = await gateway.ask(transport, request);
          expect([httpStatus, String(response)]).toEqual([200, '{"rpc":"Types","sink":{"fInt64":"7"}}']);
        }
        expect((await gateway.ask(transport, deleting)).httpStatus).toBe(200);
      }
    });

    test("does not ignore a body if the rule has one", async () => {
      const body = Buffer.from('{"nested":1}');
      const response = await plain.ask(transport, { httpMethod: "POST", path: "/v1/sinks", header: [], body });
      expect(response.httpStatus).toBe(400);
    });
  });

  test("ignores a 5 MiB body if the rule has no body", async () => {
    const request = { httpMethod: "DELETE", path: "/v1/sinks/7", header: [], body: Buffer.alloc(5 * 1024 * 1024) };
    for (const gateway of [plain, gated]) {
      expect((await gateway.ask("the engine's HTTP/2", request)).httpStatus).toBe(200);
      expect((await gateway.ask("the engine's HTTP/1.1", request)).httpStatus).toBe(200);
    }
  });
});
