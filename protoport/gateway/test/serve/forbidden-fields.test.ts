import { createServer } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type AdmitRequest, type Endpoint, type GatewayOptions } from "../../src/index.ts";
// oxfmt-ignore
import { exchangeHttp2, type Field, fieldValue, type HttpRequest, listenOnLoopback, openEveryTransport, rowsFor,
  transportNames } from "@protoport/testing";

// Response header fields that HTTP forbids: the response is sent without the field, and the reason is reported.

const faults: (readonly unknown[])[] = [];
const routes: GatewayOptions["routes"] = (router) =>
  router.service(GreenhouseService, {
    waterBed: ({ bed }) => {
      if (bed === 0n) throw new ConnectError("no bed", Code.NotFound);
      return {};
    },
  });
const onFault: GatewayOptions["onFault"] = (error, _what, request, errorCode) => {
  faults.push([error instanceof Error && error.message, request?.procedure, errorCode]);
};

/** The values that hooks add, by the index that a request sends. */
const added: readonly (readonly [name: string, value: string])[] = [
  ["x-user", "李"],
  ["x-user", "a\nx-admin: 1"],
  ["x-user", "a\r"],
  ["x-user", "a\0"],
  ["x-user", "\u007f"],
  ["x user", "a"],
  ["", "a"],
  [":x", "a"],
  [":status", "201"],
];

function add(hook: string): (request: AdmitRequest) => void {
  return (request) => {
    const [name = "", value = ""] = added[Number(request.header.get("x-added"))] ?? [];
    if (request.header.get("x-hook") === hook) request.addResponseHeader(name, value);
    request.addResponseHeader(`x-${hook}`, Reflect.apply(Object, undefined, [5]));
  };
}

/** Responds with the field whose index a request sends. A program in JavaScript may pass `undefined`. */
const endpoint: Endpoint = {
  path: "/page",
  open: true,
  handle: ({ header }) => {
    const [name = "", value] = added[Number(header.get("x-added"))] ?? ["x-user"];
    const fields = Reflect.apply(Object.fromEntries, Object, [
      [
        ["x-kept", "1"],
        [name, value],
      ],
    ]);
    return { httpStatus: 200, header: fields, body: "page" };
  },
};

const hooks = { onRequest: add("request"), admit: add("admit"), onError: add("error") };
const gateway = await openEveryTransport({ routes, endpoints: [endpoint], onFault, ...hooks });
afterAll(async () => await gateway[Symbol.asyncDispose]());

beforeEach(() => {
  faults.length = 0;
});

function water(bed: number, ...header: readonly Field[]): HttpRequest {
  return { httpMethod: "POST", path: `/beds/${bed}:water`, header, body: Buffer.from("{}") };
}

const cases = added.flatMap(([name, value], at) =>
  ["request", "admit", "error"].map((hook) => ({ name, shown: JSON.stringify([name, value]), at, hook })),
);

describe.each(transportNames)("over %s", (transport) => {
  const endpointCases = [...added, ["x-user", undefined] as const].map(([name, value], at) => {
    return { name, shown: JSON.stringify([name, value]), at };
  });
  test.each(rowsFor(transport, transportNames, endpointCases))(
    "the field $shown of an endpoint is reported instead of sent",
    async ({ name, at }) => {
      const request = { httpMethod: "GET", path: "/page", header: [["x-added", String(at)]] as const };
      const { httpStatus, header, body } = await gateway.ask(transport, request);
      expect([httpStatus, fieldValue(header, "x-kept"), String(body)]).toEqual([200, "1", "page"]);
      expect([fieldValue(header, name), fieldValue(header, "x-admin")]).toEqual([undefined, undefined]);
      const reason = expect.stringContaining(`header${name === "x-user" ? "" : " name"} "${name}"`);
      expect(faults).toEqual([[reason, undefined, "ERR_HEADER_FIELD"]]);
    },
  );

  test.each(rowsFor(transport, transportNames, cases))(
    "the field $shown of the hook $hook is reported instead of sent",
    async ({ name, at, hook }) => {
      const bed = hook === "error" ? 0 : 7;
      const request = water(bed, ["x-hook", hook], ["x-added", String(at)]);
      const { httpStatus, header } = await gateway.ask(transport, request);
      expect(httpStatus).toBe(bed === 0 ? 404 : 200);
      expect([fieldValue(header, name), fieldValue(header, "x-admin")]).toEqual([undefined, undefined]);
      // Other fields of the hook are sent, even if a program in JavaScript passes a number.
      expect(fieldValue(header, `x-${hook}`)).toBe("5");
      const reason = expect.stringContaining(`header${name === "x-user" ? "" : " name"} "${name}"`);
      expect(faults).toEqual([[reason, "/greenhouse.v1.GreenhouseService/WaterBed", "ERR_HEADER_FIELD"]]);
    },
  );
});

test.each(["李", "a\nb", "a\0b"])("a field %j that an application sets on node:http2 is not sent", async (value) => {
  const { handler } = createGateway({ routes, onFault });
  const server = createServer((request, response) => {
    response.setHeader("x-user", value);
    response.setHeader("x-kept", ["a", "b"]);
    handler(request, response);
  });
  const { hostname, port } = new URL(await listenOnLoopback(server));
  const { httpStatus, header } = await exchangeHttp2({ address: hostname, port: Number(port) }, water(7));
  server.close();
  expect([httpStatus, fieldValue(header, "x-user"), fieldValue(header, "x-kept")]).toEqual([200, undefined, "a, b"]);
  expect(faults).toEqual([[expect.stringContaining('header "x-user"'), undefined, "ERR_HEADER_FIELD"]]);
});

test.each(["allowedHeaders", "exposedHeaders"])("cors.%s refuses a name that no field has", (option) => {
  const create = (): unknown => createGateway({ routes, cors: { origins: "*", [option]: ["x-ok", "x-李"] } });
  expect(create).toThrow('cors.allowedHeaders and cors.exposedHeaders must contain field names, got "x-李"');
});
