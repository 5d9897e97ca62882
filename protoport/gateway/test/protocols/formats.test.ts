import { create, type DescMessage, type Message } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { validateUniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { decodeBase64Parts, decodeEnvelopes, encodeEnvelope, fieldValue, type HttpRequest, type HttpResponse,
  type HttpVersion, KeptConnections, shared, startGreenhouse } from "@protoport/testing";
import { OrderService } from "../../../testing/src/gen/orders/v1/orders_pb.ts";
import type { Protocol } from "../../src/index.ts";
import { type Codec, type Format, formats, proto } from "../../src/protocols/formats.ts";

// Every format in every protocol, with the response's content type.

/** A protocol's content types and other properties that do not depend on the format. */
interface Spelling {
  readonly name: string;
  readonly httpVersion: HttpVersion;
  /** The content type for unary calls, without the format's name at its end. */
  readonly unaryType: string;
  readonly streamType: string;
  /** The content type that means the first format, or `undefined` if there is none. */
  readonly bareType?: string;
  /** The content type for a unary call's error, if not the call's. */
  readonly unaryErrorType?: string;
  readonly isUnaryInEnvelope: boolean;
  readonly isBase64: boolean;
  /** Whether unary calls may be made by GET. */
  readonly hasGet: boolean;
}

const binary = { httpVersion: "1.1", isUnaryInEnvelope: true, isBase64: false, hasGet: false } as const;

/** The spellings of each protocol. */
// oxfmt-ignore
const spellings: Readonly<Record<Protocol, readonly Spelling[]>> = {
  connect: [{ ...binary, name: "Connect", unaryType: "application/", streamType: "application/connect+",
      unaryErrorType: "application/json", isUnaryInEnvelope: false, hasGet: true }],
  grpc: [{ ...binary, name: "gRPC", httpVersion: "2", ...typesBelow("application/grpc") }],
  "grpc-web": [{ ...binary, name: "gRPC-Web", ...typesBelow("application/grpc-web") },
    { ...binary, name: "gRPC-Web text", ...typesBelow("application/grpc-web-text"), isBase64: true }],
  // MCP and REST use JSON only.
  mcp: [],
  rest: [],
};

function typesBelow(bareType: string): Pick<Spelling, "bareType" | "streamType" | "unaryType"> {
  return { bareType, unaryType: `${bareType}+`, streamType: `${bareType}+` };
}

const { getReading, watchReadings, recordReadings } = GreenhouseService.method;
const options = validateUniversalHandlerOptions({});
const refused = "refused";
const broken = "broken";

/** An RPC, the message that every case sends, and the response. */
// oxfmt-ignore
const kinds = [
  { kind: "unary", method: getReading, sent: 1, received: [{ sensor: "a", degreesCelsius: 1.5 }] },
  { kind: "server stream", method: watchReadings, sent: 1,
    received: [{ sensor: "a", degreesCelsius: 1 }, { sensor: "a", degreesCelsius: 2 }] },
  { kind: "client stream", method: recordReadings, sent: 2, received: [{ count: 2, meanDegreesCelsius: 1.5 }] },
] as const;

type Kind = (typeof kinds)[number];

/** One way to call one RPC. */
interface Way {
  readonly name: string;
  readonly spelling: Spelling;
  readonly format: Format;
  readonly kind: Kind;
  readonly contentType: string;
  /** The response's content type. */
  readonly want: string;
  readonly isGet: boolean;
}

const all = Object.values(spellings).flat();
const ways: readonly Way[] = all.flatMap((spelling) =>
  formats.flatMap((format, at) => kinds.flatMap((kind) => waysOf(spelling, format, kind, at === 0))),
);

function waysOf(spelling: Spelling, format: Format, kind: Kind, isFirst: boolean): Way[] {
  const isUnary = kind.kind === "unary";
  const want = (isUnary ? spelling.unaryType : spelling.streamType) + format.name;
  const way = { spelling, format, kind, want, isGet: false };
  const types = [want, ...(format.isText ? [`${want}; charset=utf-8`] : [])];
  if (isFirst && spelling.bareType !== undefined) types.push(spelling.bareType);
  const byPost = types.map((contentType) => {
    return { ...way, name: `${spelling.name}, ${kind.kind}, ${contentType}`, contentType };
  });
  if (!isUnary || !spelling.hasGet) return byPost;
  return [...byPost, { ...way, name: `${spelling.name}, GET, ${format.name}`, contentType: "", isGet: true }];
}

/** Returns the client's codec, which encodes the messages that the server decodes, and the reverse. */
function clientCodec(format: Format, { method }: Kind): Codec {
  const { input, output }: { readonly input: DescMessage; readonly output: DescMessage } = method;
  return format.createCodec({ ...method, input: output, output: input }, options, {});
}

/** @param cut - how many bytes are removed from each message's end */
function requestOf(way: Way, sensor: string, cut: number): HttpRequest {
  const { spelling, format, kind, contentType, isGet } = way;
  const { parent, name, input } = kind.method;
  const path = `/${parent.typeName}/${name}`;
  const complete = clientCodec(format, kind).encode(create<DescMessage>(input, messageOf(kind, sensor)));
  const message = complete.subarray(0, complete.byteLength - cut);
  const header = sensor === refused ? ([["x-refuse", "1"]] as const) : [];
  if (isGet) {
    const query = `encoding=${format.name}&base64=1&message=${Buffer.from(message).toString("base64url")}`;
    return { httpMethod: "GET", path: `${path}?${query}`, header };
  }
  const isPlain = kind.kind === "unary" && !spelling.isUnaryInEnvelope;
  const body = Buffer.concat(Array.from({ length: kind.sent }, () => (isPlain ? message : encodeEnvelope(0, message))));
  return {
    httpMethod: "POST",
    path,
    header: [["content-type", contentType], ["te", "trailers"], ...header],
    body: spelling.isBase64 ? Buffer.from(body.toString("base64")) : body,
  };
}

function messageOf({ kind }: Kind, sensor: string): Record<string, unknown> {
  return kind === "client stream" ? { sensor, degreesCelsius: 1.5 } : { sensor };
}

function readMessages({ spelling, format, kind }: Way, { body }: HttpResponse): Message[] {
  const bytes = spelling.isBase64 ? decodeBase64Parts(body) : body;
  const isPlain = kind.kind === "unary" && !spelling.isUnaryInEnvelope;
  const envelopes = isPlain ? [{ bytes }] : decodeEnvelopes(bytes).filter(({ flags }) => flags === 0);
  const codec = clientCodec(format, kind);
  return envelopes.map((envelope) => codec.decode(envelope.bytes));
}

describe("a call in each format", () => {
  const connections = shared(() => new KeptConnections());
  const greenhouse = shared(
    async () =>
      await startGreenhouse(
        {
          getReading: ({ sensor }) => ({ sensor: checked(sensor), degreesCelsius: 1.5 }),
          async *watchReadings({ sensor }) {
            for (const degreesCelsius of [1, 2]) yield { sensor: checked(sensor), degreesCelsius };
          },
          async recordReadings(readings) {
            let [count, sum] = [0, 0];
            for await (const { sensor, degreesCelsius } of readings) {
              checked(sensor);
              count += 1;
              sum += degreesCelsius;
            }
            return { count, meanDegreesCelsius: sum / count };
          },
        },
        {
          admit: ({ header }) => {
            if (header.get("x-refuse") !== null) throw new ConnectError("refused", Code.PermissionDenied);
          },
        },
      ),
  );

  const ask = async (way: Way, sensor: string, cut = 0): Promise<HttpResponse> =>
    await connections.exchange(greenhouse.address, way.spelling.httpVersion, requestOf(way, sensor, cut));

  test.each(ways)("gets a response with the content type of its request ($name)", async (way) => {
    const response = await ask(way, "a");
    const want = { httpStatus: 200, type: way.want };
    expect({ httpStatus: response.httpStatus, type: fieldValue(response.header, "content-type") }).toEqual(want);
    expect(readMessages(way, response)).toMatchObject(way.kind.received);
  });

  test.each(ways)("gets the error content type if the handler fails ($name)", async (way) => {
    expect(fieldValue((await ask(way, broken)).header, "content-type")).toBe(errorTypeOf(way));
  });

  test.each(ways)("fails with INVALID_ARGUMENT if it is truncated ($name)", async (way) => {
    const before = greenhouse.completedRequests.length;
    await ask(way, "a", 1);
    expect((await greenhouse.completed(before + 1)).error?.code).toBe(Code.InvalidArgument);
  });

  test.each(ways)("gets the error content type if admit refuses it ($name)", async (way) => {
    expect(fieldValue((await ask(way, refused)).header, "content-type")).toBe(errorTypeOf(way));
  });
});

function errorTypeOf({ spelling, kind, want }: Way): string {
  return (kind.kind === "unary" ? spelling.unaryErrorType : undefined) ?? want;
}

function checked(sensor: string): string {
  if (sensor === broken) throw new ConnectError("broken", Code.NotFound);
  return sensor;
}

test("the proto codec encodes the unknown fields of a google.protobuf.Empty", () => {
  const codec = proto.createCodec(OrderService.method.deleteOrder, validateUniversalHandlerOptions({}), {});
  const message = create(EmptySchema);
  message.$unknown = [{ no: 1, wireType: WireType.Varint, data: Uint8Array.of(5) }];
  expect([...codec.encode(message)]).toEqual([8, 5]);
});
