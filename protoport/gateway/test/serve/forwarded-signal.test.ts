import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway } from "../../src/index.ts";
import type { Caller, Reply } from "../../src/protocols/index.ts";
import { registerForwarder } from "../../src/serve/forwarding-callee.ts";

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
