import { once } from "node:events";
import { text } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test, vi } from "vitest";
import type { CompletedRequest, GatewayOptions } from "../src/index.ts";
import type { PieceEncoder, StreamCompression } from "../src/protocols/index.ts";
// oxfmt-ignore
import { exchange, type Field, fieldValue, type HttpRequest, type HttpVersion, openHttp1, openResponse, reasonOf,
  startGreenhouse, type TestGreenhouse, throws, within } from "@protoport/testing";

// What hooks report about compressed REST responses, mainly streams, and what happens when their coding fails or is
// slow, as a custom coding may.

const service = "greenhouse.v1.GreenhouseService";
const rules: NonNullable<GatewayOptions["rest"]>["rules"] = [
  { selector: `${service}.WatchReadings`, pattern: { case: "get", value: "/readings" } },
  { selector: `${service}.RecordReadings`, pattern: { case: "post", value: "/readings" }, body: "*" },
];

const failure = new Error("out of memory");
const same = (bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> => Promise.resolve(new Uint8Array(bytes));
const fail = (): Promise<never> => Promise.reject(failure);

async function* watchReadings(): AsyncGenerator<object> {
  for (const sensor of ["a", "b"]) yield { sensor };
}

const recordReadings = async (): Promise<object> => ({ count: 1 });

/** A coding that does not change the bytes, unless it fails. */
function codingWith(compress: StreamCompression["compress"], encoder: Partial<PieceEncoder> = {}): StreamCompression {
  const openEncoder = (): PieceEncoder => ({ write: same, end: same, close: () => undefined, ...encoder });
  return { name: "same", compress, decompress: same, decodePieces: (pieces) => pieces, openEncoder };
}

const never: PieceEncoder["end"] = () => new Promise(() => {});
const failingEnd = (): Partial<PieceEncoder> => ({ end: fail });
const failingPiece = (): Partial<PieceEncoder> => {
  const results = [same];
  return { write: (bytes) => (results.shift() ?? fail)(bytes), end: fail };
};

const ends = (): Promise<void> => Promise.resolve();
const fails = (): Promise<void> => Promise.reject(new ConnectError("rain", Code.Internal));
const notFound = throws(new ConnectError("no sensor", Code.NotFound));
const allNotFound = { watchReadings: notFound, recordReadings: notFound, waterBed: notFound };

/** A clock that can be stopped and advanced by a test. */
interface StoppableClock extends Disposable {
  /** Stops the clock for all deadlines that are set afterwards. */
  stop(): void;
  /** Waits until the clock is stopped, advances it by some time, and restarts it. */
  pass(ms: number): Promise<void>;
}

function stoppableClock(): StoppableClock {
  const stopped = Promise.withResolvers<void>();
  return {
    stop: () => {
      vi.useFakeTimers({ toFake: ["setTimeout"] });
      stopped.resolve();
    },
    pass: async (ms) => {
      await within(stopped.promise, "the clock to be stopped");
      vi.advanceTimersByTime(ms);
      vi.useRealTimers();
      // Lets expired timers call back.
      await nextTurn();
    },
    [Symbol.dispose]: () => void vi.useRealTimers(),
  };
}

type Implementation = Parameters<typeof startGreenhouse>[0];

describe.each<HttpVersion>(["1.1", "2"])("a compressed stream over HTTP/%s", (version) => {
  const start = (
    coding: StreamCompression,
    faults: unknown[],
    more: Partial<GatewayOptions> = {},
    implementation: Implementation = {},
  ): Promise<TestGreenhouse> => {
    const onFault = (fault: unknown): void => void faults.push(fault);
    const options = { rest: { rules }, acceptCompression: [coding], compressMinBytes: 0, onFault, ...more };
    return startGreenhouse({ watchReadings, recordReadings, waterBed: () => ({}), ...implementation }, options);
  };
  const header: readonly Field[] = Object.entries({ accept: "application/json", "accept-encoding": "same" });

  describe.each<{ name: string; request: HttpRequest }>([
    { name: "a server stream without messages", request: { httpMethod: "GET", path: "/readings", header } },
    { name: "the response to a client stream", request: { httpMethod: "POST", path: "/readings", header } },
    { name: "the response to a unary call", request: { httpMethod: "POST", path: "/beds/7:water", header } },
  ])("$name in a custom coding", ({ request }) => {
    test("is reported to onResponse with status 200", async () => {
      // Read when the hook is called, like logs and metrics do; it may change later.
      const reported = Promise.withResolvers<object>();
      const onResponse = ({ httpStatus, error }: CompletedRequest): void => reported.resolve({ httpStatus, error });
      await using greenhouse = await start(codingWith(same), [], { onResponse });
      const { header: sent } = await exchange(greenhouse.address, version, request);
      expect(fieldValue(sent, "content-encoding")).toBe("same");
      expect(await within(reported.promise, "onResponse")).toEqual({ httpStatus: 200, error: undefined });
    });

    test("is reported to onResponse with the status of its error", async () => {
      const reported = Promise.withResolvers<object>();
      const onResponse = ({ httpStatus, error }: CompletedRequest): void =>
        reported.resolve({ httpStatus, code: error?.code });
      await using greenhouse = await start(codingWith(same), [], { onResponse }, allNotFound);
      const { header: sent } = await exchange(greenhouse.address, version, request);
      expect(fieldValue(sent, "content-encoding")).toBe("same");
      expect(await within(reported.promise, "onResponse")).toEqual({ httpStatus: 404, code: Code.NotFound });
    });

    test("is replaced by an error response if compression fails", async () => {
      const faults: unknown[] = [];
      await using greenhouse = await start(codingWith(fail), faults);
      const { httpStatus, body } = await exchange(greenhouse.address, version, request);
      const want = { code: Code.Internal, message: "internal error" };
      expect([httpStatus, JSON.parse(String(body))]).toMatchObject([500, want]);
      expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 500, error: { code: Code.Internal } });
      expect(faults).toEqual([failure]);
    });

    test("is aborted if its error response cannot be compressed", async () => {
      const faults: unknown[] = [];
      await using greenhouse = await start(codingWith(fail), faults, {}, allNotFound);
      await expect(exchange(greenhouse.address, version, request)).rejects.toThrow();
      expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 0, error: { code: Code.NotFound } });
      expect(faults).toEqual([failure]);
    });

    test("fails with DEADLINE_EXCEEDED if the deadline passes during compression", async () => {
      const faults: unknown[] = [];
      const compressed = Promise.withResolvers<void>();
      const compress: StreamCompression["compress"] = async (bytes) => (await compressed.promise, await same(bytes));
      await using greenhouse = await start(codingWith(compress), faults);
      const late = { ...request, header: [...header, ["x-server-timeout", "0.05"] as const] };
      const { httpStatus, body } = await exchange(greenhouse.address, version, late);
      expect([httpStatus, JSON.parse(String(body))]).toMatchObject([504, { code: Code.DeadlineExceeded }]);
      compressed.resolve();
      expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 504, error: { code: Code.DeadlineExceeded } });
      expect(faults).toEqual([]);
    });
  });

  test.each<{ name: string; encoder: () => Partial<PieceEncoder>; last: (signal: AbortSignal) => Promise<unknown> }>([
    { name: "while the handler runs", encoder: failingPiece, last: reasonOf },
    { name: "after the handler has returned", encoder: failingPiece, last: ends },
    { name: "after the handler has thrown", encoder: failingPiece, last: fails },
    { name: "at the end of the stream", encoder: failingEnd, last: ends },
    { name: "at the end of a failed stream", encoder: failingEnd, last: fails },
  ])("is aborted if encoding fails $name, and the encoder is closed", async ({ encoder, last }) => {
    const faults: unknown[] = [];
    const begun = Promise.withResolvers<void>();
    let closed = 0;
    const coding = codingWith(same, { ...encoder(), close: () => void (closed += 1) });
    const watch: Implementation["watchReadings"] = async function* (_, { signal }) {
      yield { sensor: "a" };
      await begun.promise;
      yield { sensor: "b" };
      await last(signal);
    };
    await using greenhouse = await start(coding, faults, {}, { watchReadings: watch });
    using answer = await openResponse(greenhouse, version, "/readings", header);
    const cut = once(answer.body, "error");
    answer.body.resume();
    begun.resolve();
    await within(cut, "the error of a body that is cut");
    expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 200, error: { code: Code.Internal } });
    expect([faults, closed]).toEqual([[failure], 1]);
  });

  test("is sent completely after an early failure, even if compression hangs", async () => {
    using clock = stoppableClock();
    const coding = codingWith(async () => (clock.stop(), await new Promise(() => {})));
    const watch: Implementation["watchReadings"] = async function* () {
      yield { sensor: "a" };
      notFound();
    };
    await using greenhouse = await start(coding, [], {}, { watchReadings: watch });
    const asked = exchange(greenhouse.address, version, { httpMethod: "GET", path: "/readings", header });
    await clock.pass(1000);
    const { httpStatus, body } = await asked;
    const error = { "@error": expect.objectContaining({ code: Code.NotFound }) };
    expect([httpStatus, JSON.parse(String(body))]).toEqual([200, [{ sensor: "a" }, error]]);
    expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 200, error: { code: Code.NotFound } });
  });

  describe("a stream whose final error takes long to encode", () => {
    /** Begins a stream, and stops the clock when the stream's error is passed to the coding. */
    const begin = async (clock: StoppableClock, encode: PieceEncoder["end"], close: () => void) => {
      const end: PieceEncoder["end"] = async (bytes) => (clock.stop(), await encode(bytes));
      const begun = Promise.withResolvers<void>();
      const watch: Implementation["watchReadings"] = async function* () {
        yield { sensor: "a" };
        await begun.promise;
        notFound();
      };
      const greenhouse = await start(codingWith(same, { end, close }), [], {}, { watchReadings: watch });
      const answer = await openResponse(greenhouse, version, "/readings", header);
      begun.resolve();
      return { greenhouse, answer };
    };

    test("is sent completely if encoding takes less than 30 s", async () => {
      using clock = stoppableClock();
      const encoded = Promise.withResolvers<void>();
      const encode: PieceEncoder["end"] = (bytes) => encoded.promise.then(() => same(bytes));
      const { greenhouse, answer } = await begin(clock, encode, () => undefined);
      await using _ = greenhouse;
      using begun = answer;
      const whole = text(begun.body);
      await clock.pass(29_999);
      encoded.resolve();
      const error = { "@error": expect.objectContaining({ code: Code.NotFound }) };
      expect(JSON.parse(await within(whole, "the body"))).toEqual([{ sensor: "a" }, error]);
    });

    test("is aborted after 30 s, and its encoder is closed", async () => {
      using clock = stoppableClock();
      let closed = 0;
      const { greenhouse, answer } = await begin(clock, never, () => void (closed += 1));
      await using _ = greenhouse;
      using begun = answer;
      const cut = once(begun.body, "error");
      begun.body.resume();
      await clock.pass(30_000);
      await within(cut, "the error of a body that is cut");
      expect(await greenhouse.completed(1)).toMatchObject({ httpStatus: 200, error: { code: Code.NotFound } });
      expect(closed).toBe(1);
    });
  });

  test("is aborted if its deadline passes during encoding", async () => {
    const faults: unknown[] = [];
    const begun = Promise.withResolvers<void>();
    const write: PieceEncoder["write"] = async (bytes) => (begun.resolve(), await same(bytes));
    const coding = codingWith(same, { write, end: never });
    // Begins and ends in the same turn, so that the deadline cannot pass in between.
    const watch: Implementation["watchReadings"] = async function* () {
      yield { sensor: "a" };
      await begun.promise;
    };
    await using greenhouse = await start(coding, faults, {}, { watchReadings: watch });
    using answer = await openResponse(greenhouse, version, "/readings", [...header, ["x-server-timeout", "0.2"]]);
    await within(once(answer.body.resume(), "error"), "the error of a body that is cut");
    expect([(await greenhouse.completed(1)).error?.code, faults]).toEqual([Code.DeadlineExceeded, []]);
  });
});

test("a compressed stream closes its encoder when the client disconnects", async () => {
  let closed = 0;
  const coding = codingWith(same, { close: () => void (closed += 1) });
  await using greenhouse = await startGreenhouse(
    {
      async *watchReadings(_, { signal }) {
        yield { sensor: "a" };
        await reasonOf(signal);
      },
    },
    { rest: { rules }, acceptCompression: [coding] },
  );
  using connection = await openHttp1(greenhouse.address);
  connection.request({ httpMethod: "GET", path: "/readings", header: [["accept-encoding", "same"]] });
  await within(once(connection.socket, "data"), "the first message");
  // Without a reset, the server would wait for a client that may have closed only its side.
  connection.socket.resetAndDestroy();
  expect([await greenhouse.completed(1), closed]).toMatchObject([{ error: { code: Code.Canceled } }, 1]);
});
