import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { GreenhouseService, ReadingSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { encodeEmpty, type Field, fieldValue, type HttpRequest, openEveryTransport, openHttp2, readHttp2Response,
  readOutcome, rpcRequest, waitSomeTurns, wireFormats } from "@protoport/testing";

// Large header and trailer sections: nghttp2 closes the connection after it has sent or received a field of 64 KiB.

const large = "x".repeat(70_000);
const faults: unknown[] = [];
const detail = { desc: ReadingSchema, value: { sensor: "a" } };

/** What a handler does before it responds, by name. */
const actions: Readonly<Record<string, (context: HandlerContext) => void>> = {
  "a message": () => fail(large),
  "a message of characters with three bytes": () => fail("李".repeat(30_000)),
  "a message that is cut in a surrogate pair": () => fail("\u{1f33b}".padStart(4_097, "x") + large),
  "a message with details": () => fail(large, undefined, [detail]),
  "an error's metadata": () => fail("no", { "x-large": large }),
  "an error's details": () => fail("no", undefined, [{ desc: ReadingSchema, value: { sensor: large } }]),
  "a header": ({ responseHeader }) => responseHeader.set("x-large", large),
  "a trailer": ({ responseTrailer }) => responseTrailer.set("x-large", large),
};

function fail(
  message: string,
  metadata?: Record<string, string>,
  details?: ConstructorParameters<typeof ConnectError>[3],
): never {
  throw new ConnectError(message, Code.InvalidArgument, metadata, details);
}

function act(context: HandlerContext): void {
  actions[context.requestHeader.get("x-action") ?? ""]?.(context);
}

const gateway = await openEveryTransport({
  routes: (router) =>
    router.service(GreenhouseService, {
      getReading: (_request, context) => {
        act(context);
        const length = Number(context.requestHeader.get("x-length"));
        if (length > 0) context.responseHeader.set("x-large", "x".repeat(length));
        // A message of this size is sent without a copy.
        return { sensor: context.requestHeader.get("x-size") === null ? "a" : large };
      },
      watchReadings: async function* (_request, context) {
        yield { sensor: "first" };
        // In a later turn, the response has begun.
        if (context.requestHeader.get("x-late") !== null) await waitSomeTurns();
        act(context);
      },
    }),
  onRequest: (request) => {
    if (request.header.get("x-action") === "a hook") request.addResponseHeader("x-large", large);
  },
  onFault: (error) => faults.push(error instanceof Error && error.message),
});

afterAll(async () => await gateway[Symbol.asyncDispose]());

beforeEach(() => {
  faults.length = 0;
});

const { grpc } = wireFormats;
const getReading = `/${GreenhouseService.typeName}/GetReading`;
const watchReadings = `/${GreenhouseService.typeName}/WatchReadings`;

const callOf = (procedure: string, ...header: readonly Field[]): HttpRequest =>
  rpcRequest(grpc, encodeEmpty(grpc), header, procedure);

describe.each(["the engine's HTTP/2", "a handler in node:http2"] as const)("over %s", (transport) => {
  test.each([
    ["a message", getReading, "x", ""],
    ["a message", watchReadings, "x", ""],
    ["a message of characters with three bytes", getReading, "李", ""],
    ["a message that is cut in a surrogate pair", getReading, "x", "\ufffd"],
    ["a message with details", getReading, "x", ""],
    ["a message with details", watchReadings, "x", ""],
  ])("an error with %s over %s keeps its code", async (action, procedure, start, end) => {
    const [address] = gateway.addressOf(transport);
    using connection = await openHttp2(address);
    const response = await connection.exchange(callOf(procedure, ["x-action", action]));
    const { code, message } = readOutcome(grpc, response);
    expect([code, message.length]).toEqual([Code.InvalidArgument, 4_097]);
    expect([message.startsWith(start), message.endsWith(`${end}…`)]).toEqual([true, true]);
    const bytes = fieldValue([...response.header, ...response.trailer], "grpc-status-details-bin");
    // The details repeat the message (google.rpc.Status).
    if (bytes !== undefined) expect(Buffer.from(bytes, "base64").includes(message)).toBe(true);
    expect(action.endsWith("details")).toBe(bytes !== undefined);
  });

  test.each([
    ["an error's metadata", getReading],
    ["an error's metadata", watchReadings],
    ["an error's details", getReading],
    ["a header", getReading],
    ["a trailer", getReading],
    ["a trailer", watchReadings],
    ["a hook", getReading],
    ["a hook", watchReadings],
    ["a trailer", getReading, ["x-size", "large"]],
    ["a trailer", watchReadings, ["x-late", "1"]],
  ] as const)("with %s that is too large, %s fails alone", async (action, procedure, size?) => {
    const [address] = gateway.addressOf(transport);
    using connection = await openHttp2(address);
    const call = callOf(watchReadings);
    const other = connection.open(call, { endStream: false });
    const sent = connection.exchange(callOf(procedure, ["x-action", action], ...(size === undefined ? [] : [size])));
    const end = await sent.then(
      ({ resetCode }) => `error code ${resetCode}`,
      ({ message }: Error) => message,
    );
    expect(end).toMatch(/error code [1-9]$/);
    other.end(call.body);
    expect(readOutcome(grpc, await readHttp2Response(other)).code).toBe(0);
    const later = await connection.exchange(callOf(getReading));
    expect([later.httpStatus, readOutcome(grpc, later).code]).toEqual([200, 0]);
    const reason = expect.stringMatching(/^a header or trailer section must have at most 65536 bytes, got \d+$/);
    expect(faults).toContainEqual(reason);
  });
});

test("a handler in node:http2 sends the largest section that nghttp2 sends", async () => {
  const [address] = gateway.addressOf("a handler in node:http2");
  using connection = await openHttp2(address);
  const call = async (length: number): Promise<number | undefined> =>
    await connection.exchange(callOf(getReading, ["x-length", String(length)])).then(
      (response) => readOutcome(grpc, response).code,
      () => undefined,
    );
  expect(await call(65_536)).toBeUndefined();
  const [, bytes] = /got (\d+)$/.exec(String(faults[0])) ?? [];
  const largest = 65_536 - (Number(bytes) - 65_536);
  expect([await call(largest), await call(largest + 1), await call(1)]).toEqual([0, undefined, 0]);
});
