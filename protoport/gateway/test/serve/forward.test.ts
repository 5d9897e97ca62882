import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway } from "../../src/index.ts";
import { type Caller, type Reply, toEnvelope } from "../../src/protocols/index.ts";
import { registerForwarder } from "../../src/serve/forwarding-callee.ts";
import { encodeEnvelope, throws, within } from "../../../testing/src/index.ts";

// The methods of greenhouse/v1/greenhouse.proto, forwarded through one interceptor.

/** The envelope of an empty message. */
const empty = toEnvelope(Buffer.alloc(0));
type Method = "getReading" | "watchReadings";

/** Sends a call through an interceptor to a server whose responses cannot be decoded. Returns the response's body. */
async function callThrough(interceptor: Interceptor, method: Method): Promise<string> {
  const { fetch } = createGateway({
    interceptors: [interceptor],
    routes: (router) =>
      registerForwarder(router, GreenhouseService.method[method], {
        memory: "own",
        decodes: false,
        unary: (_caller: Caller, _request: unknown, reply: Reply) => void setImmediate(() => reply.resolve(empty)),
        stream: () => expect.unreachable("the stream is not forwarded"),
        encode: () => empty,
        decode: throws(new ConnectError("the response is malformed", Code.Unavailable)),
      }),
  });
  const isStream = method === "watchReadings";
  const { typeName, method: methods } = GreenhouseService;
  const request = new Request(`http://localhost/${typeName}/${methods[method].name}`, {
    method: "POST",
    headers: { "content-type": isStream ? "application/connect+json" : "application/json" },
    body: isStream ? encodeEnvelope(0, Buffer.from("{}")) : "{}",
  });
  const response = await within(fetch(request), "the response");
  return await within(response.text(), "the end of the response");
}

test("an undecodable response ends an intercepted call with the decoder's error", async () => {
  const body = await callThrough((next) => (request) => next(request), "getReading");
  expect(body).toContain('"code":"unavailable","message":"the response is malformed"');
});

test.each<Method>(["getReading", "watchReadings"])(
  "an interceptor of %s that returns no response ends the call with an error",
  async (method) =>
    expect(await callThrough(() => () => Promise.resolve(JSON.parse("null")), method)).toContain('"code":"internal"'),
);
