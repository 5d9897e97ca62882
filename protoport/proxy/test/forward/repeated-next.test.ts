import { Code, ConnectError, createClient, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { GreenhouseService, startGreenhouse, startProxy } from "@protoport/testing/proxy";
import { collect } from "../../../testing/src/collect.ts";

// An interceptor that calls `next` again: the response has the metadata of one attempt.

type Next = Parameters<Interceptor>[0];

const protocols = [
  { name: "gRPC", transport: (baseUrl: string) => createGrpcTransport({ baseUrl }) },
  {
    name: "Connect with JSON",
    transport: (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: false }),
  },
];

/** Starts a proxy whose upstream numbers its calls, and fails those in `failing`. */
async function startNumbered(failing: readonly number[], interceptor: Interceptor) {
  let calls = 0;
  const number = ({ responseHeader, responseTrailer }: HandlerContext): number => {
    calls += 1;
    responseHeader.append("x-attempt", String(calls));
    responseTrailer.append("x-trailer", String(calls));
    return calls;
  };
  const failIf = (attempt: number): void => {
    if (failing.includes(attempt)) throw new ConnectError(`attempt ${attempt}`, Code.Aborted);
  };
  const upstream = await startGreenhouse({
    waterBed: (_, context) => {
      const attempt = number(context);
      failIf(attempt);
      return { note: `attempt ${attempt}` };
    },
    watchReadings: async function* (_, context) {
      const attempt = number(context);
      yield { sensor: `attempt ${attempt}` };
      failIf(attempt);
    },
  });
  const baseUrl = `http://127.0.0.1:${upstream.address.port}`;
  const proxy = await startProxy(baseUrl, [GreenhouseService.file], { interceptors: [interceptor] });
  return {
    baseUrl: proxy.baseUrl,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

async function* yieldAll<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items;
}

interface Row {
  readonly name: string;
  readonly failing: readonly number[];
  readonly run: (call: () => ReturnType<Next>) => ReturnType<Next>;
  readonly attempt: number;
}

// oxfmt-ignore
const rows: readonly Row[] = [
  { name: "the second response", failing: [], run: (call) => call().then(call), attempt: 2 },
  { name: "the first response after the second", failing: [], run: async (call) => {
      const first = await call();
      await call();
      return first;
    }, attempt: 1 },
  { name: "the first of two concurrent responses", failing: [],
    run: (call) => Promise.all([call(), call()]).then(([first]) => first), attempt: 1 },
  { name: "the second of two concurrent responses", failing: [],
    run: (call) => Promise.all([call(), call()]).then(([, second]) => second), attempt: 2 },
  { name: "a retry after an error", failing: [1], run: (call) => call().catch(call), attempt: 2 },
  { name: "a third attempt", failing: [1, 2], run: (call) => call().catch(call).catch(call), attempt: 3 },
  { name: "the error of the second attempt", failing: [1, 2], run: (call) => call().catch(call), attempt: 2 },
  { name: "the error of the first attempt after the second", failing: [1], run: (call) =>
      call().catch(async (error: unknown) => {
        await call();
        throw error;
      }), attempt: 1 },
  { name: "an error after a response", failing: [2], run: (call) => call().then(call), attempt: 2 },
];

/** Returns what the client gets: the header and the trailer of a response, or the metadata of an error. */
async function metadataOf(call: (options: object) => Promise<unknown>): Promise<(string | null | undefined)[]> {
  let header: Headers | undefined;
  let trailer: Headers | undefined;
  const onHeader = (received: Headers): void => void (header = received);
  const onTrailer = (received: Headers): void => void (trailer = received);
  try {
    await call({ onHeader, onTrailer });
  } catch (error) {
    const { metadata, rawMessage } = ConnectError.from(error);
    return [
      rawMessage,
      (header?.has("x-attempt") === true ? header : metadata).get("x-attempt"),
      metadata.get("x-trailer"),
    ];
  }
  return [header?.get("x-attempt"), trailer?.get("x-trailer")];
}

describe.each(protocols)("over $name", ({ transport }) => {
  test.each(rows)("a unary call with $name has that attempt's metadata", async ({ failing, run, attempt }) => {
    await using numbered = await startNumbered(failing, (next) => (request) => run(() => next(request)));
    const client = createClient(GreenhouseService, transport(numbered.baseUrl));
    const messages: string[] = [];
    const received = await metadataOf(async (options) => {
      messages.push((await client.waterBed({}, options)).note);
    });
    const metadata = [String(attempt), String(attempt)];
    if (failing.includes(attempt)) expect(received).toEqual([`attempt ${attempt}`, ...metadata]);
    else expect([messages, received]).toEqual([[`attempt ${attempt}`], metadata]);
  });

  test.each([
    { name: "a retried stream", failing: [1], attempt: 2 },
    { name: "a stream whose retry fails", failing: [1, 2], attempt: 2 },
  ])("$name has the metadata of its last attempt", async ({ failing, attempt }) => {
    const interceptor: Interceptor = (next) => async (request) => {
      if (!request.stream) return await next(request);
      // A stream of requests can be read once.
      const requests = await collect(request.message);
      const send = (): ReturnType<Next> => next({ ...request, message: yieldAll(requests) });
      const first = await send();
      if (first.stream) await collect(first.message).catch(() => undefined);
      return await send();
    };
    await using numbered = await startNumbered(failing, interceptor);
    const client = createClient(GreenhouseService, transport(numbered.baseUrl));
    const received = await metadataOf((options) => collect(client.watchReadings({}, options)));
    const metadata = [String(attempt), String(attempt)];
    expect(received).toEqual(failing.includes(attempt) ? [`attempt ${attempt}`, ...metadata] : metadata);
  });
});
