import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { BacklogBudget, defaultLimits } from "../../../src/gateway/carriers/index.ts";
import { Http1Connection, type RequestReceiver } from "../../../src/gateway/http1/index.ts";
import { listenOnLoopback } from "../../support/carriers/listen-on-loopback.ts";
import { within } from "../../support/deadline.ts";

const receiver: RequestReceiver = {
  onData: () => false,
  onEnd: () => {},
  onBroken: () => {},
  onGone: () => {},
  onWritable: () => {},
};

test("a client that takes some of an answer between any two looks is not cut off", async () => {
  // More than the system takes by itself.
  const page = Buffer.alloc(64 * 1024 * 1024);
  const accepted = Promise.withResolvers<{ socket: Socket; connection: Http1Connection }>();
  const server = createServer((socket) => {
    const connection = new Http1Connection(socket, {
      limits: defaultLimits,
      lookEveryMs: defaultLimits.idleTimeoutMs,
      budget: new BacklogBudget(2 * page.byteLength),
      onRequest: (asked) => {
        asked.receiver = receiver;
        asked.answer(200, [], page);
      },
      onClose: () => {},
      onFault: () => {},
    });
    accepted.resolve({ socket, connection });
  });
  const { hostname, port } = new URL(await listenOnLoopback(server));
  const client = connect(Number(port), hostname).pause();
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  const { socket, connection } = await within(accepted.promise, "the connection");
  for (let looks = 0; looks < 4; looks++) {
    do {
      const taken = once(socket, "drain");
      client.resume();
      await within(taken, "a part to be taken");
      client.pause();
    } while (socket.writableLength === 0);
    connection.look();
    expect(socket.destroyed).toBe(false);
  }
  // Nothing is taken between these two.
  connection.look();
  connection.look();
  expect(socket.destroyed).toBe(true);
  client.destroy();
  server.close();
});
