import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WaterBedRequestSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { Endpoint, GatewayOptions } from "../../../src/gateway/index.ts";
import { type Field, fieldValue, type HttpRequest, type HttpVersion } from "../../support/exchange.ts";
import {
  getReadingProcedure,
  startGreenhouse,
  type TestGreenhouse,
  waterBedProcedure,
} from "../../support/greenhouse.ts";
import { readOutcome } from "../../support/outcome.ts";
import { exchange, rpcRequest, wireFormats } from "../../support/wire-format.ts";

const empty = Buffer.alloc(0);
const both: readonly HttpVersion[] = ["1.1", "2"];

function rpc(format: keyof typeof wireFormats, procedure: string, body: Uint8Array = empty): HttpRequest {
  return rpcRequest(wireFormats[format], body, [], procedure);
}

function get(path: string): HttpRequest {
  return { httpMethod: "GET", path, header: [] };
}

// A fault of the program around the gateway: it costs the request its answer, and nobody else anything.
describe("a refusal that cannot be written", () => {
  const unwritable = [{ desc: WaterBedRequestSchema, value: { liters: 1.5 } }];
  const refuse = (): never => {
    throw new ConnectError("not you", Code.PermissionDenied, undefined, unwritable);
  };
  const connectCall = rpc("connect-json", waterBedProcedure, Buffer.from("{}"));
  test.each<{ name: string; request: HttpRequest; options: Partial<GatewayOptions> }>([
    { name: "of admit", request: connectCall, options: { admit: refuse } },
    { name: "of admit, later", request: connectCall, options: { admit: async () => refuse() } },
    {
      name: "of nothing that is there",
      request: get("/nothing"),
      options: {
        rest: {
          errorRecord: () => {
            throw new TypeError("no record");
          },
        },
      },
    },
  ])("$name ends its request alone", async ({ request, options }) => {
    await using greenhouse = await startGreenhouse({}, options);
    for (const version of both) {
      const before = greenhouse.answers.length;
      await expect(exchange(greenhouse.address, version, request)).rejects.toThrow();
      expect(await greenhouse.answered(before + 1)).toMatchObject({ httpStatus: 0 });
    }
  });

  test("is no endpoint that throws: that is answered as a fault", async () => {
    const page: Endpoint = {
      path: "/page",
      open: true,
      answer: () => {
        throw new TypeError("secret");
      },
    };
    await using greenhouse = await startGreenhouse({}, { endpoints: [page] });
    for (const version of both) {
      const { httpStatus, body } = await exchange(greenhouse.address, version, get("/page"));
      expect(httpStatus).toBe(500);
      expect(String(body)).not.toContain("secret");
    }
  });
});

describe("CORS", () => {
  const origin: Field = ["origin", "https://shop.example"];
  let greenhouse: TestGreenhouse;
  let asked = 0;
  beforeAll(async () => {
    greenhouse = await startGreenhouse(
      { waterBed: () => ({}), getReading: () => ({}) },
      {
        cors: { origins: ["https://shop.example"] },
        admit: ({ header }) => {
          asked += 1;
          if (header.get("x-refuse") !== null) throw new ConnectError("no", Code.Unauthenticated);
        },
      },
    );
  });
  afterAll(() => greenhouse[Symbol.asyncDispose]());

  const calls: readonly { name: string; request: HttpRequest }[] = [
    { name: "gRPC-Web", request: rpc("grpc-web", waterBedProcedure) },
    { name: "gRPC-Web in text", request: rpc("grpc-web-text", waterBedProcedure) },
    { name: "Connect", request: rpc("connect-json", waterBedProcedure, Buffer.from("{}")) },
    { name: "Connect by GET", request: get(`${getReadingProcedure}?encoding=json&message=%7B%7D`) },
    { name: "REST", request: get("/sensors/s/reading") },
    { name: "a path that is not there", request: get("/nothing") },
  ];

  test.each(calls)("lets a page of its origin read the answer of $name, and of its refusal", async ({ request }) => {
    for (const version of both) {
      for (const more of [[], [["x-refuse", "1"] as const]]) {
        const header = [...request.header, origin, ...more];
        const answer = await exchange(greenhouse.address, version, { ...request, header });
        expect(fieldValue(answer.header, "access-control-allow-origin")).toBe("https://shop.example");
        expect(fieldValue(answer.header, "access-control-expose-headers")).toMatch(/grpc-status/i);
        expect(fieldValue(answer.header, "vary")).toMatch(/origin/);
      }
    }
  });

  test.each(calls)("has no page of another origin read the answer of $name", async ({ request }) => {
    const header = [...request.header, ["origin", "https://other.example"] as const];
    const answer = await exchange(greenhouse.address, "1.1", { ...request, header });
    expect(fieldValue(answer.header, "access-control-allow-origin")).toBeUndefined();
  });

  test.each(calls)("answers the preflight of $name without asking admit", async ({ request }) => {
    asked = 0;
    for (const version of both) {
      const header: Field[] = [origin, ["access-control-request-method", request.httpMethod], ["x-refuse", "1"]];
      const answer = await exchange(greenhouse.address, version, { httpMethod: "OPTIONS", path: request.path, header });
      expect(answer).toMatchObject({ httpStatus: 204, body: empty });
      expect(fieldValue(answer.header, "access-control-allow-origin")).toBe("https://shop.example");
      expect(fieldValue(answer.header, "access-control-allow-headers")).toMatch(/authorization/i);
      expect(fieldValue(answer.header, "access-control-allow-headers")).toMatch(/connect-protocol-version/i);
      expect(fieldValue(answer.header, "access-control-allow-headers")).toMatch(/x-grpc-web/i);
    }
    expect(asked).toBe(0);
  });
});

test("a call is answered in gRPC's words when nothing is there", async () => {
  await using greenhouse = await startGreenhouse({});
  const answer = await exchange(greenhouse.address, "2", rpc("grpc", "/a.B/C"));
  expect(readOutcome(wireFormats.grpc, answer).code).toBe(Code.Unimplemented);
});
