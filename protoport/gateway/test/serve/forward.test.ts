import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { encodeEnvelope, throws, within } from "@protoport/testing";
import { createGateway } from "../../src/index.ts";
import { type Caller, type Reply, toEnvelope } from "../../src/protocols/index.ts";
import { registerForwarder } from "../../src/serve/forwarding-callee.ts";

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
  return await within((await within(fetch(request), "the response")).text(), "the end of the response");
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

// An interceptor may send a forwarded call several times. Each attempt listens to the signal of the call.

const unused = (): never => expect.unreachable("only errors are forwarded");

/** Serves a call that ends after `listen` has added its listeners. */
async function endCallAfter(listen: (signal: Caller["signal"]) => void): Promise<void> {
  const { fetch } = createGateway({
    routes: (router) =>
      registerForwarder(router, GreenhouseService.method.getReading, {
        memory: "own",
        decodes: false,
        unary({ signal }: Caller, _request: unknown, reply: Reply) {
          listen(signal);
          reply.reject(new ConnectError("the sensor is not reachable", Code.Unavailable));
        },
        stream: unused,
        encode: unused,
        decode: unused,
      }),
  });
  const url = `http://localhost/${GreenhouseService.typeName}/GetReading`;
  const response = await fetch(
    new Request(url, { method: "POST", headers: { "content-type": "application/proto" }, body: new Uint8Array() }),
  );
  expect([response.status, await response.text()]).toEqual([503, expect.stringContaining("not reachable")]);
}

test.each([{ removed: [] as number[] }, { removed: [0] }, { removed: [1] }, { removed: [2] }, { removed: [0, 1] }])(
  "a forwarded call's abort event skips removed listeners (indices: $removed)",
  async ({ removed }) => {
    const listeners = Array.from({ length: 4 }, () => ({ handleEvent: vi.fn() }));
    await endCallAfter((signal) => {
      const [last, ...first] = listeners.toReversed();
      for (const listener of first.toReversed()) signal.addEventListener("abort", listener);
      for (const at of removed) signal.removeEventListener("abort", listeners[at] ?? expect.unreachable());
      // Added after the removal, so that it may take the place of a removed listener.
      signal.addEventListener("abort", last ?? expect.unreachable());
    });
    const calls = listeners.map(({ handleEvent }) => handleEvent.mock.calls.length);
    expect(calls).toEqual(listeners.map((_, at) => (removed.includes(at) ? 0 : 1)));
  },
);
