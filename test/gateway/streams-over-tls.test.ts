import { EventEmitter, once } from "node:events";
import { constants } from "node:http2";
import { request as requestHttps } from "node:https";
import type { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Reading } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { GatewayOptions } from "../../src/gateway/index.ts";
import { createCertificate } from "../support/carriers/certificate.ts";
import type { Address } from "../support/carriers/exchange.ts";
import { openHttp2 } from "../support/carriers/http2-connection.ts";
import { within } from "../support/deadline.ts";
import { startGreenhouse, type TestGreenhouse } from "../support/gateway/greenhouse.ts";
import { TextCollector } from "../support/gateway/rest-answer.ts";

// Streams on REST over TLS: that each message goes its way when it is sent, and the end of either side is told. The
// tables of rest-streams, rest-client-streams and http-body have the rest; `npm run test:tls` sends them over TLS too.

const service = "greenhouse.v1.GreenhouseService";
const rules: NonNullable<GatewayOptions["rest"]>["rules"] = [
  { selector: `${service}.WatchReadings`, pattern: { case: "get", value: "/readings" } },
  { selector: `${service}.RecordReadings`, pattern: { case: "post", value: "/readings" }, body: "*" },
  { selector: `${service}.ControlClimate`, pattern: { case: "post", value: "/climate" }, body: "*" },
];
const certificate = createCertificate("greenhouse");
const told = new EventEmitter();

const implementation: Parameters<typeof startGreenhouse>[0] = {
  async *watchReadings(_, { signal }) {
    yield { sensor: "first" };
    await once(told, "go", { signal }).catch(() => told.emit("left"));
    yield { sensor: "last" };
  },
  async recordReadings(readings: AsyncIterable<Reading>) {
    let count = 0;
    for await (const { sensor } of readings) {
      count += 1;
      told.emit("reading", sensor);
    }
    return { count };
  },
  async *controlClimate(readings: AsyncIterable<Reading>) {
    for await (const { sensor } of readings) yield { sensor };
  },
};

/** A request over TLS that is sent and answered as a stream. */
interface Exchange extends Disposable {
  readonly sending: { write(text: string): unknown; end(): unknown };
  /** Waits until some text of the answer has come. */
  until(text: string): Promise<void>;
  /** Waits for the end of the answer. */
  ended(): Promise<unknown>;
  /** Gives it up. */
  leave(): void;
}

type Open = (address: Address, httpMethod: string, path: string) => Promise<Exchange>;

const openHttp1Exchange: Open = async ({ address, port }, method, path) => {
  const sending = requestHttps({ host: address, port, method, path, ca: certificate.cert, agent: false });
  sending.on("error", () => undefined).flushHeaders();
  const answer = new Promise<Readable>((resolve) => sending.on("response", resolve));
  const leave = (): void => void sending.destroy();
  return { sending, leave, ...readerOf(answer), [Symbol.dispose]: leave };
};

const openHttp2Exchange: Open = async (address, httpMethod, path) => {
  const connection = await openHttp2(address, { ca: certificate.cert, servername: "localhost" });
  const sending = connection.open({ httpMethod, path, header: [] }, { endStream: false });
  sending.on("error", () => undefined);
  const leave = (): void => sending.close(constants.NGHTTP2_CANCEL);
  const reader = readerOf(Promise.resolve(sending));
  return { sending, leave, ...reader, [Symbol.dispose]: () => connection[Symbol.dispose]() };
};

function readerOf(answer: Promise<Readable>): Pick<Exchange, "until" | "ended"> {
  const text = answer.then((body) => new TextCollector(body));
  const ended = answer.then((body) => new Promise((resolve) => body.on("end", resolve)));
  return {
    until: async (wanted) => await (await within(text, "an answer")).until(wanted),
    ended: async () => await within(ended, "the end of the answer"),
  };
}

describe.each<{ readonly name: string; readonly openExchange: Open }>([
  { name: "HTTP/1.1", openExchange: openHttp1Exchange },
  { name: "HTTP/2", openExchange: openHttp2Exchange },
])("over TLS and $name", ({ openExchange }) => {
  let greenhouse: TestGreenhouse;
  const open = (httpMethod: string, path: string): Promise<Exchange> =>
    openExchange(greenhouse.address, httpMethod, path);
  beforeAll(async () => {
    greenhouse = await startGreenhouse(implementation, { rest: { rules } }, { tls: certificate });
  });
  afterAll(() => greenhouse[Symbol.asyncDispose]());

  test("each message of a server comes when it is sent, and its end", async () => {
    using exchange = await open("GET", "/readings");
    exchange.sending.end();
    await exchange.until('{"sensor":"first"}\n');
    told.emit("go");
    await exchange.until('{"sensor":"last"}\n');
    await exchange.ended();
  });

  test("a handler learns that its client has left", async () => {
    using exchange = await open("GET", "/readings");
    exchange.sending.end();
    await exchange.until('{"sensor":"first"}\n');
    const left = once(told, "left");
    exchange.leave();
    await within(left, "the handler to be told");
  });

  test("each message of a client is read when it is sent, and then the answer comes", async () => {
    using exchange = await open("POST", "/readings");
    for (const sensor of ["a", "b"]) {
      const reading = once(told, "reading");
      exchange.sending.write(`{"sensor":"${sensor}"}\n`);
      expect(await within(reading, "a reading")).toEqual([sensor]);
    }
    exchange.sending.end();
    await exchange.until('{"count":2}');
  });

  test("messages go both ways at once", async () => {
    using exchange = await open("POST", "/climate");
    for (const sensor of ["a", "b"]) {
      exchange.sending.write(`{"sensor":"${sensor}"}\n`);
      await exchange.until(`{"sensor":"${sensor}"}\n`);
    }
    exchange.sending.end();
    await exchange.ended();
  });
});
